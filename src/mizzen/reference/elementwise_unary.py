"""What the elementwise unary operators compute. Ref: TOSA 1.0, 2.6."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mizzen.graph import Array, DType, Operation
from mizzen.reference.kernel import Kernel, fitted, plainly, rounded, saturated


def real(compute: Callable[[Array], Array]) -> Kernel:
    """Return the kernel of a function of real numbers."""

    def kernel(operation: Operation, values: Array) -> Array:
        with np.errstate(all="ignore"):
            return rounded(compute(values.astype(np.float64)), operation.result.dtype)

    return kernel


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


KERNELS: dict[str, Kernel] = {
    "ABS": absolute,
    "BITWISE_NOT": plainly(np.bitwise_not),
    "CEIL": real(np.ceil),
    "CLZ": clz,
    "COS": real(np.cos),
    "EXP": real(np.exp),
    "FLOOR": real(np.floor),
    "LOG": real(np.log),
    "LOGICAL_NOT": plainly(np.logical_not),
    "NEGATE": negate,
    "RECIPROCAL": real(np.reciprocal),
    "RSQRT": real(_rsqrt),
    "SIN": real(np.sin),
}
