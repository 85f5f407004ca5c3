"""Attention, and functions of single integers, by U85's rules: what the reference gives."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from mizzen.graph import DType, Graph, Value
from mizzen.ops import Builder
from mizzen.reference.evaluation import evaluate
from mizzen.targets.ethos_u.generator.arrange import best, in_planes, swap
from mizzen.targets.ethos_u.generator.arrange.orientation import (
    NEVER,
    Orientation,
    OrientationCosts,
)
from mizzen.targets.ethos_u.generator.lower import lower, lower_in_runs
from mizzen.targets.ethos_u.generator.operations import MatrixProduct, Pooling, Sequence
from mizzen.targets.ethos_u.generator.schedule import Estimator
from mizzen.targets.ethos_u.machine.commands_values import Arch
from mizzen.targets.ethos_u.machine.system_config import resolve

from ....passes.networks import inputs_of, networks  # noqa: TID252 tests are no package with a name
from .interpreter import interpret, is_same
from .small_graphs import Build, graph_of, scaled

NO_SHIFT = ([0], DType.INT8)


def held(graph: Graph, seed: int = 1) -> Sequence:
    """Hold the sequence of a graph to the reference; return it."""
    found = lower(graph, (), Arch.U85)
    assert found.sequence is not None, [row.reason for row in found.refusals]
    draw = np.random.default_rng(seed)
    inputs = [
        draw.integers(-128, 128, value.shape).astype(value.dtype.numpy) for value in graph.inputs
    ]
    wanted = evaluate(graph, inputs)
    for one, other in zip(interpret(found.sequence, inputs), wanted, strict=True):
        assert np.array_equal(one.ravel(), other.ravel())
    return found.sequence


def pooled(b: Builder, x: Value) -> Value:
    """What an operation gives that can have a table."""
    return b("MAX_POOL2D", x, kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0))


def wide(b: Builder, values: list[int]) -> Value:
    """Return numbers of 32 bits that a graph gives as bytes."""
    count = len(values)
    small = b.constant(np.array(values).reshape(1, 1, 1, count), DType.INT8)
    return scaled(b, small, DType.INT32, 3 << 28, 30)


def combined(kind: str, values: list[int]) -> Build:
    """Return a graph with a combination of a pool's results and constants."""

    def build(b: Builder, x: Value) -> Value:
        one = scaled(b, pooled(b, x), DType.INT32, zeros=(3, 0))
        operands = [one, wide(b, values)]
        if kind == "MUL":
            operands.append(b.constant(*NO_SHIFT))
        return scaled(b, b(kind, *operands), DType.INT8, 1 << 30, 32, (0, -7))

    return build


@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"])
def test_a_function_of_bytes_is_a_table(kind: str) -> None:
    sequence = held(graph_of((1, 4, 6, 5), combined(kind, [9])))
    (operation,) = sequence.operations
    assert isinstance(operation, Pooling)
    assert operation.activation.table is not None


@pytest.mark.parametrize("axis", range(3))
def test_the_greatest_of_one_line_has_nothing_beside_it(axis: int) -> None:
    def build(b: Builder, x: Value) -> Value:
        return b("REDUCE_MAX", scaled(b, x, DType.INT8, 1 << 30, 30), axis=axis)

    for shape in ((1, 12, 1), (12, 1, 1), (1, 1, 12)):
        held(graph_of(shape, build))


@pytest.mark.parametrize("kind", ["ADD", "MUL"])
def test_other_numbers_for_each_channel_are_no_table(kind: str) -> None:
    sequence = held(graph_of((1, 4, 6, 5), combined(kind, [1, 2, 3, 4, 5])))
    assert len(sequence.operations) > 1


@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"])
def test_equal_numbers_that_make_more_of_each_are_no_table(kind: str) -> None:
    held(graph_of((1, 4, 6, 1), combined(kind, [9] * 5)))


