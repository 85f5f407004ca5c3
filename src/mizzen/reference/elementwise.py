"""What elementwise operators compute; nothing is greater or less than a NaN.

Ref: TOSA 1.0, 2.4 to 2.8.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf

import numpy as np

from mizzen.graph import INTEGER_BITS, Array, DType, NanMode, Operation
from mizzen.ops import elementwise as tosa
from mizzen.reference.kernel import (
    Kernel,
    Kernels,
    broken,
    fitted,
    plainly,
    real,
    rounded,
    saturated,
    wide,
)


def clamp(operation: tosa.Clamp, values: Array) -> Array:
    """Return the nearest value within the bounds; a NaN, or `min_val`, as `nan_mode` says."""
    low, high = operation.min_val, operation.max_val
    dtype = operation.result.dtype
    if not dtype.is_float:
        return np.clip(values, low, high).astype(values.dtype, copy=False)
    bounds = rounded(np.array([low, high], np.float64), dtype)
    result = np.clip(values, bounds[0], bounds[1])
    if operation.nan_mode is NanMode.IGNORE:
        result = np.where(np.isnan(values), bounds[0], result)
    return result


def _erf(values: Array) -> Array:
    return np.fromiter(map(erf, values.reshape(-1).tolist()), np.float64).reshape(values.shape)


def _sigmoid(values: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-values))


TABLE_FRACTION_BITS = 7
"""A table for i16 has an entry for each 128th value; between them it is interpolated."""


def arithmetic(compute: Callable[[Array, Array], Array]) -> Kernel:
    """Return the kernel of an operation whose integers must not overflow."""

    def kernel(operation: Operation, a: Array, b: Array) -> Array:
        dtype = operation.result.dtype
        with np.errstate(over="ignore", invalid="ignore"):
            result = compute(wide(operation, a), wide(operation, b))
        return rounded(result, dtype) if dtype.is_float else fitted(operation, result, dtype)

    return kernel


def arithmetic_right_shift(operation: tosa.ArithmeticRightShift, a: Array, b: Array) -> Array:
    """Divide by a power of two, toward minus infinity, or with `round` to nearest, ties up."""
    _shifts(operation, b)
    result = a >> b
    if operation.round:
        last = (a >> np.maximum(b, 1) - 1) & 1
        result = np.where(b > 0, result + last, result)
    return result.astype(a.dtype)


def logical_left_shift(operation: Operation, a: Array, b: Array) -> Array:
    """Shift bits out at the upper end."""
    _shifts(operation, b)
    return (a.astype(np.int64) << b).astype(a.dtype)


def logical_right_shift(operation: Operation, a: Array, b: Array) -> Array:
    """Shift zeros in at the upper end."""
    _shifts(operation, b)
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    return (a.astype(unsigned) >> b.astype(unsigned)).astype(a.dtype)


def _shifts(operation: Operation, shifts: Array) -> None:
    most = INTEGER_BITS[operation.result.dtype] - 1
    if shifts.min() < 0 or shifts.max() > most:
        came = shifts.min() if shifts.min() < 0 else shifts.max()
        raise broken(operation, f"shifts must be from 0 to {most}, and one is {came}")


def intdiv(operation: Operation, a: Array, b: Array) -> Array:
    """Divide, toward zero."""
    if not b.all():
        raise broken(operation, "the divisor must not be 0")
    a, b = a.astype(np.int64), b.astype(np.int64)
    quotient = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return fitted(operation, quotient, operation.result.dtype)


def maximum(operation: tosa.Extremum, a: Array, b: Array) -> Array:
    """Return the greater; of a NaN and a number, what `nan_mode` says."""
    return _extremum(operation, a, b, np.greater_equal)


def minimum(operation: tosa.Extremum, a: Array, b: Array) -> Array:
    """Return the lesser; of a NaN and a number, what `nan_mode` says."""
    return _extremum(operation, a, b, np.less)


def _extremum(
    operation: tosa.Extremum, a: Array, b: Array, better: Callable[[Array, Array], Array]
) -> Array:
    result = np.where(better(a, b), a, b)
    if not operation.result.dtype.is_float:
        return result
    if operation.nan_mode is NanMode.IGNORE:
        return np.where(np.isnan(b), a, result)  # nothing is better than a NaN, so a NaN in a goes
    return np.where(np.isnan(a) | np.isnan(b), np.array(np.nan, a.dtype), result)


def mul(operation: Operation, a: Array, b: Array, shift: Array) -> Array:
    """Multiply; i32 with a shift is rounded to nearest, ties up, and without gives the low bits."""
    dtype = operation.result.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        product = wide(operation, a) * wide(operation, b)
    if dtype.is_float:
        return rounded(product, dtype)
    amount = int(shift[0])
    if not amount:
        return product.astype(dtype.numpy)
    rounding = 1 << (amount - 1)
    if product.max() > np.iinfo(np.int64).max - rounding:
        raise broken(operation, f"products must leave room in 64 bits to round by {amount} bits")
    return fitted(operation, (product + rounding) >> amount, dtype)


def power(operation: Operation, a: Array, b: Array) -> Array:
    """Raise to a power."""
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise broken(operation, "base and exponent must be finite")
    if a.min() < 0 or ((a == 0) & (b <= 0)).any():
        raise broken(operation, "the base must be positive, or 0 with a positive exponent")
    with np.errstate(over="ignore", under="ignore"):
        result = np.power(a.astype(np.float64), b.astype(np.float64))
    return rounded(result, operation.result.dtype)


def table(operation: tosa.Table, values: Array, entries: Array) -> Array:
    """Look up i8; look up i16 and interpolate, with 7 bits more than the entries."""
    if operation.input1.dtype is DType.INT8:
        return entries[values.astype(np.intp) + 128]
    places = values.astype(np.intp) + (1 << 15)
    index, fraction = places >> TABLE_FRACTION_BITS, places & ((1 << TABLE_FRACTION_BITS) - 1)
    whole = entries.astype(np.int32)
    slopes = np.diff(whole)
    slope = slopes[index]
    if slope.size and np.abs(slope).max() > np.iinfo(np.int16).max:
        fitted(operation, slope, DType.INT16)
    return (whole[index] << TABLE_FRACTION_BITS) + slope * fraction.astype(np.int32)


def absolute(operation: Operation, values: Array) -> Array:
    """Return the absolute value; the least integer has none."""
    if operation.result.dtype.is_float:
        return np.abs(values)
    return fitted(operation, np.abs(values.astype(np.int64)), operation.result.dtype)


def clz(operation: Operation, values: Array) -> Array:
    """Count the zero bits above the highest one of i32."""
    # Every 32-bit number is exact in float64, and its exponent is the number of bits it takes.
    _, taken = np.frexp(values.astype(np.uint32).astype(np.float64))
    return (32 - taken).astype(np.int32)


def negate(operation: Operation, values: Array, input_zp: Array, output_zp: Array) -> Array:
    """Negate between zero points; integers saturate, but the least i32 has no negative."""
    dtype = operation.result.dtype
    if dtype.is_float:
        return np.negative(values)
    result = int(input_zp[0]) + int(output_zp[0]) - values.astype(np.int64)
    return saturated(fitted(operation, result, DType.INT32), dtype)


def _rsqrt(values: Array) -> Array:
    return 1.0 / np.sqrt(values)


def select(operation: Operation, condition: Array, a: Array, b: Array) -> Array:
    """Return `a` where the condition holds, else `b`."""
    return np.where(condition, a, b)


KERNELS: Kernels = {
    tosa.Clamp: clamp,
    tosa.Erf: real(_erf),
    tosa.Sigmoid: real(_sigmoid),
    tosa.Tanh: real(np.tanh),
    tosa.Add: arithmetic(np.add),
    tosa.ArithmeticRightShift: arithmetic_right_shift,
    tosa.BitwiseAnd: plainly(np.bitwise_and),
    tosa.BitwiseOr: plainly(np.bitwise_or),
    tosa.BitwiseXor: plainly(np.bitwise_xor),
    tosa.Intdiv: intdiv,
    tosa.LogicalAnd: plainly(np.logical_and),
    tosa.LogicalLeftShift: logical_left_shift,
    tosa.LogicalOr: plainly(np.logical_or),
    tosa.LogicalRightShift: logical_right_shift,
    tosa.LogicalXor: plainly(np.logical_xor),
    tosa.Maximum: maximum,
    tosa.Minimum: minimum,
    tosa.Mul: mul,
    tosa.Pow: power,
    tosa.Sub: arithmetic(np.subtract),
    tosa.Table: table,
    tosa.Abs: absolute,
    tosa.BitwiseNot: plainly(np.bitwise_not),
    tosa.Ceil: real(np.ceil),
    tosa.Clz: clz,
    tosa.Cos: real(np.cos),
    tosa.Exp: real(np.exp),
    tosa.Floor: real(np.floor),
    tosa.Log: real(np.log),
    tosa.LogicalNot: plainly(np.logical_not),
    tosa.Negate: negate,
    tosa.Reciprocal: real(np.reciprocal),
    tosa.Rsqrt: real(_rsqrt),
    tosa.Sin: real(np.sin),
    tosa.Select: select,
    tosa.Equal: plainly(np.equal),
    tosa.Greater: plainly(np.greater),
    tosa.GreaterEqual: plainly(np.greater_equal),
}
