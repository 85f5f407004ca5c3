"""What the type conversions compute. Ref: TOSA 1.0, 2.13."""

from __future__ import annotations

import numpy as np

from mizzen.graph import Array, DType, Operation, RoundingMode, integer_range
from mizzen.ops import type_conversion as tosa
from mizzen.reference.kernel import Kernels, broken, rounded, saturated

DOUBLE_FROM_SHIFT = 31
"""Double rounding differs from single for shifts greater than this."""


def cast(operation: tosa.Cast, values: Array) -> Array:
    """Convert; numbers that are no integers are rounded to nearest, ties to even, and saturate."""
    source, target = operation.input.dtype, operation.result.dtype
    if target is DType.BOOL:
        return values != 0
    if target.is_float:
        return rounded(values.astype(np.float64), target)
    if source.is_float:
        if np.isnan(values).any():
            raise broken(operation, f"a number must be cast to {target.value}, not NaN")
        low, high = integer_range(target)
        return np.clip(np.rint(values.astype(np.float64)), low, high).astype(target.numpy)
    return values.astype(target.numpy)


def rescale(
    operation: tosa.Rescale,
    values: Array,
    multiplier: Array,
    shift: Array,
    input_zp: Array,
    output_zp: Array,
) -> Array:
    """Multiply with multiplier / 2**shift between zero points, round, saturate.

    INEXACT_ROUND, which leaves the implementation a choice, is as SINGLE_ROUND.
    """
    source, target = operation.input.dtype, operation.result.dtype
    if not operation.per_channel:  # numbers, not arrays, so that a value of rank 0 stays so
        multiplier, shift = multiplier[0], shift[0]
    plain = _extended(values, source, operation.input_unsigned)
    plain = plain - _extended(input_zp, source, operation.input_unsigned)[0]
    scale32 = operation.scale32
    if scale32:
        _narrow_enough(operation, plain, shift)
    shifts = shift.astype(np.int64)
    rounding = np.left_shift(1, shifts - 1)
    result = plain * multiplier.astype(np.int64)
    if operation.rounding_mode is RoundingMode.DOUBLE_ROUND:
        twice = np.where(shifts > DOUBLE_FROM_SHIFT, 1 << (DOUBLE_FROM_SHIFT - 1), 0)
        rounding = rounding + np.where(plain >= 0, twice, -twice)
    result = (result + rounding) >> shifts
    if not scale32:
        _within_i32(operation, result)
    result = result + _extended(output_zp, target, operation.output_unsigned)[0]
    if operation.output_unsigned:
        bits = 8 * target.numpy.itemsize
        return np.clip(result, 0, (1 << bits) - 1).astype(target.numpy)
    return saturated(result, target)


def _extended(values: Array, dtype: DType, unsigned: bool) -> Array:
    if unsigned:
        values = values.view(np.dtype(f"u{dtype.numpy.itemsize}"))
    return values.astype(np.int64)


def _narrow_enough(operation: Operation, values: Array, shift: Array) -> None:
    """Check that scaled values fit i32: they must be less than half of 2**shift."""
    bound = np.left_shift(1, shift.astype(np.int64) - 1)
    if values.size and (values.min() < -bound.min() or values.max() >= bound.min()):
        wrong = (values < -bound) | (values >= bound)
        if wrong.any():
            bounds, came = np.broadcast_to(bound, values.shape)[wrong][0], values[wrong][0]
            raise broken(operation, f"values must be from -{bounds} to {bounds - 1}, not {came}")


def _within_i32(operation: Operation, values: Array) -> None:
    low, high = integer_range(DType.INT32)
    if values.size and (values.min() < low or values.max() > high):
        came = int(values.min() if values.min() < low else values.max())
        raise broken(operation, f"scaled values must be i32, from {low} to {high}, not {came}")


KERNELS: Kernels = {tosa.Cast: cast, tosa.Rescale: rescale}
