"""TOSA's operations by the rules that only U85 has: the reference's integers, also as streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mizzen.graph import (
    DType,
    Graph,
    ResizeMode,
    RoundingMode,
    TensorType,
    Value,
    integer_range,
)
from mizzen.ops import Builder
from mizzen.reference.evaluation import evaluate
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.lower import lower
from mizzen.targets.ethos_u.generator.operations import Elementwise, Pooling, Resize
from mizzen.targets.ethos_u.generator.operations import Sequence as Operations
from mizzen.targets.ethos_u.generator.schedule import plain
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.machine.commands_values import Arch
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.system_config import resolve

from .interpreter import interpret
from .test_lower_graph import scaled

MACHINES: Iterator[str] = cycle(("ethos-u85-128", "ethos-u85-256", "ethos-u85-2048"))

Shape = tuple[int, ...]
Build = Callable[..., Value | tuple[Value, ...]]
Array = npt.NDArray[Any]


def graph_of(build: Build, *inputs: tuple[Shape, DType]) -> Graph:
    """Return the graph that a function builds of inputs of some shapes and types."""
    graph = Graph("rules")
    values = [
        graph.add_input(TensorType(shape, dtype), f"x{place}")
        for place, (shape, dtype) in enumerate(inputs)
    ]
    made = build(Builder(graph), *values)
    graph.set_outputs(made if isinstance(made, tuple) else (made,))
    return graph


def drawn(graph: Graph, limit: int) -> list[Array]:
    """Return random inputs, which reach up to a limit on both sides."""
    draw = np.random.default_rng(len(graph.inputs))
    found: list[Array] = []
    for value in graph.inputs:
        if value.dtype is DType.BOOL:
            found.append(draw.integers(0, 2, value.shape).astype(np.bool_))
            continue
        low, high = integer_range(value.dtype)
        numbers = draw.integers(max(low, -limit), min(high, limit), value.shape, endpoint=True)
        found.append(numbers.astype(value.dtype.numpy))
    return found


def require_same(
    graph: Graph, inputs: Sequence[Array] | None = None, limit: int = 1 << 31
) -> Operations:
    """Hold the rules to the reference, as a sequence and as a stream; return the sequence."""
    lowered = lower(graph, arch=Arch.U85)
    assert lowered.sequence is not None, [row.reason for row in lowered.refusals]
    sequence, inputs = lowered.sequence, inputs or drawn(graph, limit)
    wanted = evaluate(graph, inputs)
    places = [sequence.tensors[index].shape for index in sequence.inputs]
    images = [row.reshape(shape) for row, shape in zip(inputs, places, strict=True)]
    for one, other in zip(interpret(sequence, images), wanted, strict=True):
        assert np.array_equal(one.ravel(), other.ravel())
    name = next(MACHINES)
    program = emit(plain(sequence, resolve(name)), ACCELERATORS[name])
    assert [row.render() for row in find_hazards(program).diagnostics] == []
    given = [image[None] for image in images]
    for one, other in zip(Simulator(program).run(given, 1).outputs, wanted, strict=True):
        assert np.array_equal(one.ravel(), other.ravel())
    return sequence


def kinds(sequence: Operations) -> list[str]:
    """Return the operations in words: the mode of those that have one."""
    return [
        operation.mode.name
        if isinstance(operation, Elementwise | Pooling | Resize)
        else type(operation).__name__
        for operation in sequence.operations
    ]


FULL, LINE, CHANNEL = (2, 5, 4, 19), (2, 1, 1, 19), (1, 1, 1, 1)


def raised(b: Builder, x: Value, bits: int, multiplier: int, shift: int) -> Value:
    """Shift left and scale, as quantised networks compare and add."""
    wide = scaled(b, x, DType.INT32, 1 << 30, 30 - bits, (3, 0))
    return scaled(b, wide, DType.INT32, multiplier, shift, (0, 0))


@pytest.mark.parametrize("kind", ["EQUAL", "GREATER", "GREATER_EQUAL"])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("other", [FULL, LINE, CHANNEL])
def test_comparisons(kind: str, negated: bool, other: Shape) -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        operands = (raised(b, x, 8, 1288490189, 35), raised(b, y, 8, 1503238554, 34))
        truth = b(kind, *operands)
        return b("LOGICAL_NOT", truth) if negated else truth

    sequence = require_same(graph_of(build, (FULL, DType.INT8), (other, DType.INT8)))
    assert len(sequence.operations) == 1


@pytest.mark.parametrize("dtype", [DType.INT16, DType.INT32])
def test_comparisons_of_wide_integers(dtype: DType) -> None:
    def build(b: Builder, x: Value, y: Value) -> tuple[Value, ...]:
        if dtype is not DType.INT32:
            x, y = (scaled(b, v, DType.INT32, 1 << 30, 30, (0, 0)) for v in (x, y))
        return b("GREATER", x, y), b("EQUAL", x, x)

    assert len(require_same(graph_of(build, (FULL, dtype), (LINE, dtype))).operations) == 2


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.INT32, DType.BOOL])
def test_a_choice_by_a_truth(dtype: DType) -> None:
    def build(b: Builder, c: Value, x: Value, y: Value) -> Value:
        return b("SELECT", c, x, y)

    rows = (LINE, DType.BOOL), (FULL, dtype), (CHANNEL, dtype)
    assert len(require_same(graph_of(build, *rows)).operations) == 4


def test_a_choice_by_a_comparison_needs_no_truth() -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        truth = b("LOGICAL_NOT", b("GREATER", x, y))
        return b("SELECT", truth, y, b.constant(np.zeros((1, 1, 1, 1)), DType.INT32))

    rows = (FULL, DType.INT32), (FULL, DType.INT32)
    assert kinds(require_same(graph_of(build, *rows))) == ["CMP_GE", "AND"]


def test_a_choice_of_two_numbers() -> None:
    def build(b: Builder, x: Value) -> Value:
        truth = b("EQUAL", x, b.constant([[[[3]]]], DType.INT32))
        ends = [b.constant([[[[number]]]], DType.INT16) for number in (-5, 700)]
        return b("SELECT", truth, *ends)

    sequence = require_same(graph_of(build, (FULL, DType.INT32)), limit=4)
    assert kinds(sequence) == ["CMP_EQ", "AND", "XOR"]


@pytest.mark.parametrize("kind", ["LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR"])
def test_logic(kind: str) -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        return b("LOGICAL_NOT", b(kind, x, b("LOGICAL_NOT", y)))

    require_same(graph_of(build, (FULL, DType.BOOL), (LINE, DType.BOOL)))


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.INT32])
def test_bits(dtype: DType) -> None:
    def build(b: Builder, x: Value, y: Value) -> tuple[Value, ...]:
        pairs = (b(f"BITWISE_{kind}", x, y) for kind in ("AND", "OR", "XOR"))
        return *pairs, b("BITWISE_NOT", x)

    assert len(require_same(graph_of(build, (FULL, dtype), (LINE, dtype))).operations) == 4


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.INT32])
def test_shifts(dtype: DType) -> None:
    def build(b: Builder, x: Value) -> tuple[Value, ...]:
        amounts = np.arange(19).reshape(1, 1, 1, 19) % (8 * dtype.numpy.itemsize)
        by = b.constant(amounts, dtype)
        return (
            b("LOGICAL_LEFT_SHIFT", x, by),
            b("LOGICAL_RIGHT_SHIFT", x, by),
            b("ARITHMETIC_RIGHT_SHIFT", x, by, round=True),
            b("ARITHMETIC_RIGHT_SHIFT", x, by, round=False),
        )

    assert len(require_same(graph_of(build, (FULL, dtype))).operations) == 4


def test_quotients() -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        return b("INTDIV", x, y)

    graph = graph_of(build, (FULL, DType.INT32), (LINE, DType.INT32))
    x, y = drawn(graph, 1 << 20)
    require_same(graph, [x, np.where(y // 5000 == 0, 7, y // 5000).astype(np.int32)])


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
@pytest.mark.parametrize("kind", ["ADD", "SUB", "MAXIMUM", "MINIMUM"])
def test_operands_of_any_scales(kind: str, dtype: DType) -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        bits = 20 if dtype is DType.INT8 else 14
        zero = 3 if dtype is DType.INT8 else 0
        first, second = (
            scaled(b, value, DType.INT32, 1 << 30, 30 - bits, (zero, 0)) for value in (x, y)
        )
        first = scaled(b, first, DType.INT32, 1398101333, 32, (0, 0))
        second = scaled(b, second, DType.INT32, 1717986918, 34, (0, 0))
        return scaled(b, b(kind, first, second), dtype, 1288490189, 30 + bits, (0, zero))

    graph = graph_of(build, (FULL, dtype), (LINE, dtype))
    sequence = require_same(graph, limit=(1 << 14) - 1)
    assert kinds(sequence) == [{"MAXIMUM": "MAX", "MINIMUM": "MIN"}.get(kind, kind)]


def test_a_function_of_a_byte_that_gives_16_bits_is_computed() -> None:
    def build(b: Builder, x: Value) -> Value:
        wide = scaled(b, x, DType.INT32, 1 << 30, 30, (3, 0))
        product = b("MUL", wide, b.constant([[[[77]]]], DType.INT32), b.constant([0], DType.INT8))
        return scaled(b, product, DType.INT16, 1 << 29, 30, (0, 0))

    require_same(graph_of(build, (FULL, DType.INT8)))


def test_a_slope_with_two_scales() -> None:
    def build(b: Builder, x: Value) -> Value:
        wide = scaled(b, x, DType.INT32, 1 << 30, 30, (0, 0))
        nothing = b.constant(np.zeros((1, 1, 1, 1)), DType.INT32)
        above = scaled(b, b("MAXIMUM", wide, nothing), DType.INT32, 1717986918, 31, (0, 0))
        below = scaled(b, b("MINIMUM", wide, nothing), DType.INT32, 1374389535, 36, (0, 0))
        return scaled(b, b("ADD", above, below), DType.INT16, 1 << 30, 30, (0, 0))

    assert kinds(require_same(graph_of(build, (FULL, DType.INT16)))) == ["LRELU"]


def test_negatives_of_32_bits() -> None:
    def build(b: Builder, x: Value) -> Value:
        zeros = [b.constant([0], DType.INT32) for _ in range(2)]
        return b("NEGATE", x, *zeros)

    assert kinds(require_same(graph_of(build, (FULL, DType.INT32)), limit=1 << 30)) == ["SUB"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (DType.BOOL, DType.INT8), (DType.BOOL, DType.INT16), (DType.BOOL, DType.INT32),
        (DType.INT8, DType.BOOL), (DType.INT16, DType.BOOL), (DType.INT32, DType.BOOL),
    ],
)  # fmt: skip
def test_casts_of_truths(before: DType, after: DType) -> None:
    def build(b: Builder, x: Value) -> Value:
        return b("CAST", x, dtype=after)

    assert len(require_same(graph_of(build, (FULL, before)), limit=2).operations) == 1


@pytest.mark.parametrize("kind", ["REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (3,), (1, 2), (2, 3), (1, 2, 3), (0, 3)])
def test_extremes(kind: str, axes: tuple[int, ...]) -> None:
    def build(b: Builder, x: Value) -> Value:
        for axis in axes:
            x = b(kind, x, axis=axis)
        return x

    dtype = DType.BOOL if kind in ("REDUCE_ANY", "REDUCE_ALL") else DType.INT16
    require_same(graph_of(build, ((3, 5, 4, 18), dtype)))


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
def test_the_place_of_the_greatest(axis: int, dtype: DType) -> None:
    def build(b: Builder, x: Value) -> Value:
        return b("ARGMAX", x, axis=axis)

    graph = graph_of(build, ((3, 5, 4, 18), dtype))
    assert kinds(require_same(graph, limit=3)) == ["ARGMAX_X"]


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.INT32])
def test_lines_by_computed_indices(dtype: DType) -> None:
    def build(b: Builder, x: Value, places: Value) -> Value:
        return b("GATHER", x, places)

    graph = graph_of(build, ((3, 9, 7), dtype), ((3, 12), DType.INT32))
    x, places = drawn(graph, 1 << 30)
    sequence = require_same(graph, [x, (places % 9).astype(np.int32)])
    assert kinds(sequence) == ["Copy"] * 3


def test_lines_to_places() -> None:
    def build(b: Builder, x: Value, old: Value, places: Value) -> Value:
        return b("SCATTER", old, places, x)

    rows = ((2, 4, 7), DType.INT8), ((2, 9, 7), DType.INT8), ((2, 4), DType.INT32)
    graph = graph_of(build, *rows)
    x, old, _ = drawn(graph, 1 << 30)
    places = np.array([[8, 0, 3, 4], [1, 2, 7, 5]], np.int32)
    require_same(graph, [x, old, places])


@pytest.mark.parametrize(
    ("scale", "offset", "border"),
    [
        ((4, 2, 4, 2), (-1, -1), (1, 1)),
        ((2, 1, 6, 2), (0, 2), (0, -2)),
        ((5, 3, 7, 2), (1, 0), (1, 0)),
        ((16, 5, 16, 5), (40, 3), (7, 10)),
    ],
)
@pytest.mark.parametrize("mode", list(ResizeMode))
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
def test_images_of_another_size(
    scale: tuple[int, ...],
    offset: tuple[int, int],
    border: tuple[int, int],
    mode: ResizeMode,
    dtype: DType,
) -> None:
    def build(b: Builder, x: Value) -> Value:
        shapes = b.shape(scale), b.shape(offset), b.shape(_border(scale, offset, border))
        value = b("RESIZE", x, *shapes, mode=mode)
        if mode is ResizeMode.NEAREST:
            return value
        return b(
            "RESCALE", value, b.constant([17 << 8], DType.INT16), b.constant([22], DType.INT8),
            b.constant([0], value.dtype), b.constant([0], dtype), scale32=False,
            rounding_mode=RoundingMode.SINGLE_ROUND, per_channel=False,
        )  # fmt: skip

    require_same(graph_of(build, ((2, 6, 5, 17), dtype)))


def _border(
    scale: tuple[int, ...], offset: tuple[int, int], border: tuple[int, int]
) -> tuple[int, ...]:
    """Return a border with which the sizes of the result are whole."""
    found: list[int] = []
    for axis, size in enumerate((6, 5)):
        unit, step = scale[2 * axis : 2 * axis + 2]
        reach = (size - 1) * unit - offset[axis] + border[axis]
        found.append(border[axis] - reach % step)
    return tuple(found)
