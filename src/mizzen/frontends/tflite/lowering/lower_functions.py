"""Functions of one tensor that kernels compute in float32, or by a method of their own: TABLE.

A TABLE of bytes has an entry for each of the 256 integers, one of 16 bits for each 128th, between
which kernels draw lines as TABLE does. TFLite Micro has kernels of ELU, RSQRT and ABS only; the
others are LiteRT's. What no kernel takes as unsigned bytes is as it is of signed ones.

Ref: TFLite Micro, kernels/internal/common.h (LUTPopulate, GetInvSqrtQuantizedMultiplierExp),
kernels/elu.cc, kernels/elementwise.cc; TensorFlow Lite, kernels/exp.cc, gelu.cc, elementwise.cc,
neg.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, exp, isfinite, log, pi, sqrt, tanh

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, lowers, no_shift
from mizzen.frontends.tflite.lowering import fixed_point
from mizzen.frontends.tflite.lowering.fixed_point import Numbers
from mizzen.frontends.tflite.lowering.requantization import (
    IDENTITY,
    Scale,
    centered,
    multiplier_of,
    reach,
    rescale,
    scale_of,
)
from mizzen.frontends.tflite.tflite_tensors import quantization_of
from mizzen.graph import DType, RoundingMode, Value, integer_range

Floats = npt.NDArray[np.float32]
Function = Callable[[float], float]

EVERY = np.arange(-128, 128, dtype=np.int64)
"""The integers that a table of bytes has entries for."""

BYTES = (FileType.INT8, FileType.UINT8)
LINES = 512
"""Lines of a table of 16 bits."""

FRACTION = Scale(np.array([1 << 23]), np.array([30]), rounding=RoundingMode.SINGLE_ROUND)
"""Takes the 7 bits off that a table of 16 bits has behind the point."""

MOST_REAL = 1e30
"""What is to be less than this has no infinity near it in float32."""

LARGEST = 1 << 20
"""Beyond what a table's entries are clipped to, whatever they are."""


@lowers("EXP")
def exponential(call: Call) -> Value:
    """exp(x): TABLE; of 16 bits TABLE, RESCALE."""
    return _computed(call, _exp)


@lowers("ELU")
def elu(call: Call) -> Value:
    """x, or exp(x) - 1 where x < 0: TABLE."""
    call.need_types(FileType.INT8)
    return _computed(call, lambda x: float(np.float32(_exp(x)) - np.float32(1)) if x < 0 else x)


@lowers("GELU")
def gelu(call: Call) -> Value:
    """x * (1 + erf(x / sqrt(2))) / 2, or with tanh if it is `approximate`: TABLE."""
    call.need_types(*BYTES)
    return _computed(call, _approximate_gelu if call.option("approximate", False) else _gelu)


def _gelu(x: float) -> float:
    return 0.5 * x * erfc(-x * sqrt(0.5))


def _approximate_gelu(x: float) -> float:
    return 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))


@lowers("LOG")
def logarithm(call: Call) -> Value:
    """log(x), and the least that the output can be where x <= 0: TABLE; of 16 bits TABLE,
    RESCALE."""
    dtype = call.need_types(FileType.INT8, FileType.INT16)
    y = call.quantization(call.output())
    low = -128 if dtype is FileType.INT8 else -(1 << 15)
    least = float(np.float32(y.scale) * np.float32(low - y.zero_point))
    return _computed(call, lambda x: log(x) if x > 0 else least)


@lowers("RSQRT")
def reciprocal_root(call: Call) -> Value:
    """1 / sqrt(x): TABLE. The kernel ends the inference where x < 0."""
    call.need_types(FileType.INT8)
    x, y = call.quantization(call.input(0)), call.quantization(call.output())
    root = np.sqrt(np.float32(x.scale)) * np.float32(y.scale)
    scale = float(1 / np.float64(root))
    entries = [_root(call, int(value), scale) for value in EVERY - x.zero_point]
    return _table(call, np.array(entries, np.int64) + y.zero_point)


FINER_BITS = 20
"""Bits by which RSQRT is finer than its result until it is scaled."""


