"""Graphs of TOSA through our rules: what the reference gives, what is refused, and what is left."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from mizzen.graph import DType, Graph, Value
from mizzen.ops import Builder
from mizzen.reference.evaluation import evaluate
from mizzen.targets.ethos_u.generator.lower import lower, lower_in_runs
from mizzen.targets.ethos_u.generator.operations import Convolution, Elementwise, Pooling

from ....passes.networks import inputs_of, networks  # noqa: TID252 tests are no package with a name
from .interpreter import interpret
from .small_graphs import Build, graph_of, scaled


def require_same(graph: Graph, operations: int | None = None) -> None:
    """Hold the sequence of a graph to the reference, and to a number of operations."""
    found = lower(graph)
    assert found.sequence is not None, [row.reason for row in found.refusals]
    draw = np.random.default_rng(1)
    inputs = [
        draw.integers(-128, 128, value.shape).astype(value.dtype.numpy) for value in graph.inputs
    ]
    wanted = evaluate(graph, inputs)
    for one, other in zip(interpret(found.sequence, inputs), wanted, strict=True):
        assert np.array_equal(one.ravel(), other.ravel())
    if operations is not None:
        assert len(found.sequence.operations) == operations


def product(b: Builder, x: Value) -> Value:
    """x times its own transpose, of several matrices."""
    zero = b.constant([3], DType.INT8)
    sums = b("MATMUL", x, b("TRANSPOSE", x, perms=(0, 2, 1)), zero, zero)
    return scaled(b, sums, DType.INT8, 1 << 30, 38, (0, -5))


def wide_chain(b: Builder, x: Value) -> Value:
    """Sums of 32 bits that no 8-bit operation gives: x * x + 5, scaled down."""
    wide = scaled(b, x, DType.INT32, zeros=(4, 0))
    square = b("MUL", wide, wide, b.constant([0], DType.INT8))
    total = b("ADD", square, b.constant(np.full((1, 1, 1), 5), DType.INT32))
    least = b("MINIMUM", total, scaled(b, x, DType.INT32, 1 << 30, 24))
    return scaled(b, least, DType.INT8, 1 << 30, 37)


def functions(b: Builder, x: Value) -> Value:
    """A pool, a clamp, a table, another scale: all behind the pool."""
    pool = b("MAX_POOL2D", x, kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0))
    bounded = b("CLAMP", pool, min_val=-100, max_val=90)
    table = b.constant(np.arange(-128, 128)[::-1].copy(), DType.INT8)
    return scaled(b, b("TABLE", bounded, table), DType.INT8, 3 << 29, 31, (2, -7))


def moves(b: Builder, x: Value) -> Value:
    """Parts of x, turned and backwards, behind each other and padded."""
    one = b("SLICE", x, b.shape((0, 1, 0, 2)), b.shape((1, 3, 4, 3)))
    other = b("REVERSE", b("SLICE", x, b.shape((0, 0, 1, 0)), b.shape((1, 3, 4, 3))), axis=2)
    joined = b("CONCAT", one, other, axis=1)
    turned = b("TRANSPOSE", joined, perms=(0, 3, 1, 2))
    filling = b.constant([9], DType.INT8)
    return b("PAD", turned, b.shape((0, 0, 1, 0, 0, 2, 1, 1)), filling)


def sums(b: Builder, x: Value) -> Value:
    """A mean over rows of what a sum over channels gives."""
    wide = scaled(b, x, DType.INT32, zeros=(-3, 0))
    over = b("REDUCE_SUM", b("REDUCE_SUM", wide, axis=3), axis=1)
    return scaled(b, over, DType.INT8, 1 << 30, 34)


def shuffle(b: Builder, x: Value) -> Value:
    """Channels in three groups, one of each in turn."""
    return exchanged(b, x, 3)


def exchanged(b: Builder, x: Value, groups: int) -> Value:
    height, width, channels = x.shape[1:]
    apart = b.shape((height, width, groups, channels // groups))
    turned = b("TRANSPOSE", b("RESHAPE", x, apart), perms=(0, 1, 3, 2))
    return b("RESHAPE", turned, b.shape(x.shape))


def shuffled_part(b: Builder, x: Value) -> Value:
    """Channels 8 to 20 in two groups, behind others."""
    part = b("SLICE", x, b.shape((0, 0, 0, 8)), b.shape((1, *x.shape[1:3], 12)))
    return b("CONCAT", x, exchanged(b, part, 2), axis=3)


def many_channels_exchanged(b: Builder, x: Value) -> Value:
    """Two groups of more channels than one convolution is worth."""
    return exchanged(b, x, 2)


def padded_and_scaled(b: Builder, x: Value) -> Value:
    """Rows padded, all in one row, and that in another scale."""
    padded = b("PAD", x, b.shape((0, 0, 2, 0, 0, 0, 0, 0)), b.constant([66], DType.INT8))
    flat = b("RESHAPE", padded, b.shape((int(np.prod(padded.shape)),)))
    return scaled(b, flat, DType.INT8, 3 << 28, 30, (7, -3))


def summed_and_padded(b: Builder, x: Value) -> Value:
    """A mean over the columns, in the middle of three."""
    total = b("REDUCE_SUM", scaled(b, x, DType.INT32, zeros=(5, 0)), axis=2)
    narrow = scaled(b, total, DType.INT8, 1 << 30, 32, (0, 5))
    return b("PAD", narrow, b.shape((0, 0, 0, 0, 1, 1, 0, 0)), b.constant([5], DType.INT8))


def padded_for_each(b: Builder, x: Value) -> Value:
    """A channel more on both sides, and weights of its own for each of all."""
    padded = b("PAD", x, b.shape((0, 0, 1, 1, 0, 0, 1, 1)), b.constant([2], DType.INT8))
    channels = padded.shape[3]
    weights = np.random.default_rng(4).integers(-127, 128, (2, 2, channels, 1)).astype(np.int8)
    sums = b(
        "DEPTHWISE_CONV2D", padded, b.constant(weights, DType.INT8),
        b.constant(np.arange(channels), DType.INT32), b.constant([2], DType.INT8),
        b.constant([0], DType.INT8), pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1),
    )  # fmt: skip
    return scaled(b, sums, DType.INT8, 1 << 30, 38)


@pytest.mark.parametrize(
    ("build", "shape", "operations"),
    [
        (padded_for_each, (1, 4, 3, 6), None),
        (padded_and_scaled, (1, 4, 3, 6), 3),
        (summed_and_padded, (1, 5, 4, 16), 3),
        (shuffle, (1, 5, 7, 24), 1),
        (shuffle, (1, 1, 2, 24), 2),
        (shuffled_part, (1, 6, 5, 20), 2),
        (many_channels_exchanged, (1, 4, 8, 160), 2),
        (product, (2, 6, 5), 12),
        (wide_chain, (3, 4, 8), None),
        (functions, (1, 6, 8, 5), 1),
        (moves, (1, 4, 5, 6), None),
        (sums, (1, 5, 3, 16), None),
    ],
)
def test_a_graph_is_what_the_reference_gives(
    build: Build, shape: tuple[int, ...], operations: int | None
) -> None:
    require_same(graph_of(shape, build), operations)


def compared(b: Builder, x: Value) -> Value:
    """A convolution's like: a scale, a comparison that no rule takes, and a sum behind it."""
    before = scaled(b, x, DType.INT8, 3 << 29, 31)
    wide = scaled(b, before, DType.INT32)
    truth = b("GREATER", wide, b.constant(np.zeros((1, 1), np.int32), DType.INT32))
    chosen = b("SELECT", truth, before, x)
    behind = scaled(b, chosen, DType.INT32)
    return scaled(b, b("ADD", behind, scaled(b, x, DType.INT32)), DType.INT8, 1 << 30, 31)


