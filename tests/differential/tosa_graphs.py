"""Random quantised networks of TOSA operations, as converters write them.

Values are int8 or int16 throughout; sums and products are rescaled to and from 32 bits. Every draw
follows from the seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np

from mizzen.diagnostics import MizzenError
from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.ops import Builder

SHAPES = ((1, 8, 8, 16), (1, 5, 7, 3), (1, 4, 4, 8), (1, 6, 10, 24), (1, 1, 1, 32), (1, 1, 16, 8))
MATRIX = (1, 12, 16)
KERNELS = ((1, 1), (3, 3), (2, 2), (1, 3), (3, 1))
LARGEST_ELEMENTS = 20_000
HEADROOM = {DType.INT8: (2.0**20, 2.0**19, 2.0**15.5), DType.INT16: (2.0**15, 2.0**14.5)}
"""Units of sums in 32 bits: what converters choose, and others."""

NOT_ON_U55 = {
    DType.INT8: frozenset[str](),
    DType.INT16: frozenset({"transposed_convolution", "matrix_product", "product"}),
}
"""Kinds of steps that Ethos-U55 does not have for a type."""


class RandomGraph:
    """A graph that grows by random steps; a step that does not fit gives nothing."""

    def __init__(self, seed: int, dtype: DType) -> None:
        self.draw = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.dtype = dtype
        self.graph = Graph()
        self.b = Builder(self.graph)
        shape = self.draw.choice(SHAPES)
        inputs = [shape, *([shape] if self.draw.random() < 0.4 else ())]
        inputs += [MATRIX] if self.draw.random() < 0.3 else []
        self.values = [self.graph.add_input(TensorType(row, dtype), f"x{i}")
                       for i, row in enumerate(inputs)]  # fmt: skip
        self.kinds = sorted(STEPS.keys() - NOT_ON_U55[dtype])

    def grow(self, steps: int) -> Graph:
        """Take steps, and give what nobody takes."""
        taken = 0
        while taken < steps:
            try:
                value = self.step(self.draw.choice(self.kinds))
            except MizzenError:  # the step's parameters are none that the operation takes
                continue
            if value is not None and value.type.elements <= LARGEST_ELEMENTS:
                self.values.append(value)
                taken += 1
        outputs = [value for value in self.values if value.producer and not value.uses]
        self.graph.set_outputs(outputs)
        self.graph.erase_dead()
        return self.graph

    def step(self, kind: str) -> Value | None:
        """Take a step of a kind; None where it does not fit."""
        return STEPS[kind](self)

    def pick(self, rank: int | None = None) -> Value | None:
        """Return one of the latest values."""
        values = [value for value in self.values if rank in (None, value.type.rank)]
        return self.draw.choice(values[-4:]) if values else None

    def any(self) -> Value:
        """Return one of the latest values; there is always one."""
        return self.draw.choice(self.values[-4:])

    def alike(self, value: Value) -> Value:
        """Return a value of the same shape, which may be the same."""
        return self.draw.choice([other for other in self.values if other.shape == value.shape])

    def zero_point(self) -> int:
        """Return a zero point; those of int16 are 0."""
        return self.draw.randint(-20, 20) if self.dtype is DType.INT8 else 0

    def zero(self, zero_point: int | None = None) -> Value:
        """Return a zero point as a constant of the values' type."""
        return self.b.constant(
            [self.zero_point() if zero_point is None else zero_point], self.dtype
        )

    def weights(self, *shape: int) -> Value:
        """Return weights of 8 bits."""
        return self.b.constant(self.numbers.integers(-127, 128, shape), DType.INT8)

    def bias(self, channels: int) -> Value:
        """Return biases, of the type in which products are summed."""
        dtype = DType.INT32 if self.dtype is DType.INT8 else DType.INT48
        return self.b.constant(self.numbers.integers(-5000, 5000, channels), dtype)

    def rescale(self, value: Value, dtype: DType, scales: float | Sequence[float]) -> Value:
        """Scale a value, for each channel if there are several scales."""
        wide = value.dtype is not DType.INT48
        pairs = [_multiplier(scale, wide) for scale in np.atleast_1d(scales).tolist()]
        zeros = [self.zero_point() if each is self.dtype else 0 for each in (value.dtype, dtype)]
        return self.b(
            "RESCALE",
            value,
            self.b.constant([m for m, _ in pairs], DType.INT32 if wide else DType.INT16),
            self.b.constant([s for _, s in pairs], DType.INT8),
            *(self.b.constant([z], t) for z, t in zip(zeros, (value.dtype, dtype), strict=True)),
            scale32=wide,
            rounding_mode=RoundingMode.SINGLE_ROUND,
            per_channel=len(pairs) > 1,
        )

    def finish(self, value: Value, scale: float) -> Value:
        """Bring sums back to the values' type."""
        channels = value.shape[-1]
        if channels > 1 and self.draw.random() < 0.5:
            spread = self.numbers.uniform(0.5, 1.5, channels)
            return self.rescale(value, self.dtype, (scale * spread).tolist())
        return self.rescale(value, self.dtype, scale)