def _root(call: Call, value: int, scale: float) -> int:
    """Return the reciprocal root of an integer, scaled."""
    if value <= 0:
        return LARGEST
    multiplier, exponent = inverse_root(value)
    wide = _scaled(1, multiplier, exponent + FINER_BITS)
    multipliers, exponents = multiplier_of(scale)
    exponent = int(exponents[0]) - FINER_BITS
    call.need(exponent < 0, "its scales overflow in TFLite's kernel")
    return _scaled(wide, int(multipliers[0]), exponent)


def _scaled(value: int, multiplier: int, exponent: int) -> int:
    return int(fixed_point.scaled(np.array(value), multiplier, exponent))


HALF_THREE = (1 << 28) + (1 << 27)
HALF_ROOT_OF_TWO = 1518500250


def inverse_root(value: int) -> tuple[int, int]:
    """Return 1 / sqrt(value) as a multiplier of 31 fraction bits and an exponent.

    By five of Newton's steps in numbers of three integer bits.
    """
    if value <= 1:
        return fixed_point.HIGH, 0
    pairs = (31 - value.bit_length()) // 2 - 1
    given = np.array(value << (2 * pairs) >> 1)
    half = fixed_point.divided(given, 1)
    x = np.array(1 << 28)
    for _ in range(5):
        cube = fixed_point.raised(fixed_point.times(fixed_point.times(x, x), x), 6)
        step = fixed_point.times(x, HALF_THREE) - fixed_point.times(half, cube)
        x = fixed_point.raised(step, 3)
    root = int(fixed_point.times(x, HALF_ROOT_OF_TWO))
    shift = 11 - pairs
    return (root << -shift, 0) if shift < 0 else (root, -shift)


@lowers("ABS")
def magnitude(call: Call) -> Value:
    """The magnitude, in another scale: TABLE; of 16 bits RESCALE (zero point off), ABS, RESCALE;
    of 32 bits, which are not rescaled, ABS."""
    dtype = call.need_types(*BYTES, FileType.INT16, FileType.INT32)
    if dtype is FileType.INT32:
        same = quantization_of(call.input(0)) == quantization_of(call.output())
        call.need(same, "its output has another quantisation than its input")
        return call.b("ABS", call.value())
    x, y = call.quantization(call.input(0)), call.quantization(call.output())
    if dtype is not FileType.INT16:
        return _table(call, _rescaled(call, np.abs(EVERY - x.zero_point)) + y.zero_point)
    call.need(not x.zero_point and not y.zero_point, "its 16-bit tensors have zero points")
    b, value = call.b, call.value()
    scale = IDENTITY if x.scale == y.scale else scale_of(_ratio(call))
    bound = reach(value.dtype, 0) + 1
    return rescale(b, b("ABS", centered(b, value)), scale, value.dtype, bound=bound, quantization=y)


def _ratio(call: Call) -> float:
    """Return the input's scale divided by the output's."""
    ratio = call.quantization(call.input(0)).scale / call.quantization(call.output()).scale
    call.need(isfinite(ratio), "its scales are too far apart")
    return ratio


def _rescaled(call: Call, values: Numbers, sign: int = 1) -> Numbers:
    """Return integers in the output's scale."""
    ratio = _ratio(call)
    if ratio == 1:
        return values * sign
    multipliers, exponents = multiplier_of(ratio)
    call.need(int(exponents[0]) < 23, "its scales overflow in TFLite's kernel")
    return fixed_point.scaled(values * sign, int(multipliers[0]), int(exponents[0]))


@lowers("NEG")
def negative(call: Call) -> Value:
    """The negative of the integers as they are: TABLE; of 32 bits SUB; of 16 bits RESCALE (to
    i32), MAXIMUM, SUB, MUL, SUB, RESCALE (back).

    The least integer of 8 or 16 bits is its own negative, 65,535 less than the greatest. Of
    unsigned bytes, which no kernel takes, it is that of the real numbers.
    """
    dtype = call.need_types(*BYTES, FileType.INT16, FileType.INT32)
    value = call.value()
    if dtype is FileType.INT8:
        return _table(call, np.where(EVERY > -128, -EVERY, EVERY))
    if dtype is FileType.UINT8:
        x, y = call.quantization(call.input(0)), call.quantization(call.output())
        return _table(call, _rescaled(call, EVERY - x.zero_point, -1) + y.zero_point)
    b, ones = call.b, (1,) * value.type.rank
    nothing = b.constant(np.zeros(ones), DType.INT32)
    if dtype is FileType.INT32:
        return b("SUB", nothing, value)
    plain = centered(b, value)
    bounded = b("MAXIMUM", plain, b.constant(np.full(ones, -32767), DType.INT32))
    least = b("SUB", plain, bounded)
    around = b("MUL", least, b.constant(np.full(ones, 65535), DType.INT32), no_shift(b))
    return rescale(b, b("SUB", around, bounded), IDENTITY, DType.INT16, bound=1 << 16)


