"""What the host computes for an ONNX network: roundings, signs, and operators in ONNX Runtime."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from mizzen.artifact import onnx_steps
from mizzen.artifact.host_steps import QuantizeStep, Values
from mizzen.artifact.onnx_parts import require_plain
from mizzen.artifact.onnx_steps import DivideStep, OrtStep, SignStep, other_sign
from mizzen.diagnostics import MizzenError

INT8 = np.dtype(np.int8)


def test_real_numbers_are_divided_by_the_scale() -> None:
    scale = float(np.float32(0.037))
    ties = ((np.arange(-100, 100) + 0.5) * scale).astype(np.float32)
    reals = np.concatenate([ties, np.nextafter(ties, np.float32(9)), np.nextafter(ties, -ties)])
    values: Values = {0: reals[np.newaxis]}
    DivideStep(0, 1, scale, 3, -128, 127, INT8).run(values, 1)
    QuantizeStep(0, 2, scale, 3, -128, 127, INT8).run(values, 1)
    expected = np.clip(np.rint(reals / np.float32(scale)) + 3, -128, 127).astype(np.int8)
    assert np.array_equal(values[1][0], expected)
    assert not np.array_equal(values[2][0], expected)


def test_what_is_beyond_the_integers_is_cut() -> None:
    values: Values = {0: np.array([[np.inf, -np.inf, np.nan, 3e38, 0.5, 1.5]], np.float32)}
    DivideStep(0, 1, 1e-3, 0, -128, 127, INT8).run(values, 1)
    assert values[1].tolist() == [[127, -128, 0, 127, 127, 127]]
    DivideStep(0, 1, 1.0, 0, -128, 127, INT8).run(values, 1)
    assert values[1][0, 4:].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("unsigned", "signed"), [(np.uint8, np.int8), (np.uint16, np.int16)], ids=["8", "16"]
)
def test_signs_go_by_half_of_the_range(unsigned: type, signed: type) -> None:
    every = np.arange(np.iinfo(unsigned).max + 1).astype(unsigned)
    values: Values = {0: every[np.newaxis]}
    SignStep(0, 1).run(values, 1)
    SignStep(1, 2).run(values, 1)
    half = (np.iinfo(unsigned).max + 1) // 2
    assert values[1].dtype == signed
    assert np.array_equal(values[1][0], every.astype(np.int64) - half)
    assert np.array_equal(values[2][0], every)
    assert values[2].dtype == unsigned


def test_signs_of_arrays_that_lie_apart() -> None:
    apart = np.arange(12, dtype=np.uint8).reshape(3, 4).T
    assert np.array_equal(other_sign(apart), apart.astype(np.int64) - 128)


def part(kind: str = "Relu") -> bytes:
    """Return a network of one operator."""
    pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")
    from onnx import TensorProto, helper

    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    node = helper.make_node(kind, ["x"], ["y"])
    graph = helper.make_graph([node], "part", ports[:1], ports[1:])
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString()


def step(network: bytes) -> OrtStep:
    return OrtStep(network, (0,), (1,), (np.dtype(np.float32),), ("Relu",))


def test_operators_are_computed_one_inference_after_the_other() -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    given = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 2, 3)
    values: Values = {0: given}
    step(part()).run(values, 4)
    assert np.array_equal(values[1], np.maximum(given, 0))


def test_values_that_do_not_suit() -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    with pytest.raises(MizzenError) as caught:
        step(part()).run({0: np.zeros((1, 5), np.float32)}, 1)
    assert str(caught.value).startswith("error[E725]: ONNX Runtime must compute Relu, but says: ")


def test_a_network_that_the_runtime_does_not_take() -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    with pytest.raises(MizzenError) as caught:
        step(b"no network").run({0: np.zeros((1, 2, 3), np.float32)}, 1)
    assert caught.value.diagnostic.code == "E725"


def test_without_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MizzenError) as caught:
        step(b"").run({0: np.zeros((1, 2, 3), np.float32)}, 1)
    first, second = str(caught.value).splitlines()
    assert first.startswith("error[E195]: the package onnxruntime must be installed to compute ")
    assert (
        second == "  help install Mizzen with its extra onnx: pip install '.[onnx]' in its checkout"
    )


def test_integers_in_the_type_that_the_network_has() -> None:
    bytes_ = np.array([-128, 0, 127], np.int8)
    assert onnx_steps.as_type(bytes_, np.dtype(np.uint8)).tolist() == [0, 128, 255]
    wide = onnx_steps.as_type(np.array([7], np.int32), np.dtype(np.int64))
    assert wide.dtype == np.int64


def refusal(network: bytes) -> str:
    with pytest.raises(ValueError, match=r"^it ") as caught:
        require_plain(network, "net.zip")
    return str(caught.value)


def test_parts_that_name_other_files_and_libraries() -> None:
    onnx = pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")
    require_plain(part(), "net.zip")
    foreign = onnx.load_model_from_string(part())
    foreign.graph.node[0].domain = "my.library"
    assert refusal(foreign.SerializeToString()) == "it has an operator of my.library"

    outside = onnx.load_model_from_string(part())
    tensor = outside.graph.initializer.add(name="w", data_type=1, dims=[1])
    tensor.external_data.add(key="location", value="/etc/passwd")
    assert refusal(outside.SerializeToString()) == "it has w in another file"

    held = onnx.load_model_from_string(part("Constant"))
    attribute = held.graph.node[0].attribute.add(name="value")
    attribute.t.name, attribute.t.data_location = "v", 1
    assert refusal(held.SerializeToString()) == "it has v in another file"

    functions = onnx.load_model_from_string(part())
    functions.functions.add(name="f", domain="my")
    assert refusal(functions.SerializeToString()) == "it has functions of its own"


def test_parts_in_one_another() -> None:
    onnx = pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")
    inner = onnx.load_model_from_string(part()).graph
    inner.node[0].domain = "my.library"
    for _ in range(3):
        node = onnx.helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
        inner = onnx.helper.make_graph([node], "outer", [], [])
    model = onnx.helper.make_model(inner)
    assert refusal(model.SerializeToString()) == "it has an operator of my.library"
    for _ in range(20):
        node = onnx.helper.make_node("If", ["c"], ["y"], then_branch=inner)
        inner = onnx.helper.make_graph([node], "outer", [], [])
    deep = onnx.helper.make_model(inner).SerializeToString()
    assert refusal(deep).startswith(("it has networks in", "it is damaged"))


def test_damaged_parts() -> None:
    pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")
    data = part()
    assert refusal(data[:-3]).startswith("it is damaged")