def test_what_no_rule_takes_is_named_with_the_reason() -> None:
    found = lower(graph_of((4, 8), compared))
    assert found.sequence is None
    assert [(row.operation.kind, row.reason) for row in found.refusals] == [
        ("GREATER", "no rule has a form of GREATER, but Ethos-U85 has one"),
        ("SELECT", "no rule has a form of SELECT, but Ethos-U85 has one"),
    ]


def test_the_rest_is_lowered_in_runs_that_give_what_the_graph_gives() -> None:
    graph = graph_of((4, 8), compared)
    found = lower_in_runs(graph)
    assert [row.operation.kind for row in found.refusals] == ["GREATER", "SELECT"]
    assert len(found.runs) == 2
    (x,) = inputs = [np.random.default_rng(2).integers(-128, 128, (4, 8)).astype(np.int8)]
    known: dict[Value, np.ndarray] = {graph.inputs[0]: x}

    def note(value: Value, array: np.ndarray) -> None:
        known[value] = array

    evaluate(graph, inputs, trace=note)
    for run in found.runs:
        given = [known[value] for value in run.inputs]
        for value, array in zip(run.outputs, interpret(run.sequence, given), strict=True):
            assert np.array_equal(array.ravel(), known[value].ravel())


def test_what_is_joined_is_written_at_its_place() -> None:
    """Both parts of a CONCAT are written into it at once, and PADs are the convolution's own."""

    def build(b: Builder, x: Value) -> Value:
        parts = [scaled(b, x, DType.INT8, 3 << 29, 31), scaled(b, x, DType.INT8, 5 << 28, 32)]
        joined = b("CONCAT", *parts, axis=3)
        padded = b("PAD", joined, b.shape((0, 0, 1, 1, 1, 1, 0, 0)), b.constant([2], DType.INT8))
        weights = np.random.default_rng(3).integers(-127, 128, (8, 3, 3, 12)).astype(np.int8)
        sums = b(
            "CONV2D", padded, b.constant(weights, DType.INT8),
            b.constant(np.arange(8), DType.INT32), b.constant([2], DType.INT8),
            b.constant([0], DType.INT8), pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1),
        )  # fmt: skip
        return scaled(b, sums, DType.INT8, 1 << 30, 41)

    graph = graph_of((1, 4, 4, 6), build)
    require_same(graph, 3)
    found = lower(graph).sequence
    assert found is not None
    kinds = [type(row) for row in found.operations]
    assert kinds == [Pooling, Pooling, Convolution]
    assert Elementwise not in kinds