def _multiplier(scale: float, wide: bool) -> tuple[int, int]:
    """Return multiplier and shift: ``scale = multiplier / 2**shift``, of 31 bits or of 15."""
    fraction, exponent = math.frexp(scale)
    bits = 31 if wide else 15
    return min(round(fraction * (1 << bits)), (1 << bits) - 1), bits - exponent


Window = tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]


def _window(g: RandomGraph, value: Value) -> Window | None:
    """Draw kernel, stride and a padding with which the window fits exactly."""
    kernel, stride = g.draw.choice(KERNELS), g.draw.choice([(1, 1), (1, 1), (2, 2)])
    pad: list[int] = []
    for size, length, step in zip(value.shape[1:3], kernel, stride, strict=True):
        before = g.draw.randint(0, length - 1)
        after = -(size - length + before) % step
        if size - length + before + after < 0 or after >= length:
            return None
        pad += [before, after]
    return kernel, stride, (pad[0], pad[1], pad[2], pad[3])


def convolution(g: RandomGraph) -> Value | None:
    value = g.pick(4)
    window = None if value is None else _window(g, value)
    if value is None or window is None:
        return None
    kernel, stride, pad = window
    channels, outputs = value.shape[3], g.draw.choice([1, 3, 8, 16, 20])
    operands = g.weights(outputs, *kernel, channels), g.bias(outputs)
    zeros = g.zero(), g.b.constant([0], DType.INT8)
    sums = g.b("CONV2D", value, *operands, *zeros, pad=pad, stride=stride)
    return g.finish(sums, 0.05 / math.sqrt(math.prod(kernel) * channels))


def depthwise_convolution(g: RandomGraph) -> Value | None:
    value = g.pick(4)
    window = None if value is None else _window(g, value)
    if value is None or window is None:
        return None
    kernel, stride, pad = window
    channels, multiplier = value.shape[3], g.draw.choice([1, 1, 2])
    operands = g.weights(*kernel, channels, multiplier), g.bias(channels * multiplier)
    zeros = g.zero(), g.b.constant([0], DType.INT8)
    sums = g.b("DEPTHWISE_CONV2D", value, *operands, *zeros, pad=pad, stride=stride)
    return g.finish(sums, 0.05 / math.sqrt(math.prod(kernel)))


def transposed_convolution(g: RandomGraph) -> Value | None:
    value = g.pick(4)
    # Ethos-U55 has no stride 2 where an input has one row or column only.
    if value is None or min(value.shape[1:3]) < 2 or value.type.elements > 2000:
        return None
    size, stride = g.draw.choice([2, 3, 4]), g.draw.choice([1, 2])
    channels, outputs = value.shape[3], g.draw.choice([3, 8, 16])
    edge = g.draw.choice([0, -1]) if size > 2 else 0
    operands = g.weights(outputs, size, size, channels), g.bias(outputs)
    zeros = g.zero(), g.b.constant([0], DType.INT8)
    out_pad, strides = (edge,) * 4, (stride, stride)
    sums = g.b("TRANSPOSE_CONV2D", value, *operands, *zeros, out_pad=out_pad, stride=strides)
    return g.finish(sums, 0.05 * stride / size / math.sqrt(channels))


def greatest(g: RandomGraph) -> Value | None:
    value = g.pick(4)
    window = None if value is None else _window(g, value)
    if value is None or window is None:
        return None
    kernel, stride, pad = window
    return g.b("MAX_POOL2D", value, kernel=kernel, stride=stride, pad=pad)


def average(g: RandomGraph) -> Value | None:
    value = g.pick(4)
    window = None if value is None else _window(g, value)
    if value is None or window is None:
        return None
    (kernel, stride, pad), zero = window, g.zero()
    wide = DType.INT32
    return g.b(
        "AVG_POOL2D", value, zero, zero, kernel=kernel, stride=stride, pad=pad, acc_type=wide
    )


def total(g: RandomGraph) -> Value | None:
    value = g.any()
    return _sum(g, value, g.alike(value))


def total_with_constant(g: RandomGraph) -> Value | None:
    value = g.any()
    shape = tuple(g.draw.choice([1, size]) for size in value.shape)
    return _sum(g, value, g.b.constant(g.numbers.integers(-100, 100, shape), g.dtype))


def _sum(g: RandomGraph, *values: Value) -> Value:
    """Add or subtract in one unit, in which the value of the greater scale has half the room."""
    unit = g.draw.choice(HEADROOM[g.dtype])
    shares = [0.5, g.draw.choice([0.5, 0.25, g.draw.uniform(0.01, 0.5)])]
    g.draw.shuffle(shares)
    scaled = [
        g.rescale(value, DType.INT32, unit * share)
        for value, share in zip(values, shares, strict=True)
    ]
    return g.rescale(g.b(g.draw.choice(["ADD", "SUB"]), *scaled), g.dtype, 1 / unit)


def product(g: RandomGraph) -> Value | None:
    value = g.any()
    scaled = [g.rescale(each, DType.INT32, 1.0) for each in (value, g.alike(value))]
    return g.rescale(g.b("MUL", *scaled, g.b.constant([0], DType.INT8)), g.dtype, 1 / 60)


