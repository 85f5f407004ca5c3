"""Scales of TFLite as RESCALE, bounds of activations as CLAMP; QUANTIZE between integers.

TFLite Micro's kernels multiply 32-bit sums by a multiplier of 31 bits, take the upper half, rounded
to nearest, ties up, and divide that by a power of two, ties away from zero. Both together are
RESCALE with double rounding, for every multiplier and shift. 64-bit sums are multiplied by a
multiplier of 15 bits and rounded once, which is RESCALE without scale32.

Ref: TFLite Micro, kernels/internal/common.cc and quantization_util.cc; TOSA 1.0, 2.13.2 RESCALE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.flatbuffer.tflite import ActivationFunctionType as Activation
from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.tflite.context import Call, lowers, zero
from mizzen.frontends.tflite.tflite_tensors import Array
from mizzen.graph import DType, Quantization, RoundingMode, Value, integer_range
from mizzen.ops import Builder

FRACTION_BITS = 31
"""Bits behind the point of TFLite's multipliers, which are 0.5 to 1."""

SHORT_FRACTION_BITS = 15
"""The same for those that multiply 64-bit sums."""

SHORT_LIMIT = 0x7FFF0000
"""From here on a multiplier does not round to 15 bits, and is the greatest of them."""

LEAST_EXPONENT = -31
"""Scales below 2**-32 count as 0."""

SHIFTS = (2, 62)
"""Shifts that RESCALE allows. Ref: TOSA 1.0, 1.11.1 apply_scale."""

INTEGERS = (FileType.INT8, FileType.UINT8, FileType.INT16, FileType.INT32)


@dataclass(frozen=True, slots=True)
class Scale:
    """Multipliers and shifts, one or one for each channel: `multiplier / 2**shift`.

    long  whether multipliers have 31 bits, not 15
    """

    multipliers: Array
    shifts: Array
    long: bool = True
    rounding: RoundingMode = RoundingMode.DOUBLE_ROUND

    @property
    def reach(self) -> int:
        """Values from minus this to one less are scaled without overflow."""
        return 1 << int(self.shifts.min() - 1)


def multiplier_of(scales: Array | float) -> tuple[Array, Array]:
    """Return 31-bit multipliers [N] and exponents [N] of scales >= 0, as TFLite makes them."""
    fractions, exponents = np.frexp(np.atleast_1d(np.asarray(scales, np.float64)))
    multipliers = np.floor(fractions * (1 << FRACTION_BITS) + 0.5).astype(np.int64)
    full = multipliers == 1 << FRACTION_BITS
    multipliers = np.where(full, multipliers >> 1, multipliers)
    exponents = exponents.astype(np.int64) + full
    nothing = exponents < LEAST_EXPONENT
    return np.where(nothing, 0, multipliers), np.maximum(exponents, LEAST_EXPONENT)


def scale_of(scales: Array | float) -> Scale:
    """Return the scales by which TFLite multiplies 32-bit sums."""
    multipliers, exponents = multiplier_of(scales)
    return checked(Scale(multipliers, FRACTION_BITS - exponents))


def short_scale_of(scales: Array | float) -> Scale:
    """Return the scales by which TFLite multiplies 64-bit sums."""
    multipliers, exponents = multiplier_of(scales)
    rounded = (multipliers + (1 << 15)) >> 16
    short = np.where(multipliers < SHORT_LIMIT, rounded, 0x7FFF)
    shifts = SHORT_FRACTION_BITS - exponents
    return checked(Scale(short, shifts, long=False, rounding=RoundingMode.SINGLE_ROUND))


def checked(scale: Scale) -> Scale:
    """Return scales; refuse those that RESCALE does not have."""
    if scale.shifts.min() < SHIFTS[0] or scale.shifts.max() > SHIFTS[1]:
        raise RefusedError("its scales are beyond what RESCALE can do")
    return scale


IDENTITY = Scale(np.array([1 << 30]), np.array([30]))
"""Leaves values as they are."""