@pytest.mark.parametrize(
    ("kernel", "stride"), [((4, 4), (4, 4)), ((5, 3), (5, 4)), ((1, 6), (1, 5))]
)
def test_strides_beyond_the_machine_s(kernel: tuple[int, int], stride: tuple[int, int]) -> None:
    height, width = 3 * stride[0], 4 * stride[1]

    def build(b: Builder, x: Value) -> Value:
        weights = np.random.default_rng(4).integers(-127, 128, (8, *kernel, 3)).astype(np.int8)
        rows, columns = (height - kernel[0]) // stride[0], (width - kernel[1]) // stride[1]
        size = (rows * stride[0] + kernel[0], columns * stride[1] + kernel[1])
        seen = b("SLICE", x, b.shape((0, 0, 0, 0)), b.shape((1, *size, 3)))
        sums = b(
            "CONV2D", seen, b.constant(weights, DType.INT8), b.constant(np.arange(8), DType.INT32),
            b.constant([5], DType.INT8), b.constant([0], DType.INT8),
            pad=(0, 0, 0, 0), stride=stride, dilation=(1, 1),
        )  # fmt: skip
        return scaled(b, sums, DType.INT8, 1 << 30, 40)

    require_same(graph_of((1, height, width, 3), build))


@given(networks())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_random_networks_are_what_the_reference_gives(graph: Graph) -> None:
    """In runs, whatever no rule takes."""
    inputs = inputs_of(graph)
    known: dict[Value, np.ndarray] = dict(zip(graph.inputs, inputs, strict=True))

    def note(value: Value, array: np.ndarray) -> None:
        known[value] = array

    evaluate(graph, inputs, trace=note)
    for run in lower_in_runs(graph).runs:
        given_ = [known[value] for value in run.inputs]
        for value, array in zip(run.outputs, interpret(run.sequence, given_), strict=True):
            assert np.array_equal(array.ravel(), known[value].ravel())
