"""Operators of old opsets, brought to the forms of today: what they compute stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .networks import computes_the_same, network, node, refusal, taken, tensor

X: list[int | str | None] = [1, 4, 6, 5]


def one(kind: str, opset: int, constants: dict[str, Any] | None = None, **attributes: Any) -> Any:
    """Make a network of one operator of an opset, whose other inputs are constants."""
    values = constants or {}
    return network(
        [node(kind, ["x", *values], ["y"], **attributes)],
        [tensor("x", X)],
        [tensor("y", None)],
        values,
        opset,
    )


OLD: list[tuple[str, int, dict[str, Any], list[str]]] = [
    ("Clip", 7, {"min": -0.5, "max": 0.25}, ["Clip"]),
    ("Clip", 7, {"max": 0.25}, ["Clip"]),
    ("Clip", 7, {}, ["Clip"]),
    ("Slice", 7, {"starts": [1, 0], "ends": [9, -1], "axes": [2, 3]}, ["Slice"]),
    ("Slice", 9, {"starts": [0, 1], "ends": [1, 3]}, ["Slice"]),
    ("Pad", 7, {"pads": [0, 0, 1, 2, 0, 0, 3, 0], "value": 1.5}, ["Pad"]),
    ("Pad", 9, {"pads": [0, 0, 1, 2, 0, 0, 3, 0], "mode": "reflect"}, ["Pad"]),
    ("Squeeze", 7, {"axes": [0]}, ["Squeeze"]),
    ("Squeeze", 11, {}, ["Squeeze"]),
    ("Unsqueeze", 11, {"axes": [0, 2]}, ["Unsqueeze"]),
    ("ReduceMean", 7, {"axes": [2, 3], "keepdims": 0}, ["ReduceMean"]),
    ("ReduceMax", 13, {"axes": [-1]}, ["ReduceMax"]),
    ("ReduceSum", 11, {"axes": [1]}, ["ReduceSum"]),
    ("ReduceL2", 13, {"axes": [1]}, ["ReduceL2"]),
    ("ReduceMin", 13, {}, ["ReduceMin"]),
    ("Softmax", 7, {}, ["Reshape", "Softmax", "Reshape"]),
    ("Softmax", 11, {"axis": 3}, ["Softmax"]),
    ("Softmax", 11, {"axis": -1}, ["Softmax"]),
    ("Softmax", 11, {"axis": 0}, ["Reshape", "Softmax", "Reshape"]),
    ("LogSoftmax", 12, {"axis": 2}, ["Reshape", "LogSoftmax", "Reshape"]),
    ("Hardmax", 12, {"axis": 2}, ["Reshape", "Hardmax", "Reshape"]),
    ("Upsample", 7, {"scales": [1.0, 1.0, 2.0, 3.0]}, ["Resize"]),
    ("Upsample", 7, {"scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear"}, ["Resize"]),
    ("Dropout", 7, {"ratio": 0.3}, ["Identity"]),
    ("Dropout", 13, {}, ["Identity"]),
    ("Flatten", 9, {"axis": 2}, ["Flatten"]),
    ("LeakyRelu", 7, {"alpha": 0.2}, ["LeakyRelu"]),
    ("AveragePool", 7, {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}, ["AveragePool"]),
    ("MaxPool", 8, {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}, ["MaxPool"]),
    ("Elu", 7, {}, ["Elu"]),
    ("DepthToSpace", 7, {"blocksize": 2}, ["DepthToSpace"]),
]


@pytest.mark.parametrize(("kind", "opset", "attributes", "kinds"), OLD)
def test_old_attributes(
    kind: str, opset: int, attributes: dict[str, Any], kinds: list[str]
) -> None:
    model = computes_the_same(one(kind, opset, **attributes), within=1e-6)
    assert [each.kind for each in model.nodes] == kinds
    assert {each.index for each in model.nodes} == {0}


NEW: list[tuple[str, int, dict[str, Any], dict[str, Any]]] = [
    ("Upsample", 9, {"scales": np.array([1, 1, 2, 2], np.float32)}, {}),
    ("Resize", 10, {"scales": np.array([1, 1, 2, 2], np.float32)}, {}),
    ("Resize", 10, {"scales": np.array([1, 1, 0.5, 0.6], np.float32)}, {}),
    ("Resize", 10, {"scales": np.array([1, 1, 2, 3], np.float32)}, {"mode": "linear"}),
    ("Resize", 13, {"r": np.zeros(0, np.float32), "s": np.array([1, 1, 2, 2], np.float32)},
     {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}),
    ("Slice", 10, {"a": [0], "b": [-1], "c": [2], "d": [2]}, {}),
    ("Slice", 13, {"a": [-1], "b": [-9], "c": [3], "d": [-2]}, {}),
    ("Pad", 18, {"p": [1, 2, 0, 1], "v": np.float32(2), "a": [3, 1]}, {}),
    ("Squeeze", 13, {"a": [0]}, {}),
    ("Reshape", 14, {"s": [0, -1]}, {}),
    ("Split", 13, {"s": [4]}, {"axis": 1}),
    ("CastLike", 19, {"t": np.zeros(1, np.float32)}, {}),
    ("ReduceMean", 18, {"a": [1]}, {"keepdims": 0}),
    ("TopK", 7, {}, {"k": 2}),
    ("Expand", 8, {"s": [2, 4, 6, 5]}, {}),
    ("Tile", 13, {"r": [1, 1, 2, 1]}, {}),
    ("BatchNormalization", 7, {k: np.arange(1, 5, dtype=np.float32) for k in "sbmv"}, {}),
    ("BatchNormalization", 9, {k: np.arange(1, 5, dtype=np.float32) for k in "sbmv"}, {}),
    ("BatchNormalization", 15, {k: np.arange(1, 5, dtype=np.float32) for k in "sbmv"}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "opset", "constants", "attributes"), NEW)
def test_forms_with_inputs(
    kind: str, opset: int, constants: dict[str, Any], attributes: dict[str, Any]
) -> None:
    model = one(kind, opset, constants, **attributes)
    if kind == "TopK":
        model.graph.node[0].output.append("places")
    computes_the_same(model, within=1e-6)


def test_splits_say_their_sizes() -> None:
    for opset, attributes in ((7, {"split": [1, 3]}), (7, {}), (13, {}), (18, {"num_outputs": 2})):
        model = network(
            [node("Split", ["x"], ["a", "b"], axis=1, **attributes)],
            [tensor("x", X)],
            [tensor("a", None), tensor("b", None)],
            opset=opset,
        )
        read = computes_the_same(model)
        sizes = read.constants[read.nodes[0].inputs[1]]
        assert sizes.tolist() == ([1, 3] if "split" in attributes else [2, 2])
        assert "num_outputs" not in read.nodes[0].attributes


def test_resizes_both_ways_are_refused() -> None:
    model = one("Resize", 10, {"scales": np.array([1, 1, 2, 0.5], np.float32)})
    assert refusal(model).code == "E194"


def test_dropout_gives_its_mask() -> None:
    model = network(
        [node("Dropout", ["x"], ["y", "mask"]), node("Relu", ["y"], ["z"])],
        [tensor("x", [2, 3])],
        [tensor("z", None), tensor("mask", None, 9)],
        opset=13,
    )
    read = taken(model)
    assert [each.kind for each in read.nodes] == ["Relu"]
    assert read.constants["mask"].all()


def test_dropout_that_trains_is_refused() -> None:
    constants = {"ratio": np.float32(0.5), "training": np.array(True)}
    assert refusal(one("Dropout", 13, constants)).code == "E194"


@pytest.mark.parametrize("opset", [1, 6, 99])
def test_opsets_that_are_not_read(opset: int) -> None:
    diagnostic = refusal(one("Relu", opset))
    assert diagnostic.code == "E194"
    assert "must be of opset 7 to" in diagnostic.message


@pytest.mark.parametrize(
    ("kind", "opset", "attributes", "code"),
    [
        ("Softmax", 11, {"axis": 9}, "E190"),
        ("Softmax", 11, {"axis": "last"}, "E190"),
        ("Clip", 7, {"min": "low"}, "E190"),
        ("Clip", 13, {"min": 1.0}, "E194"),
        ("Slice", 7, {"starts": [0]}, "E190"),
        ("Slice", 7, {"starts": [0], "ends": [1, 2]}, "E190"),
        ("Split", 13, {"axis": 4}, "E190"),
        ("Concat", 13, {}, "E190"),
        ("Relu", 13, {"extra": 1}, "E194"),
        ("NoSuch", 13, {}, "E194"),
        ("Upsample", 13, {"scales": [1.0, 1.0, 2.0, 2.0]}, "E194"),
        ("BatchNormalization", 7, {}, "E190"),
        ("Unsqueeze", 11, {"axes": [9]}, "E190"),
        ("Reshape", 14, {}, "E190"),
    ],
)
def test_nodes_that_are_wrong(kind: str, opset: int, attributes: dict[str, Any], code: str) -> None:
    diagnostic = refusal(one(kind, opset, **attributes))
    assert diagnostic.code == code
    assert diagnostic.origin.operator == 0
    assert diagnostic.origin.kind == kind