def rescale(
    b: Builder,
    value: Value,
    scale: Scale,
    to: DType,
    *,
    bound: float,
    zero_points: tuple[int, int] = (0, 0),
    quantization: Quantization | None = None,
) -> Value:
    """Add a RESCALE with TFLite's rounding.

    bound         the value, less its zero point, is at least minus this and less than it; refused
                  where TFLite's kernels overflow, since what they give then is nobody's intention
    zero_points   of the input and of the output
    quantization  of the result
    """
    if bound > min(scale.reach, 1 << 31) and scale.long:
        raise RefusedError("its sums can overflow when TFLite scales them")
    multiplier = DType.INT32 if scale.long else DType.INT16
    return b(
        "RESCALE",
        value,
        b.constant(scale.multipliers, multiplier),
        b.constant(scale.shifts, DType.INT8),
        zero(b, value.dtype, zero_points[0]),
        zero(b, to, zero_points[1]),
        scale32=scale.long,
        rounding_mode=scale.rounding,
        per_channel=len(scale.multipliers) > 1,
        quantization=quantization,
    )


def centered(b: Builder, value: Value, zero_point: int = 0) -> Value:
    """Widen integers to i32 and take their zero point off."""
    return rescale(
        b,
        value,
        IDENTITY,
        DType.INT32,
        bound=reach(value.dtype, zero_point),
        zero_points=(zero_point, 0),
    )


def halves(b: Builder, value: Value) -> tuple[Value, Value]:
    """Return numbers of 32 bits where they are above 0, and where they are below, else 0: MAXIMUM
    and MINIMUM."""
    nothing = b.constant(np.zeros((1,) * value.type.rank), DType.INT32)
    return b("MAXIMUM", value, nothing), b("MINIMUM", value, nothing)


def reach(dtype: DType, zero_point: int) -> int:
    """Return between which bounds, minus it and one less, integers less a zero point are."""
    low, high = integer_range(dtype)
    return max(zero_point - low, high - zero_point + 1)


def quantized(real: float, quantization: Quantization) -> int:
    """Return the integer that stands for a real number, in float32, ties away from zero."""
    with np.errstate(over="ignore"):
        ratio = np.float32(real) / np.float32(quantization.scale)
    if not abs(ratio) < 1 << 31:
        raise RefusedError("its scale is too small for the bounds of its activation")
    away = np.copysign(np.floor(np.abs(np.float64(ratio)) + 0.5), ratio)
    return int(away) + quantization.zero_point


REAL_BOUNDS: dict[int, tuple[float | None, float | None]] = {
    Activation.NONE: (None, None),
    Activation.RELU: (0.0, None),
    Activation.RELU_N1_TO_1: (-1.0, 1.0),
    Activation.RELU6: (0.0, 6.0),
}
"""Between what an activation clamps; None is no bound."""


def bounds_of(
    real: Sequence[float | None], dtype: DType, quantization: Quantization
) -> tuple[int, int]:
    """Return the integers of a type between which values are clamped."""
    least, greatest = integer_range(dtype)
    low, high = real
    return (
        least if low is None else max(least, quantized(low, quantization)),
        greatest if high is None else min(greatest, quantized(high, quantization)),
    )


def activated(call: Call, value: Value, quantization: Quantization) -> Value:
    """Add a CLAMP for the fused activation, if it bounds more than the type does."""
    number = int(call.option("fused_activation_function"))
    real = REAL_BOUNDS.get(number)
    if real is None:
        raise RefusedError(f"its fused activation is number {number}")
    low, high = bounds_of(real, value.dtype, quantization)
    if (low, high) == integer_range(value.dtype):
        return value
    call.need(low <= high, "its fused activation leaves no value")
    return call.b("CLAMP", value, min_val=low, max_val=high, quantization=quantization)


@lowers("QUANTIZE")
def requantize(call: Call) -> Value:
    """Integers to those of another scale, zero point or type: RESCALE."""
    source, target = call.input(0), call.output()
    for tensor in (source, target):
        call.need(tensor.type in INTEGERS, f'its tensor "{tensor.name}" is {tensor.type.name}')
    before, after = call.quantization(source), call.quantization(target)
    value = call.value()
    to = _dtype(target.type)
    return rescale(
        call.b,
        value,
        scale_of(before.scale / after.scale),
        to,
        bound=reach(value.dtype, before.zero_point),
        zero_points=(before.zero_point, after.zero_point),
    )


def _dtype(type: FileType) -> DType:
    match type:
        case FileType.INT8 | FileType.UINT8:
            return DType.INT8
        case FileType.INT16:
            return DType.INT16
        case _:
            return DType.INT32
