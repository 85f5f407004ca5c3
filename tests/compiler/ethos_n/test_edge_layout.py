"""Views at the edges of a region: out of its graph, done by the host in one movement each."""

from __future__ import annotations

import numpy as np

from mizzen.artifact.interface import Array
from mizzen.compiler.ethos_n.edge_layout import EdgeTransposes, images_last, take_out_views
from mizzen.graph import DType, Graph, Quantization, TensorType, Value
from mizzen.ops import Builder
from mizzen.passes.layout import Movement
from mizzen.reference import evaluate
from mizzen.targets.ethos_n.patterns import prepare

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
Q = Quantization((0.05,), (3,))


class Region:
    """A graph in the making, and what it gives before anything is taken out."""

    def __init__(self, *shapes: tuple[int, ...]) -> None:
        self.graph = Graph()
        self.b = Builder(self.graph, None, 0)
        self.inputs = [self.graph.add_input(TensorType(row, DType.INT8, Q)) for row in shapes]
        random = np.random.default_rng(0)
        self.given = [random.integers(-128, 128, row, np.int8) for row in shapes]

    def transpose(self, value: Value, perms: tuple[int, ...]) -> Value:
        return self.b("TRANSPOSE", value, perms=perms, quantization=Q)

    def reshape(self, value: Value, *shape: int) -> Value:
        return self.b("RESHAPE", value, self.b.constant(shape, DType.SHAPE), quantization=Q)

    def pool(self, value: Value) -> Value:
        return self.b(
            "MAX_POOL2D", value, kernel=(2, 2), stride=(2, 2), pad=(0,) * 4, quantization=Q
        )

    def clamp(self, value: Value) -> Value:
        return self.b("CLAMP", value, min_val=-90, max_val=90, quantization=Q)

    def joined(self, one: Value, other: Value) -> Value:
        return self.b("CONCAT", one, other, axis=1, quantization=Q)

    def kinds_within(self) -> list[str]:
        return [row.kind for row in self.graph.sorted() if not row.kind.startswith("CONST")]


def turned(region: Region, *outputs: Value) -> EdgeTransposes:
    """Take the views out, and check that with them the region gives what it did."""
    shapes = [value.shape for value in outputs]
    region.graph.set_outputs(outputs)
    wanted = evaluate(region.graph, region.given)
    before = images_last(region.graph)
    prepare(region.graph)
    turns = take_out_views(region.graph, before)
    inner = [
        _moved(array, turn).reshape(value.shape)
        for array, turn, value in zip(region.given, turns.inputs, region.graph.inputs, strict=True)
    ]
    found = evaluate(region.graph, inner)
    for one, turn, shape, other in zip(found, turns.outputs, shapes, wanted, strict=True):
        np.testing.assert_array_equal(_moved(one, turn).reshape(shape), other)
    return turns


def _moved(array: Array, turn: Movement | None) -> Array:
    return array if turn is None else array.reshape(turn.shape).transpose(turn.perms)


def test_channels_first_outside() -> None:
    region = Region((1, 4, 8, 6))
    value = region.pool(region.transpose(region.inputs[0], LAST))
    turns = turned(region, region.transpose(value, FIRST))
    assert turns == EdgeTransposes(
        (Movement((1, 4, 8, 6), LAST),), (Movement((1, 4, 3, 4), FIRST),)
    )
    assert region.kinds_within() == ["MAX_POOL2D"]


def test_channels_last_outside() -> None:
    region = Region((1, 8, 6, 4))
    assert turned(region, region.pool(region.inputs[0])) == EdgeTransposes((None,), (None,))


def test_what_takes_two_images_finds_both_with_channels_last() -> None:
    """One of them is computed with channels last, so the other is moved, at the edge."""
    region = Region((1, 4, 8, 8), (1, 4, 4, 4))
    first = region.pool(region.transpose(region.inputs[0], LAST))
    both = region.joined(region.transpose(first, FIRST), region.inputs[1])
    last = region.transpose(region.pool(region.transpose(both, LAST)), FIRST)
    turns = turned(region, last)
    assert turns.inputs == (Movement((1, 4, 8, 8), LAST), Movement((1, 4, 4, 4), LAST))
    assert region.kinds_within() == ["MAX_POOL2D", "CONCAT", "MAX_POOL2D"]


def test_a_head_that_becomes_boxes() -> None:
    """Five axes outside are nothing to the NPU."""
    region = Region((1, 4, 4, 10))
    value = region.transpose(region.pool(region.inputs[0]), FIRST)
    value = region.transpose(region.reshape(value, 1, 2, 5, 2, 2), (0, 1, 3, 4, 2))
    turns = turned(region, region.reshape(value, 1, 8, 5))
    assert turns.outputs == (Movement((4, 2, 5), (1, 0, 2)),)
    assert region.kinds_within() == ["MAX_POOL2D"]


def test_an_input_that_two_want_in_other_orders_stays() -> None:
    region = Region((1, 4, 4, 4))
    (x,) = region.inputs
    turns = turned(region, region.pool(x), region.pool(region.transpose(x, (0, 2, 1, 3))))
    assert turns.inputs == (None,)
    assert region.kinds_within().count("TRANSPOSE") == 1


def test_an_output_that_is_used_within_too() -> None:
    region = Region((1, 4, 8, 8))
    value = region.transpose(region.pool(region.transpose(region.inputs[0], LAST)), FIRST)
    last = region.transpose(region.pool(region.transpose(value, LAST)), FIRST)
    turned(region, value, last)
    assert region.kinds_within() == ["MAX_POOL2D", "MAX_POOL2D"]


def test_an_input_that_is_given_back() -> None:
    region = Region((1, 4, 8, 8))
    (x,) = region.inputs
    turned(region, region.transpose(x, LAST), region.clamp(x))


def test_rows_of_a_sequence() -> None:
    """RESHAPEs alone move nothing."""
    region = Region((2, 8, 4))
    value = region.pool(region.reshape(region.inputs[0], 1, 4, 4, 4))
    assert turned(region, region.reshape(value, 4, 4)) == EdgeTransposes((None,), (None,))
    assert region.kinds_within() == ["MAX_POOL2D"]
