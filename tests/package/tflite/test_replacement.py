"""Custom operators in the place of parts of a network."""

from __future__ import annotations

import numpy as np

from mizzen.artifact.steps import read_network as read
from mizzen.frontends.tflite import Model
from mizzen.package.tflite.builder import NetworkBuilder
from mizzen.package.tflite.replacement import Replacement, replace_operators


def chain() -> Model:
    """Two branches: a -> RELU -> b -> ABS -> c; a -> NEG -> d; c + d -> e."""
    builder = NetworkBuilder("chain")
    a, b, c, d, e = (builder.tensor(name, (1, 4), np.int8, 0.5) for name in "abcde")
    unused = builder.constant("two", np.full((1, 4), 2, np.int8), 0.5)
    f = builder.tensor("f", (1, 4), np.int8, 0.5)
    builder.operator("RELU", [a], [b])
    builder.operator("NEG", [a], [d])
    builder.operator("ABS", [b], [c])
    builder.operator("MAXIMUM", [c, unused], [f])
    builder.operator("ADD", [f, d], [e], ("AddOptions", {}))
    return read(builder.finish([a], [e]), "chain.tflite")


def named(model: Model) -> list[tuple[str, list[str], list[str]]]:
    main = model.main
    return [
        (
            row.kind,
            [main.tensors[index].name for index in row.inputs],
            [main.tensors[index].name for index in row.outputs],
        )
        for row in main.operators
    ]


def test_a_part_becomes_one_operator_in_its_place() -> None:
    model = chain()
    part = Replacement((0, 2, 3), "npu", (b"abc", b"d"), (0,), (6,))
    found = read(replace_operators(model.record, [part]).data, "found.tflite")
    assert named(found) == [
        ("npu", ["npu_0", "npu_1", "a"], ["f"]),
        ("NEG", ["a"], ["d"]),
        ("ADD", ["f", "d"], ["e"]),
    ]
    held = [tensor.data.tobytes() for tensor in found.main.tensors if tensor.data is not None]
    assert held == [b"abc", b"d"], "what nobody uses any more is left out"
    assert [found.main.tensors[index].name for index in found.main.outputs] == ["e"]


def test_operators_come_behind_what_they_take() -> None:
    model = chain()
    # The part begins with the first operator and needs what the second one gives.
    part = Replacement((0, 2, 3, 4), "npu", (), (0, 3), (4,))
    found = read(replace_operators(model.record, [part]).data, "found.tflite")
    assert [row[0] for row in named(found)] == ["NEG", "npu"]


def test_nothing_replaced_is_the_same_network() -> None:
    model = chain()
    found = read(replace_operators(model.record, []).data, "found.tflite")
    assert named(found) == named(model)
