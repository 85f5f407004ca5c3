"""Some nodes of a network as a file of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mizzen.artifact.onnx_steps import session_of
from mizzen.diagnostics import MizzenError
from mizzen.frontends.onnx import writing
from mizzen.frontends.onnx.writing import submodel

from .networks import network, node, onnx, ran, taken, tensor


def read_chain(opset: int = 17) -> Any:
    return taken(
        network(
            [
                node("Add", ["x", "a"], ["h"]),
                node("Mul", ["h", "b"], ["i"]),
                node("Softmax", ["i"], ["y"]),
            ],
            [tensor("x", [1, 3])],
            [tensor("y", None)],
            {"a": np.float32(1), "b": np.ones(3, np.float32)},
            opset,
        )
    )


def test_a_part_has_only_what_it_needs() -> None:
    model = read_chain()
    data = submodel(model, model.nodes[1:2], ["h"], ["i"])
    written = onnx.load_model_from_string(data)
    onnx.checker.check_model(written, full_check=True)
    assert [each.name for each in written.graph.initializer] == ["b"]
    assert [each.name for each in written.graph.input] == ["h"]
    value = np.array([[1, 2, 3]], np.float32)
    assert ran(data, {"h": value}, ["i"])[0].tolist() == value.tolist()


def test_the_opset_is_the_oldest_of_the_forms() -> None:
    model = read_chain(opset=28 if onnx.defs.onnx_opset_version() >= 28 else 21)
    for nodes, opset in ((model.nodes[:1], 14), (model.nodes, 14)):
        data = submodel(model, nodes, ["x"], [nodes[-1].outputs[0]])
        written = onnx.load_model_from_string(data)
        assert {each.domain: each.version for each in written.opset_import} == {"": opset}
        assert written.ir_version == 10


def test_the_same_nodes_are_the_same_bytes() -> None:
    model = read_chain()
    first, second = (submodel(model, model.nodes, ["x"], ["y"]) for _ in range(2))
    assert first == second


def test_constants_that_are_outputs() -> None:
    model = taken(
        network([node("Constant", [], ["y"], value_ints=[1, 2])], [], [tensor("y", None, 7)])
    )
    data = submodel(model, model.nodes, [], ["y"])
    assert ran(data, {}, ["y"])[0].tolist() == [1, 2]


def test_too_many_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_BYTES", 8)
    model = read_chain()
    with pytest.raises(MizzenError) as caught:
        submodel(model, model.nodes, ["x"], ["y"])
    assert caught.value.diagnostic.code == "E192"


def test_dequantised_constants_have_one_user() -> None:
    """ONNX Runtime refuses to load the network with one for both additions, asked to be exact."""
    constants = {
        "q": np.array([3, -4, 5], np.int8),
        "s": np.float32(0.5),
        "z": np.int8(1),
        "t": np.float32(0.25),
    }
    nodes = [
        node("DequantizeLinear", ["q", "s", "z"], ["a"]),
        node("QuantizeLinear", ["x", "t", "z"], ["xq"]),
        node("DequantizeLinear", ["xq", "t", "z"], ["xr"]),
        node("Add", ["xr", "a"], ["h"]),
        node("QuantizeLinear", ["h", "t", "z"], ["hq"]),
        node("DequantizeLinear", ["hq", "t", "z"], ["hr"]),
        node("Add", ["hr", "a"], ["i"]),
        node("QuantizeLinear", ["i", "t", "z"], ["y"]),
    ]
    model = taken(
        network(nodes, [tensor("x", [1, 3])], [tensor("y", None, onnx.TensorProto.INT8)], constants)
    )
    data = submodel(model, model.nodes, ["x"], ["y"])
    written = onnx.load_model_from_string(data)
    onnx.checker.check_model(written, full_check=True)
    session = session_of(data, "a network")
    value = np.array([[1, 2, 3]], np.float32)
    assert session.run(["y"], {"x": value})[0].tolist() == [[13, -11, 29]]
    held = {each.name for each in written.graph.initializer}
    own = [each for each in written.graph.node if each.input[0] in held]
    assert [each.op_type for each in own] == ["DequantizeLinear"] * 2
    assert not {*own[0].input} & {*own[1].input}
