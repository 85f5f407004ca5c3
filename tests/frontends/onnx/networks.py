"""Small ONNX networks for tests, and the two oracles: ONNX Runtime, before reading and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.frontends.onnx.model import Array, Model
from mizzen.frontends.onnx.reading import read
from mizzen.frontends.onnx.writing import submodel

onnx: Any = pytest.importorskip("onnx", reason="the package onnx is not installed")
helper: Any = pytest.importorskip("onnx.helper")
numpy_helper: Any = pytest.importorskip("onnx.numpy_helper")

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL = 1, 2, 3, 6, 7, 8, 9
Shape = Sequence[int | str | None]


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    return helper.make_node(kind, inputs, outputs, **attributes)


def tensor(name: str, shape: Shape | None, type: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, type, shape)


def graph(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    constants: Mapping[str, Any] | None = None,
) -> Any:
    initializers = [
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in (constants or {}).items()
    ]
    return helper.make_graph(nodes, "network", inputs, outputs, initializers)


def network(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    **more: Any,
) -> Any:
    """Make a network; com.microsoft is among its domains."""
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    made = graph(nodes, inputs, outputs, constants)
    return helper.make_model(made, opset_imports=imports, ir_version=8, **more)


def taken(model: Any, shapes: Mapping[str, tuple[int, ...] | int] | None = None) -> Model:
    return read(model.SerializeToString(), "x.onnx", None, shapes or {})


def refusal(model: Any, shapes: Mapping[str, tuple[int, ...] | int] | None = None) -> Any:
    """Read a network that must be refused; its diagnostic."""
    data = model if isinstance(model, bytes) else model.SerializeToString()
    with pytest.raises(MizzenError) as caught:
        read(data, "x.onnx", None, shapes or {})
    return caught.value.diagnostic


def kinds(model: Model) -> list[str]:
    return [each.kind for each in model.nodes]


def scales(name: str, scale: Any, zero: Any, dtype: Any = np.int8) -> dict[str, Array]:
    return {f"{name}_s": np.array(scale, np.float32), f"{name}_z": np.array(zero, dtype)}


def ran(data: bytes, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
    """Compute a network in ONNX Runtime, as it is written."""
    runtime: Any = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(list(outputs), dict(inputs))


def samples(model: Model, seed: int = 0) -> dict[str, Array]:
    """Make inputs of a network, by chance."""
    rng = np.random.default_rng(seed)
    values: dict[str, Array] = {}
    for name in model.inputs:
        type = model.types[name]
        if type.dtype.kind == "f":
            values[name] = rng.normal(size=type.shape).astype(type.dtype)
        else:
            values[name] = rng.integers(0, 2 if type.dtype == np.bool_ else 100, type.shape).astype(
                type.dtype
            )
    return values


def computes_the_same(
    model: Any, shapes: Mapping[str, tuple[int, ...] | int] | None = None, within: float = 0.0
) -> Model:
    """Read a network, and hold what it computes against the file's, both in ONNX Runtime."""
    read_model = taken(model, shapes)
    outputs = read_model.outputs
    values = samples(read_model)
    wanted = ran(model.SerializeToString(), values, outputs)
    written = submodel(read_model, read_model.nodes, read_model.inputs, outputs, read_model.types)
    onnx.checker.check_model(onnx.load_model_from_string(written))
    results = ran(written, values, outputs)
    for name, result, value in zip(outputs, results, wanted, strict=True):
        type = read_model.types[name]
        assert (result.dtype, result.shape) == (type.dtype, type.shape)
        assert result.dtype == value.dtype
        np.testing.assert_allclose(
            result.astype(np.float64), value.astype(np.float64), rtol=0, atol=within
        )
    return read_model