def test_a_function_that_changes_nothing_is_none() -> None:
    def build(b: Builder, x: Value) -> Value:
        one = scaled(b, pooled(b, x), DType.INT32, zeros=(3, 0))
        ones = scaled(b, b.constant([[[[1]]]], DType.INT8), DType.INT32)
        product = b("MUL", one, ones, b.constant(*NO_SHIFT))
        return scaled(b, product, DType.INT8, (1 << 30) + 40, 30, (0, 3))

    (operation,) = held(graph_of((1, 4, 6, 5), build)).operations
    assert isinstance(operation, Pooling)
    assert operation.activation.table is None


def test_a_function_to_more_bits_is_no_table() -> None:
    """Products with a constant of all zeros, which a recurrent cell begins with."""

    def build(b: Builder, x: Value) -> Value:
        one = scaled(b, scaled(b, x, DType.INT16), DType.INT32)
        none = b.constant(np.zeros(x.shape), DType.INT16)
        product = b("MUL", one, scaled(b, none, DType.INT32), b.constant(*NO_SHIFT))
        return scaled(b, product, DType.INT16, 1 << 30, 40)

    held(graph_of((1, 2, 3, 5), build))


def rows_of(b: Builder, x: Value, outputs: int, seed: int) -> Value:
    """Return a dense layer over rows [1, N, C]."""
    draw = np.random.default_rng(seed)
    _, count, depth = x.shape
    image = b("RESHAPE", x, b.shape((1, count, 1, depth)))
    weights = b.constant(draw.integers(-127, 128, (outputs, 1, 1, depth)), DType.INT8)
    biases = b.constant(draw.integers(-999, 999, outputs), DType.INT32)
    zeros = b.constant([-3], DType.INT8), b.constant([0], DType.INT8)
    sums = b(
        "CONV2D", image, weights, biases, *zeros,
        pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1), acc_type=DType.INT32,
    )  # fmt: skip
    made = scaled(b, sums, DType.INT8, 1 << 30, 40, (0, 5))
    return b("RESHAPE", made, b.shape((1, count, outputs)))


def attention(heads: int, depth: int) -> Build:
    """Return attention over rows of joint projections, with a scale, a softmax's parts, a sum."""
    width = heads * depth

    def build(b: Builder, x: Value) -> Value:
        count = x.shape[1]
        joint = b("RESHAPE", rows_of(b, x, 3 * width, 1), b.shape((count, 3, heads, depth)))
        parts = [
            b(
                "TRANSPOSE",
                b(
                    "RESHAPE",
                    b("SLICE", joint, b.shape((0, place, 0, 0)), b.shape((count, 1, heads, depth))),
                    b.shape((count, heads, depth)),
                ),
                perms=(1, 2, 0) if place == 1 else (1, 0, 2),
            )
            for place in range(3)
        ]
        zero = b.constant([5], DType.INT8)
        scores = b("MATMUL", parts[0], parts[1], zero, zero)
        narrow = scaled(b, scores, DType.INT8, 1 << 30, 38, (0, 2))
        apart = b(
            "SUB",
            scaled(b, narrow, DType.INT32, zeros=(2, 0)),
            scaled(b, b("REDUCE_MAX", narrow, axis=2), DType.INT32, zeros=(2, 0)),
        )
        powers = scaled(b, apart, DType.INT8, 1 << 30, 31, (0, 127))
        total = b("REDUCE_SUM", scaled(b, powers, DType.INT32, zeros=(-128, 0)), axis=2)
        shares = b(
            "MUL",
            scaled(b, powers, DType.INT32, zeros=(-128, 0)),
            scaled(b, scaled(b, total, DType.INT8, 1 << 30, 36), DType.INT32),
            b.constant(*NO_SHIFT),
        )
        weighed = scaled(b, shares, DType.INT8, 1 << 30, 37)
        values = b("MATMUL", weighed, parts[2], b.constant([0], DType.INT8), zero)
        made = scaled(b, values, DType.INT8, 1 << 30, 38, (0, -4))
        row = b("RESHAPE", b("TRANSPOSE", made, perms=(1, 0, 2)), b.shape((1, count, width)))
        return rows_of(b, row, width, 2)

    return build


