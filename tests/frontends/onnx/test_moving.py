"""Integers are moved, not numbers, where a network begins and ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .networks import computes_the_same, kinds, network, node, tensor

QUANTISED = {"s": np.float32(0.05), "z": np.int8(3)}


def q(source: str, result: str) -> Any:
    return node("QuantizeLinear", [source, "s", "z"], [result])


def dq(source: str, result: str) -> Any:
    return node("DequantizeLinear", [source, "s", "z"], [result])


def turned(nodes: list[Any], extra: dict[str, Any] | None = None, outputs: str = "y") -> Any:
    return network(
        nodes,
        [tensor("x", [1, 4, 5, 3])],
        [tensor(name, None) for name in outputs],
        {**QUANTISED, "flat": [1, -1], **(extra or {})},
    )


def test_inputs_are_quantised_first() -> None:
    model = computes_the_same(
        turned(
            [
                node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
                node("Reshape", ["t", "flat"], ["r"]),
                q("r", "a"),
                dq("a", "b"),
                node("Relu", ["b"], ["y"]),
            ]
        )
    )
    assert kinds(model)[:3] == ["QuantizeLinear", "Transpose", "Reshape"]
    assert [each.index for each in model.nodes[:3]] == [2, 0, 1]
    assert model.nodes[0].inputs[0] == "x"
    assert model.types[model.nodes[0].outputs[0]].dtype == np.int8
    assert model.types[model.nodes[0].outputs[0]].shape == (1, 4, 5, 3)
    assert model.nodes[2].outputs == ("a",)


def test_outputs_are_dequantised_last() -> None:
    model = computes_the_same(
        turned(
            [
                q("x", "a"),
                dq("a", "b"),
                node("Transpose", ["b"], ["t"], perm=[0, 3, 1, 2]),
                node("Flatten", ["t"], ["y"]),
            ]
        )
    )
    assert kinds(model) == ["QuantizeLinear", "Transpose", "Flatten", "DequantizeLinear"]
    assert model.nodes[-1].outputs == ("y",)


@pytest.mark.parametrize(
    ("nodes", "outputs", "first"),
    [
        ([node("Transpose", ["x"], ["t"]), q("t", "a"), dq("a", "y"), node("Neg", ["t"], ["w"])],
         "yw", "Transpose"),
        ([node("Transpose", ["x"], ["t"]), q("t", "a"), dq("a", "y")], "yt", "Transpose"),
        ([node("Neg", ["x"], ["n"]), node("Transpose", ["n"], ["t"]), q("t", "a"), dq("a", "y")],
         "y", "Neg"),
    ],
)  # fmt: skip
def test_what_something_else_needs_stays(nodes: list[Any], outputs: str, first: str) -> None:
    assert kinds(computes_the_same(turned(nodes, outputs=outputs)))[0] == first


def test_scales_of_channels_stay_where_they_are() -> None:
    model = turned(
        [
            node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
            node("QuantizeLinear", ["t", "cs", "cz"], ["a"]),
            node("DequantizeLinear", ["a", "cs", "cz"], ["y"]),
        ],
        {"cs": np.array([0.1, 0.2, 0.3], np.float32), "cz": np.zeros(3, np.int8)},
    )
    assert kinds(computes_the_same(model))[0] == "Transpose"
