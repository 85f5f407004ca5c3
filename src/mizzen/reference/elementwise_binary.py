"""What the elementwise binary operators compute. Ref: TOSA 1.0, 2.5."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mizzen.graph import INTEGER_BITS, Array, DType, Operation
from mizzen.ops.attributes import NanMode
from mizzen.reference.kernel import Kernel, broken, fitted, plainly, rounded, wide

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


def arithmetic_right_shift(operation: Operation, a: Array, b: Array) -> Array:
    """Divide by a power of two, toward minus infinity, or with `round` to nearest, ties up."""
    _shifts(operation, b)
    result = a >> b
    if operation["round"]:
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


def maximum(operation: Operation, a: Array, b: Array) -> Array:
    """Return the greater; a NaN, or what is none, as `nan_mode` says."""
    return _extremum(operation, a, b, np.greater_equal)


def minimum(operation: Operation, a: Array, b: Array) -> Array:
    """Return the lesser; a NaN, or what is none, as `nan_mode` says."""
    return _extremum(operation, a, b, np.less)


def _extremum(
    operation: Operation, a: Array, b: Array, better: Callable[[Array, Array], Array]
) -> Array:
    result = np.where(better(a, b), a, b)
    if not operation.result.dtype.is_float:
        return result
    if operation["nan_mode"] is NanMode.IGNORE:
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


def table(operation: Operation, values: Array, entries: Array) -> Array:
    """Look up i8; look up i16 and interpolate, with 7 bits more than the entries."""
    if operation.operands[0].dtype is DType.INT8:
        return entries[values.astype(np.intp) + 128]
    places = values.astype(np.intp) + (1 << 15)
    index, fraction = places >> TABLE_FRACTION_BITS, places & ((1 << TABLE_FRACTION_BITS) - 1)
    whole = entries.astype(np.int32)
    slopes = np.diff(whole)
    slope = slopes[index]
    if slope.size and np.abs(slope).max() > np.iinfo(np.int16).max:
        fitted(operation, slope, DType.INT16)
    return (whole[index] << TABLE_FRACTION_BITS) + slope * fraction.astype(np.int32)


KERNELS: dict[str, Kernel] = {
    "ADD": arithmetic(np.add),
    "ARITHMETIC_RIGHT_SHIFT": arithmetic_right_shift,
    "BITWISE_AND": plainly(np.bitwise_and),
    "BITWISE_OR": plainly(np.bitwise_or),
    "BITWISE_XOR": plainly(np.bitwise_xor),
    "INTDIV": intdiv,
    "LOGICAL_AND": plainly(np.logical_and),
    "LOGICAL_LEFT_SHIFT": logical_left_shift,
    "LOGICAL_OR": plainly(np.logical_or),
    "LOGICAL_RIGHT_SHIFT": logical_right_shift,
    "LOGICAL_XOR": plainly(np.logical_xor),
    "MAXIMUM": maximum,
    "MINIMUM": minimum,
    "MUL": mul,
    "POW": power,
    "SUB": arithmetic(np.subtract),
    "TABLE": table,
}
