"""Functions of one tensor: clamps as CLAMP, others as TABLE, of which the origin says the name.

A TABLE has an entry for each of the 256 integers, computed as TFLite Micro's kernels compute it;
of unsigned bytes as LiteRT's do, since TFLite Micro has none.

Ref: TFLite Micro, kernels/internal/reference: logistic.h, tanh.h, hard_swish.h, leaky_relu.h.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, isfinite

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer.tflite import ActivationFunctionType as Activation
from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, lowers
from mizzen.frontends.tflite.lowering import fixed_point
from mizzen.frontends.tflite.lowering.fixed_point import Numbers
from mizzen.frontends.tflite.lowering.requantization import (
    IDENTITY,
    REAL_BOUNDS,
    bounds_of,
    centered,
    halves,
    multiplier_of,
    reach,
    rescale,
    scale_of,
)
from mizzen.graph import DType, Quantization, Value, integer_range

Floats = npt.NDArray[np.float32]
Truths = npt.NDArray[np.bool_]

INPUT_BITS = 4
"""Integer bits of the numbers that LOGISTIC and TANH are computed of."""

EVERY = np.arange(-128, 128, dtype=np.int64)
"""The integers that a table has entries for."""

SHORT_BITS = 16
"""Of the numbers that HARD_SWISH computes with."""

TYPES = (FileType.INT8, FileType.UINT8, FileType.INT16)


@lowers("RELU", "RELU_N1_TO_1", "RELU_0_TO_1")
def clamped(call: Call) -> Value:
    """Between real bounds, in another scale: [RESCALE,] CLAMP.

    RESCALE is left out where the output has the input's quantisation.
    """
    return _between(call, _real_bounds(call.operator.kind))


def _real_bounds(kind: str) -> tuple[float | None, float | None]:
    return (0.0, 1.0) if kind == "RELU_0_TO_1" else REAL_BOUNDS[Activation[kind]]


def _between(call: Call, real: tuple[float | None, float | None]) -> Value:
    dtype = call.need_types(*TYPES, FileType.INT32)
    before, after = call.quantization(call.input(0)), call.quantization(call.output())
    value = call.value()
    if dtype is FileType.INT32:
        call.need(before == after, "its output has another quantisation than its input")
        return _bounded(call, value, real, after)
    if before != after:
        value = rescale(
            call.b,
            value,
            scale_of(_ratio(call, before.scale, after.scale)),
            value.dtype,
            bound=reach(value.dtype, before.zero_point),
            zero_points=(before.zero_point, after.zero_point),
            quantization=after,
        )
    low, high = bounds_of(real, value.dtype, after)
    return call.b("CLAMP", value, min_val=low, max_val=high)


def _bounded(
    call: Call, value: Value, real: tuple[float | None, float | None], after: Quantization
) -> Value:
    """Keep 32 bits, of which no kernel is known, between bounds: MAXIMUM, MINIMUM."""
    ones = (1,) * value.type.rank
    for bound, number, kind in zip(
        real, bounds_of(real, DType.INT32, after), ("MAXIMUM", "MINIMUM"), strict=True
    ):
        if bound is not None:
            value = call.b(kind, value, call.b.constant(np.full(ones, number), DType.INT32))
    return value


@lowers("RELU6")
def clamped_to_six(call: Call) -> Value:
    """Between 0 and 6, of the integers as they are: CLAMP.

    Kernels for signed integers take both bounds from the input's quantisation and do not rescale.
    """
    if call.output().type in (FileType.UINT8, FileType.INT32):
        return _between(call, _real_bounds("RELU6"))
    call.need_types(*TYPES)
    value = call.value()
    low, high = bounds_of((0.0, 6.0), value.dtype, call.quantization(call.input(0)))
    return call.b("CLAMP", value, min_val=low, max_val=high)


@lowers("LOGISTIC")
def logistic(call: Call) -> Value:
    """1 / (1 + exp(-x)): TABLE. The kernel for INT8 takes the output's quantisation for
    1/256, -128."""
    x = _bytes(call)
    if call.output().type is FileType.UINT8:
        return _floating(call, _sigmoid)
    call.need(call.quantization(call.output()).zero_point == -128, "its zero point is not -128")
    shifted, inside = _fraction(call, x)
    result = fixed_point.divided(fixed_point.logistic(shifted), 23) - 128
    return _table(call, _saturated(result, shifted, inside))


@lowers("TANH")
def tanh(call: Call) -> Value:
    """Hyperbolic tangent: TABLE. The kernel for INT8 takes the output's quantisation for
    1/128, 0."""
    x = _bytes(call)
    if call.output().type is FileType.UINT8:
        return _floating(call, np.tanh)
    shifted, inside = _fraction(call, x)
    result = fixed_point.divided(fixed_point.tanh(shifted), 24)
    return _table(call, _saturated(result, shifted, inside))


@lowers("HARD_SWISH")
def hard_swish(call: Call) -> Value:
    """x * relu6(x + 3) / 6: TABLE."""
    x, y = _bytes(call), call.quantization(call.output())
    output, output_exponent = _short(_ratio(call, x.scale, y.scale, 1 / 128))
    gate, gate_exponent = _short(_ratio(call, x.scale, 3 / 32768, 1 / 128))
    call.need(gate_exponent < 16, "its input is too coarse for TFLite's kernel")
    call.need(output_exponent <= 0, "its output is more than 128 times as fine as its input")
    wide = (EVERY - x.zero_point) << 7
    call.need(int(np.abs(wide).max()) <= 1 << 15, "its zero point is out of range")
    wide = np.clip(wide, -(1 << 15), (1 << 15) - 1)
    opened = _raised(wide, gate_exponent - 1) if gate_exponent > 0 else wide
    opened = _times(opened, gate)
    opened = _raised(opened, 1) if gate_exponent > 0 else opened
    opened = _halved(opened, max(-gate_exponent, 0))
    opened = (opened + (1 << 15)) >> 1
    product = opened * _times(wide, output)
    truncated = np.sign(product) * (np.abs(product) >> 15)
    return _table(call, _halved(truncated, -output_exponent) + y.zero_point)


@lowers("LEAKY_RELU")
def leaky_relu(call: Call) -> Value:
    """x, or alpha * x where x < 0: TABLE; of 16 bits RESCALE (zero point off), MAXIMUM and MINIMUM
    of it and 0, RESCALE of each, ADD (SUB of a negative alpha), RESCALE."""
    alpha = float(np.float32(call.option("alpha", 0.0)))
    if call.output().type is FileType.INT16:
        return _wide_leaky_relu(call, alpha)
    x, y = _bytes(call), call.quantization(call.output())
    plain = EVERY - x.zero_point
    rising = _scaled(call, plain, _ratio(call, x.scale, y.scale))
    slope = _ratio(call, x.scale, y.scale, alpha)
    falling = _scaled(call, plain, abs(slope)) * int(np.sign(slope))
    return _table(call, np.where(plain >= 0, rising, falling) + y.zero_point)


def _wide_leaky_relu(call: Call, alpha: float) -> Value:
    call.need_types(FileType.INT16)
    x, y = call.quantization(call.input(0)), call.quantization(call.output())
    call.need(not x.zero_point and not y.zero_point, "its 16-bit tensors have zero points")
    b, bound = call.b, reach(DType.INT16, 0)
    above, below = halves(b, centered(b, call.value()))
    slope = _ratio(call, x.scale, y.scale, alpha)
    rising = rescale(b, above, scale_of(_ratio(call, x.scale, y.scale)), DType.INT32, bound=bound)
    falling = rescale(b, below, scale_of(abs(slope)), DType.INT32, bound=bound)
    value = b("SUB" if slope < 0 else "ADD", rising, falling)
    return rescale(b, value, IDENTITY, DType.INT16, bound=0, quantization=y)


def _ratio(call: Call, before: float, after: float, factor: float = 1.0) -> float:
    """Return before * factor / after in float64, as TFLite Micro does, or in float32, as LiteRT."""
    wide = np.float32 if call.output().type is FileType.UINT8 else np.float64
    with np.errstate(over="ignore", under="ignore"):
        ratio = float(wide(before) * wide(factor) / wide(after))
    call.need(isfinite(ratio), "its scales are too far apart")
    return ratio


def _bytes(call: Call) -> Quantization:
    """Return the input's quantisation; refuse types of more than a byte."""
    call.need_types(FileType.INT8, FileType.UINT8)
    return call.quantization(call.input(0))