def _exp(x: float) -> float:
    return exp(min(x, 80.0))


def _computed(call: Call, function: Function) -> Value:
    """Add a table that is computed in float32."""
    call.need_types(*BYTES, FileType.INT16)
    call.need(call.input(0).quantization is not None, "its input has no scale")
    if call.output().type is FileType.INT16:
        return _lines(call, function)
    x, y = call.quantization(call.input(0)), call.quantization(call.output())
    real = np.float32(x.scale) * (EVERY - x.zero_point).astype(np.float32)
    with np.errstate(over="ignore"):
        fine = _of(function, real) * (np.float32(1) / np.float32(y.scale))
    return _table(call, _away(np.clip(fine, -LARGEST, LARGEST)) + y.zero_point)


def _of(function: Function, values: Floats) -> Floats:
    """Return a function of float32 numbers, rounded to float32."""
    return np.array([function(float(value)) for value in values], np.float64).astype(np.float32)


def _away(values: Floats) -> Numbers:
    """Return the nearest integers, ties away from zero."""
    wide = values.astype(np.float64)
    return np.copysign(np.floor(np.abs(wide) + 0.5), wide).astype(np.int64)


def _table(call: Call, entries: Numbers) -> Value:
    low, high = integer_range(DType.INT8)
    table = call.b.constant(np.clip(entries, low, high), DType.INT8)
    return call.b("TABLE", call.value(), table)


def _lines(call: Call, function: Function) -> Value:
    """Add a table of 16 bits, and what takes its fraction off."""
    x, y = call.quantization(call.input(0)), call.quantization(call.output())
    call.need(not x.zero_point and not y.zero_point, "its 16-bit tensors have zero points")
    call.need(function(x.scale * 32767) < MOST_REAL, "its kernel computes beyond float32")
    entries = line_entries(function, x.scale, y.scale)
    call.need(int(np.abs(np.diff(entries)).max()) < 1 << 15, "a line of its table is too steep")
    b = call.b
    wide = b("TABLE", call.value(), b.constant(entries, DType.INT16))
    return rescale(b, wide, FRACTION, DType.INT16, bound=1 << 23, quantization=y)


def line_entries(function: Function, before: float, after: float, zero_point: int = 0) -> Numbers:
    """Return the 513 entries of a table between integers of 16 bits of two scales.

    `zero_point` is that of what the table is of.

    Each is moved by half of what the line is off in its middle, in float32, as kernels do.
    """
    low, high = (np.float32(v - zero_point) * np.float32(before) for v in (-32768, 32767))
    least, most = (np.float32(value) * np.float32(after) for value in (-32768, 32767))
    step = (high - low) / np.float32(LINES)
    starts = low + np.arange(LINES, dtype=np.float32) * step
    fine = np.float32(1 << 16) / (most - least)
    with np.errstate(over="ignore"):
        values, middles = (_of(function, row) * fine for row in (starts, starts + step / 2))
        ends = _of(function, low + np.arange(1, LINES + 1, dtype=np.float32) * step) * fine
        last = _of(function, np.array([high])) * fine
    first = _round(values)
    off = _round((ends + first) / np.float32(2)) - _round(middles)
    bounds = integer_range(DType.INT16)
    moved = first - _round(off / np.float32(2))
    return np.clip(np.append(moved, _round(last)), *bounds).astype(np.int64)


def _round(values: Floats) -> Floats:
    return np.copysign(np.floor(np.abs(values) + np.float32(0.5)), values)
