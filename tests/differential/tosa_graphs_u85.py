"""Random quantised networks that have the operations of TOSA, too, that only Ethos-U85 has."""

from __future__ import annotations

import math

from mizzen.graph import DType, ResizeMode, Value

from .tosa_graphs import STEPS, RandomGraph

LOGIC = ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR")
BITWISE = ("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR")
COMPARISONS = ("EQUAL", "GREATER", "GREATER_EQUAL")
REDUCTIONS = ("REDUCE_ALL", "REDUCE_ANY")


class RandomGraphOfU85(RandomGraph):
    """A graph that grows by steps of either kind."""

    def __init__(self, seed: int, dtype: DType) -> None:
        super().__init__(seed, dtype)
        self.kinds = sorted(STEPS) + sorted(OTHER_STEPS) * 2

    def step(self, kind: str) -> Value | None:
        """Take a step."""
        return OTHER_STEPS[kind](self) if kind in OTHER_STEPS else super().step(kind)


def compared(g: RandomGraph, value: Value) -> Value:
    """Return truths of the shape of a value."""
    pair = [value, g.alike(value)]
    if g.draw.random() < 0.3:
        shape = tuple(g.draw.choice([1, size]) for size in value.shape)
        pair[1] = g.b.constant(g.numbers.integers(-100, 100, shape), g.dtype)
    g.draw.shuffle(pair)
    wide = [g.rescale(each, DType.INT32, 1.0) for each in pair]
    truth = g.b(g.draw.choice(COMPARISONS), *wide)
    return g.b("LOGICAL_NOT", truth) if g.draw.random() < 0.2 else truth


def chosen(g: RandomGraph) -> Value | None:
    value = g.any()
    truth = compared(g, value)
    if g.draw.random() < 0.3:
        truth = g.b(g.draw.choice(LOGIC), truth, compared(g, value))
    if g.draw.random() < 0.2:
        kind, axis = g.draw.choice(REDUCTIONS), g.draw.randrange(value.type.rank)
        truth = g.b(kind, truth, axis=axis)
    return g.b("SELECT", truth, g.alike(value), g.alike(value))


def counted(g: RandomGraph) -> Value | None:
    """How many of a row are greater."""
    value = g.any()
    axis = g.draw.randrange(value.type.rank)
    if value.shape[axis] > 100:
        return None
    ones = g.b("CAST", compared(g, value), dtype=DType.INT32)
    return g.rescale(g.b("REDUCE_SUM", ones, axis=axis), g.dtype, 1.0)


def gathered(g: RandomGraph) -> Value | None:
    value = g.pick(3)
    if value is None:
        return None
    batch, count, _ = value.shape
    indices = g.numbers.integers(0, count, (batch, g.draw.randint(1, 6)))
    return g.b("GATHER", value, g.b.constant(indices, DType.INT32))


def scattered(g: RandomGraph) -> Value | None:
    value = g.pick(3)
    if value is None:
        return None
    batch, count, channels = value.shape
    places = g.draw.randint(1, count)
    indices = [g.numbers.permutation(count)[:places] for _ in range(batch)]
    what = g.b.constant(g.numbers.integers(-100, 100, (batch, places, channels)), g.dtype)
    return g.b("SCATTER", value, g.b.constant(indices, DType.INT32), what)


def place(g: RandomGraph) -> Value | None:
    value = g.any()
    if value.type.rank < 2 or max(value.shape) > 120:
        return None
    places = g.b("ARGMAX", value, axis=g.draw.randrange(value.type.rank))
    return g.rescale(places, g.dtype, 1.0)


def resized(g: RandomGraph) -> Value | None:
    value = g.pick(4)
    if value is None or max(value.shape[1:3]) > 12:
        return None
    mode = g.draw.choice([ResizeMode.NEAREST, ResizeMode.BILINEAR])
    ups = g.draw.choice([1, 2, 3]), g.draw.choice([1, 2, 4])
    scale = [number for up in ups for number in (up, 1)]
    border = [0, 0]
    if g.draw.random() < 0.5:
        border = [up - 1 for up in ups]
    made = g.b("RESIZE", value, g.b.shape(scale), g.b.shape((0, 0)), g.b.shape(border), mode=mode)
    if mode is ResizeMode.NEAREST:
        return made
    return g.rescale(made, g.dtype, 1 / math.prod(ups))


def combined_bits(g: RandomGraph) -> Value | None:
    value = g.any()
    return g.b(g.draw.choice(BITWISE), value, g.alike(value))


def shifted(g: RandomGraph) -> Value | None:
    value = g.any()
    wide = g.rescale(value, DType.INT32, 16.0)
    amounts = g.b.constant(g.numbers.integers(0, 8, (1,) * value.type.rank), DType.INT32)
    is_rounded = g.draw.random() < 0.5
    moved = g.b("ARITHMETIC_RIGHT_SHIFT", wide, amounts, round=is_rounded)
    return g.rescale(moved, g.dtype, 1 / 8)


def magnitude(g: RandomGraph) -> Value | None:
    wide = g.rescale(g.any(), DType.INT32, 1.0)
    return g.rescale(g.b(g.draw.choice(["ABS", "CLZ"]), wide), g.dtype, 0.9)


def turned(g: RandomGraph) -> Value | None:
    value = g.any()
    return g.b("REVERSE", value, axis=value.type.rank - 1)


OTHER_STEPS = {
    step.__name__: step
    for step in (
        chosen,
        counted,
        gathered,
        scattered,
        place,
        resized,
        combined_bits,
        shifted,
        magnitude,
        turned,
    )
}