def greater(g: RandomGraph) -> Value | None:
    value = g.any()
    scale = g.draw.choice([1.0, 1.0, 0.7])
    scaled = [g.rescale(each, DType.INT32, 1.0) for each in (value, g.alike(value))]
    return g.rescale(g.b(g.draw.choice(["MAXIMUM", "MINIMUM"]), *scaled), g.dtype, scale)


def scaled(g: RandomGraph) -> Value | None:
    return g.rescale(g.any(), g.dtype, g.draw.choice([1.0, 0.5, 0.77, 1.3]))


def limited(g: RandomGraph) -> Value | None:
    return g.b("CLAMP", g.any(), min_val=g.draw.randint(-128, 0), max_val=g.draw.randint(1, 127))


def looked_up(g: RandomGraph) -> Value | None:
    if g.dtype is DType.INT8:
        return g.b("TABLE", g.any(), g.b.constant(g.numbers.integers(-128, 128, 256), g.dtype))
    table = g.b.constant(np.cumsum(g.numbers.integers(-60, 60, 513)), g.dtype)
    return g.rescale(g.b("TABLE", g.any(), table), g.dtype, 1 / 128)


def transposed(g: RandomGraph) -> Value | None:
    value = g.any()
    perms = list(range(value.type.rank))
    g.draw.shuffle(perms)
    return g.b("TRANSPOSE", value, perms=tuple(perms))


def reshaped(g: RandomGraph) -> Value | None:
    value = g.any()
    left, shape = value.type.elements, list[int]()
    for _ in range(g.draw.choice([0, 1, 2, 3, 3, 3])):
        shape.append(g.draw.choice([n for n in (1, 2, 3, 4, 5, 8, 16) if left % n == 0]))
        left //= shape[-1]
    shape.append(left)
    g.draw.shuffle(shape)
    return g.b("RESHAPE", value, g.b.shape(shape))


def joined(g: RandomGraph) -> Value | None:
    value = g.any()
    axis = g.draw.randrange(value.type.rank)
    fitting = [other for other in g.values if other.type.rank == value.type.rank and all(
        a == b or i == axis for i, (a, b) in enumerate(zip(other.shape, value.shape, strict=True))
    )]  # fmt: skip
    parts = [value, *(g.draw.choice(fitting) for _ in range(g.draw.choice([1, 2])))]
    g.draw.shuffle(parts)
    return g.b("CONCAT", *parts, axis=axis)


def sliced(g: RandomGraph) -> Value | None:
    value = g.any()
    start = [g.draw.randint(0, (size - 1) // 2) for size in value.shape]
    size = [g.draw.randint(1, size - at) for size, at in zip(value.shape, start, strict=True)]
    return g.b("SLICE", value, g.b.shape(start), g.b.shape(size))


def padded(g: RandomGraph) -> Value | None:
    value = g.any()
    edges: list[int] = []
    for axis in range(value.type.rank):
        grows = g.draw.random() < 0.5 and (axis > 0 or value.type.rank < 4)
        edges += [g.draw.randint(0, 2), g.draw.randint(0, 2)] if grows else [0, 0]
    return g.b("PAD", value, g.b.shape(edges), g.zero())


def repeated(g: RandomGraph) -> Value | None:
    value = g.any()
    times = [g.draw.choice([1, 1, 2]) for _ in value.shape]
    if value.type.rank == 4:
        times[0] = 1
    return g.b("TILE", value, g.b.shape(times))


def reversed_(g: RandomGraph) -> Value | None:
    value = g.any()
    if value.type.rank == 1:  # Ethos-U55 does not reverse channels
        return None
    return g.b("REVERSE", value, axis=g.draw.randrange(value.type.rank - 1))


def extreme(g: RandomGraph) -> Value | None:
    value = g.any()
    kind = g.draw.choice(["REDUCE_MAX", "REDUCE_MIN"])
    return g.b(kind, value, axis=g.draw.randrange(value.type.rank))


def summed(g: RandomGraph) -> Value | None:
    value = g.any()
    axis = g.draw.randrange(value.type.rank)
    sums = g.b("REDUCE_SUM", g.rescale(value, DType.INT32, 1.0), axis=axis)
    return g.rescale(sums, g.dtype, 1 / value.shape[axis])


def matrix_product(g: RandomGraph) -> Value | None:
    value = g.pick(3)
    if value is None or value.shape[0] * value.shape[1] ** 2 > LARGEST_ELEMENTS:
        return None
    zero = g.zero()
    sums = g.b("MATMUL", value, g.b("TRANSPOSE", value, perms=(0, 2, 1)), zero, zero)
    return g.rescale(sums, g.dtype, 1 / 60 / math.sqrt(value.shape[2]))


STEPS = {
    step.__name__: step
    for step in (
        convolution,
        depthwise_convolution,
        transposed_convolution,
        greatest,
        average,
        total,
        total_with_constant,
        product,
        greater,
        scaled,
        limited,
        looked_up,
        transposed,
        reshaped,
        joined,
        sliced,
        padded,
        repeated,
        reversed_,
        extreme,
        summed,
        matrix_product,
    )
}
