"""How integers come from one scale to another: RESCALE, rounded once.

Ref: TOSA 1.0, 2.10.2 RESCALE, 1.11.1 apply_scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp

import numpy as np

from mizzen.frontends.quantized.terms import Array, Real, Target
from mizzen.graph import DType, Quantization, RoundingMode, Value, integer_range
from mizzen.ops import Builder

MULTIPLIER_BITS = 31
"""RESCALE's multiplier is in [2**30, 2**31) with scale32, in [2**14, 2**15) without."""


MULTIPLIER_BITS_SHORT = 15


SHIFT_MIN, SHIFT_MAX = 2, 62
"""The shifts that TOSA 1.0 allows."""


def multiplier_of(scale: float, bits: int = MULTIPLIER_BITS) -> tuple[int, int]:
    """Return multiplier and shift with ``multiplier / 2**shift`` nearest to `scale` > 0."""
    fraction, exponent = frexp(scale)
    multiplier = round(fraction * (1 << bits))
    if multiplier == 1 << bits:
        multiplier, exponent = multiplier >> 1, exponent + 1
    shift = bits - exponent
    while shift > SHIFT_MAX:
        multiplier, shift = (multiplier + 1) >> 1, shift - 1
    if shift < SHIFT_MIN:
        raise ValueError(f"a scale of {scale} is beyond what RESCALE can do")
    return multiplier, shift


def rescale(
    b: Builder,
    value: Value,
    scale: float | Sequence[float] | Array,
    to: DType,
    zero_points: tuple[int, int] = (0, 0),
) -> Value:
    """Add a RESCALE; `scale` is one, or one for each index of the last dimension.

    zero_points  of the input and of the output
    """
    scales = np.atleast_1d(np.asarray(scale, np.float64))
    long = value.dtype is not DType.INT48
    bits = MULTIPLIER_BITS if long else MULTIPLIER_BITS_SHORT
    pairs = [multiplier_of(float(item), bits) for item in scales]
    kind = DType.INT32 if long else DType.INT16
    return b(
        "RESCALE",
        value,
        b.constant([multiplier for multiplier, _ in pairs], kind),
        b.constant([shift for _, shift in pairs], DType.INT8),
        b.constant([zero_points[0]], value.dtype),
        b.constant([zero_points[1]], to),
        scale32=long,
        rounding_mode=RoundingMode.SINGLE_ROUND,
        per_channel=len(pairs) > 1,
    )


def requantize(
    b: Builder,
    value: Value,
    scale: float | Sequence[float] | Array,
    target: Target,
    zero_point: int = 0,
) -> Value:
    """Turn integers of a given scale (the last dimension's, if several) into the target's."""
    ratio = np.asarray(scale, np.float64) / target.scale
    same = (
        value.dtype is target.dtype
        and zero_point == target.zero_point
        and bool(np.all(ratio == 1.0))
    )
    if not same:
        value = rescale(b, value, ratio, target.dtype, (zero_point, target.zero_point))
    return clamped(b, value, target)


def as_target(b: Builder, x: Real, target: Target) -> Value:
    """Return a real tensor's integers for a target."""
    return requantize(b, x.value, x.scale, target, x.zero_point)


def widened(b: Builder, x: Real) -> Real:
    """Return the same numbers in 16 bits, without zero point."""
    quantization = Quantization((x.scale,), (0,))
    return Real(as_target(b, x, Target(DType.INT16, quantization, *integer_range(DType.INT16))))


def clamped(b: Builder, value: Value, target: Target) -> Value:
    """Add a CLAMP if the target's bounds are tighter than its type's.

    16-bit numbers keep their least value, -32768, which a symmetric range leaves out: it differs
    from -32767 by one step, and only where the tensor saturates.
    """
    low, high = target.bounds
    least, greatest = integer_range(target.dtype)
    if low == -greatest and target.dtype is DType.INT16:
        low = least
    if (low, high) == (least, greatest):
        return typed(value, target)
    return typed(b("CLAMP", value, min_val=low, max_val=high), target)


def typed(value: Value, target: Target) -> Value:
    """Say how a value's integers stand for real numbers."""
    value.type = value.type.quantized(target.quantization)
    return value


def centered(b: Builder, x: Real) -> Value:
    """Return 32-bit integers without zero point."""
    return rescale(b, x.value, 1.0, DType.INT32, (x.zero_point, 0))