def _sigmoid(real: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.float32(1) / (np.float32(1) + np.exp(-real))


def _floating(call: Call, function: Callable[[Floats], Floats]) -> Value:
    """Add a table that is computed in float32, as the kernels for unsigned bytes do."""
    x, y = call.quantization(call.input(0)), call.quantization(call.output())
    with np.errstate(over="ignore"):
        real = np.float32(x.scale) * (EVERY - x.zero_point).astype(np.float32)
        fine = function(real) * (np.float32(1) / np.float32(y.scale))
    call.need(bool(np.isfinite(fine).all()), "its scales are too far apart")
    fine = np.clip(fine, -(1 << 16), 1 << 16)
    away = np.copysign(np.floor(np.abs(fine.astype(np.float64)) + 0.5), fine)
    return _table(call, away.astype(np.int64) + y.zero_point)


def _scaled(call: Call, values: Numbers, scale: float) -> Numbers:
    multipliers, exponents = multiplier_of(scale)
    exponent = int(exponents[0])
    call.need(exponent < 23, "its scales overflow in TFLite's kernel")
    return fixed_point.scaled(values, int(multipliers[0]), exponent)


def _fraction(call: Call, x: Quantization) -> tuple[Numbers, Truths]:
    """Return every integer as a number of four integer bits, and whether it is within +-15.

    Those outside are only right in sign.
    """
    fraction, exponent = frexp(x.scale * (1 << (31 - INPUT_BITS)))
    call.need(0 <= exponent < 31, "its scale is beyond what TFLite's kernel can do")
    multiplier = int(np.floor(fraction * (1 << 31) + 0.5))
    limit = ((1 << INPUT_BITS) - 1) << (31 - INPUT_BITS) >> exponent
    plain = EVERY - x.zero_point
    inside = np.abs(plain) < limit
    return np.where(inside, fixed_point.scaled(plain, multiplier, exponent), plain), inside


def _saturated(result: Numbers, values: Numbers, inside: Truths) -> Numbers:
    low, high = integer_range(DType.INT8)
    return np.where(inside, result, np.where(values < 0, low, high))


def _short(scale: float) -> tuple[int, int]:
    """Return a multiplier of 15 bits and the exponent of a scale; 0 and 0 of one too small."""
    multipliers, exponents = multiplier_of(scale)
    short = min((int(multipliers[0]) + (1 << 15)) >> 16, (1 << 15) - 1)
    return short, int(exponents[0]) if multipliers[0] else 0


def _halved(values: Numbers, times: int) -> Numbers:
    """Halve numbers of 16 bits so often, ties away from zero.

    From 16 times on the mask of the kernel's remainder does not fit them, and all of a number is
    taken for a remainder above the half.

    Ref: gemmlowp, fixedpoint.h, RoundingDivideByPOT.
    """
    if times < SHORT_BITS:
        return fixed_point.divided(values, times)
    return np.where(values < 0, -1, 1)


def _times(values: Numbers, factor: int) -> Numbers:
    """Multiply numbers of 15 fraction bits, rounded to nearest, ties up."""
    return (values * factor + (1 << 14)) >> 15


def _raised(values: Numbers, bits: int) -> Numbers:
    return np.clip(values << bits, -(1 << 15), (1 << 15) - 1)


def _table(call: Call, entries: Numbers) -> Value:
    low, high = integer_range(DType.INT8)
    table = call.b.constant(np.clip(entries, low, high), DType.INT8)
    return call.b("TABLE", call.value(), table)
