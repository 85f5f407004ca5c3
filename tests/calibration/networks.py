"""Small floating-point networks in files, and what they are calibrated with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.package.tflite.builder import NetworkBuilder

Array = npt.NDArray[Any]

SHAPE = (1, 2, 6, 6)
"""Of the ONNX networks' input."""


def floats(numbers: Sequence[float]) -> Array:
    return np.array(numbers, np.float32)


def reals(count: int, shape: Sequence[int] = SHAPE[1:], seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(count, *shape)).astype(np.float32)


def onnx_file(
    path: Path, nodes: Sequence[Any], constants: dict[str, Array], outputs: Sequence[str],
    *, opset: int = 17, shape: Sequence[int | str] = SHAPE,
) -> Path:  # fmt: skip
    """Write a network with one input, `x`."""
    import onnx
    from onnx import helper, numpy_helper

    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )  # fmt: skip
    versions = [helper.make_opsetid("", opset)]
    path.write_bytes(
        helper.make_model(graph, opset_imports=versions, ir_version=8).SerializeToString()
    )
    return path


def classifier(folder: Path, *, opset: int = 17, batch: int | str = 1) -> Path:
    """Conv, Relu, GlobalAveragePool, Flatten, Gemm: `conv`, `relu`, `pool`, `flat`, `dense`."""
    from onnx import helper

    random = np.random.default_rng(3)
    constants = {
        "w": random.normal(size=(4, 2, 3, 3)).astype(np.float32),
        "b": random.normal(size=4).astype(np.float32),
        "dw": random.normal(size=(4, 3)).astype(np.float32),
        "db": random.normal(size=3).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["sums"], name="conv"),
        helper.make_node("Relu", ["sums"], ["maps"], name="relu"),
        helper.make_node("GlobalAveragePool", ["maps"], ["means"], name="pool"),
        helper.make_node("Flatten", ["means"], ["flat"], name="flat"),
        helper.make_node("Gemm", ["flat", "dw", "db"], ["y"], name="dense"),
    ]
    shape = (batch, *SHAPE[1:])
    return onnx_file(folder / "net.onnx", nodes, constants, ["y"], opset=opset, shape=shape)


def detector(folder: Path) -> Path:
    """Boxes up to some hundreds beside scores up to 1, joined: `boxes`, `scores`, `all`."""
    from onnx import helper

    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"], name="scores"),
        helper.make_node("Mul", ["x", "size"], ["b"], name="boxes"),
        helper.make_node("Concat", ["b", "s"], ["y"], name="all", axis=1),
    ]
    return onnx_file(folder / "net.onnx", nodes, {"size": floats([640])}, ["y"])


def tflite_file(folder: Path, weights: Array | None = None, bias: Array | None = None) -> Path:
    """A CONV_2D with a fused ReLU and a dense layer, as old converters write their codes."""
    net, random = NetworkBuilder(), np.random.default_rng(5)
    if weights is None:
        weights = random.normal(size=(4, 3, 3, 2)).astype(np.float32)
    if bias is None:
        bias = random.normal(size=4).astype(np.float32)
    dense = random.normal(size=(3, 64)).astype(np.float32)
    x = net.tensor("x", (1, 6, 6, 2), np.float32)
    w, b = net.constant("w", weights), net.constant("b", bias)
    maps = net.tensor("maps;bias;sums", (1, 4, 4, 4), np.float32)
    options = {"padding": 1, "stride_w": 1, "stride_h": 1, "fused_activation_function": 1}
    net.operator("CONV_2D", [x, w, b], [maps], ("Conv2DOptions", options))
    flat, shape = (
        net.tensor("flat", (1, 64), np.float32),
        net.constant("shape", np.array([1, 64], np.int32)),
    )
    net.operator(
        "RESHAPE",
        [maps, shape],
        [flat],
        ("ReshapeOptions", {"new_shape": np.array([1, 64], np.int32)}),
    )
    y = net.tensor("y", (1, 3), np.float32)
    given = [flat, net.constant("dw", dense), net.constant("db", np.zeros(3, np.float32))]
    net.operator("FULLY_CONNECTED", given, [y], ("FullyConnectedOptions", {}))
    path = folder / "net.tflite"
    path.write_bytes(net.finish([x], [y]))
    return path


def saved(folder: Path, array: Array, labels: Array | None = None) -> Path:
    """Write samples of the input `x`, with labels if there are any."""
    path = folder / "data.npz"
    named: dict[str, Any] = {"x": array} if labels is None else {"x": array, "labels": labels}
    np.savez(path, **named)
    return path
