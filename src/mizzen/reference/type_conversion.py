"""What the type conversions compute. Ref: TOSA 1.0, 2.13."""

from __future__ import annotations

import numpy as np

from mizzen.graph import Array, DType, Operation, RoundingMode, integer_range
from mizzen.ops import type_conversion as tosa
from mizzen.reference.kernel import Kernels, broken, rounded

DOUBLE_FROM_SHIFT = 31
"""Double rounding differs from single for shifts greater than this."""
REACH = 1 << 32
"""No i32, or unsigned integer of as many bits, is farther than this from another."""


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
    flat, multiplier, shift = _as_rows(values, multiplier, shift)
    result = _extended(flat, source, operation.input_unsigned)
    result -= _extended(input_zp, source, operation.input_unsigned)[0]
    if operation.scale32:
        _narrow_enough(operation, result, shift)
    rounding = np.left_shift(1, shift - 1)
    if operation.rounding_mode is RoundingMode.DOUBLE_ROUND:
        twice = np.where(shift > DOUBLE_FROM_SHIFT, 1 << (DOUBLE_FROM_SHIFT - 1), 0)
        rounding = rounding + twice
        below = result >> 63
        below &= 2 * twice
        result *= multiplier
        result -= below
    else:
        result *= multiplier
    result += rounding
    result >>= shift
    if not operation.scale32:
        _within_i32(operation, result)
    result += _extended(output_zp, target, operation.output_unsigned)[0]
    if operation.output_unsigned:
        low, high = 0, (1 << 8 * target.numpy.itemsize) - 1
    else:
        low, high = integer_range(target)
    np.clip(result, low, high, out=result)
    return result.astype(target.numpy).reshape(values.shape)


def _as_rows(values: Array, multiplier: Array, shift: Array) -> tuple[Array, Array, Array]:
    """Return values in at least one dimension, multipliers and shifts as int64.

    Those of few channels are repeated for the next dimension, and both are one dimension then:
    the same numbers in fewer steps.
    """
    factors, shifts = multiplier.astype(np.int64), shift.astype(np.int64)
    if len(factors) == 1:
        return values.reshape(-1), factors, shifts
    if values.ndim == 1:
        return values, factors, shifts
    count = values.shape[-2]
    flat = values.reshape(*values.shape[:-2], -1)
    return flat, np.tile(factors, count), np.tile(shifts, count)


def _extended(values: Array, dtype: DType, unsigned: bool) -> Array:
    """Return integers as int64, a copy."""
    if unsigned:
        values = values.view(np.dtype(f"u{dtype.numpy.itemsize}"))
    return values.astype(np.int64)


def _narrow_enough(operation: tosa.Rescale, values: Array, shift: Array) -> None:
    """Check that scaled values fit i32: they must be less than half of 2**shift."""
    bound = np.left_shift(1, shift - 1)
    least = bound.min()
    if least > min(REACH, 2 << 8 * operation.input.dtype.numpy.itemsize) or not values.size:
        return
    if values.min() < -least or values.max() >= least:
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