@pytest.mark.parametrize(
    ("count", "heads", "depth"), [(11, 3, 16), (8, 2, 32), (5, 4, 5), (3, 1, 16), (17, 2, 24)]
)
def test_attention_is_products_and_few_copies(count: int, heads: int, depth: int) -> None:
    sequence = held(graph_of((1, count, 16), attention(heads, depth)))
    kinds = Counter(type(row) for row in sequence.operations)
    assert kinds[MatrixProduct] == 2 * heads
    if not depth % 16 and count >= 8:
        copies = [row for row in sequence.operations if isinstance(row, Pooling) and row.moves]
        assert not copies


@given(networks())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_random_networks_are_what_the_reference_gives(graph: Graph) -> None:
    """In runs, whatever no rule takes."""
    inputs = inputs_of(graph)
    known: dict[Value, np.ndarray] = dict(zip(graph.inputs, inputs, strict=True))

    def note(value: Value, array: np.ndarray) -> None:
        known[value] = array

    evaluate(graph, inputs, trace=note)
    for run in lower_in_runs(graph, (), Arch.U85).runs:
        given_ = [known[value] for value in run.inputs]
        for value, array in zip(run.outputs, interpret(run.sequence, given_), strict=True):
            assert np.array_equal(array.ravel(), known[value].ravel())


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (1, 1, 12), (2, 9, 3)])
@pytest.mark.parametrize("kind", ["REDUCE_MAX", "REDUCE_MIN"])
def test_extremes_of_all_shapes(kind: str, shape: tuple[int, ...]) -> None:
    for axis in range(len(shape)):

        def build(b: Builder, x: Value, axis: int = axis) -> Value:
            return b(kind, b("CLAMP", x, min_val=-100, max_val=90), axis=axis)

        held(graph_of(shape, build))


@pytest.mark.parametrize("accelerator", ["ethos-u85-128", "ethos-u85-256", "ethos-u85-2048"])
def test_attention_is_arranged(accelerator: str) -> None:
    """Its second operands stay in bricks, whatever else is exchanged."""
    configuration = resolve(accelerator)
    for count, heads, depth in ((11, 2, 16), (6, 1, 16), (12, 2, 20)):
        sequence = held(graph_of((1, count, 16), attention(heads, depth)))
        estimate = Estimator(configuration, sequence.tensors)
        made = best(sequence, configuration.accelerator, estimate).sequence
        assert is_same(sequence, made)
        assert is_same(sequence, in_planes(made, configuration.accelerator, estimate))


def test_rows_of_a_second_operand_are_not_exchanged() -> None:
    """A column of a map is multiplied with itself, and everything else is a column too."""

    def build(b: Builder, x: Value) -> Value:
        one = b.constant([3], DType.INT8)
        square = b("MUL", *[scaled(b, x, DType.INT32)] * 2, b.constant(*NO_SHIFT))
        rows = scaled(b, square, DType.INT8, 1 << 30, 37)
        part = b("SLICE", rows, b.shape((6, 3, 0)), b.shape((1, 1, 16)))
        turned = b("TRANSPOSE", part, perms=(0, 2, 1))
        return scaled(b, b("MATMUL", part, turned, one, one), DType.INT8, 1 << 30, 36)

    sequence = held(graph_of((12, 4, 16), build))
    whole = Orientation(sequence, OrientationCosts(lambda _operation, _layouts: 1.0))
    every = range(len(sequence.operations))
    for flips in map(
        frozenset, chain.from_iterable(combinations(every, count + 1) for count in every)
    ):
        if whole.total(flips) < NEVER:
            swapped = swap(sequence, flips)
            assert swapped is not None
            assert is_same(sequence, swapped)
