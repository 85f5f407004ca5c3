"""What the meaning of an operation is: a function on arrays; what must hold of numbers in it.

Arrays are as `DType.numpy` holds them: INT4 in int8, INT48 in int64, BF16 in float32.
Integers are exact. TOSA leaves open what comes where a ``REQUIRE`` of its pseudocode does not
hold; then there is no number, but E822. Floating-point results are the exact ones, computed in
float64, rounded once to the nearest value of the result's type.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.graph import Array, DType, Operation, integer_range

Kernel = Callable[..., Array | tuple[Array, ...]]
"""Takes the operation and its operands' elements, returns the results' elements."""
Kernels = dict[type[Operation], Kernel]
"""The kernels of a chapter, by the class of operations."""


def plainly(compute: Callable[..., Array]) -> Kernel:
    """Return the kernel of an operation that is the same for all types, and has no attributes."""

    def kernel(operation: Operation, *operands: Array) -> Array:
        return compute(*operands)

    return kernel


def real(compute: Callable[[Array], Array]) -> Kernel:
    """Return the kernel of a function of real numbers."""

    def kernel(operation: Operation, values: Array) -> Array:
        with np.errstate(all="ignore"):
            return rounded(compute(values.astype(np.float64)), operation.result.dtype)

    return kernel


def broken(operation: Operation, must: str) -> MizzenError:
    """Make the error for an operation whose result TOSA leaves open: what must hold, what came."""
    return fail(
        "E822",
        f"{operation.kind}: {must}",
        origin=operation.origin,
        rule=f"TOSA 1.0, REQUIRE of {operation.kind}",
    )


def fitted(operation: Operation, values: Array, dtype: DType) -> Array:
    """Return integers in the type; raises E822 if one is outside its range."""
    low, high = integer_range(dtype)
    if values.size:
        least, greatest = values.min(), values.max()
        if least < low or greatest > high:
            came = int(least if least < low else greatest)
            raise broken(operation, f"must give {dtype.value}, from {low} to {high}, not {came}")
    return values.astype(dtype.numpy, copy=False)


def saturated(values: Array, dtype: DType) -> Array:
    """Return integers in the type; one outside its range becomes the nearest in it."""
    low, high = integer_range(dtype)
    return np.clip(values, low, high).astype(dtype.numpy, copy=False)


def rounded(values: Array, dtype: DType) -> Array:
    """Return floating-point numbers rounded once, to the nearest value of type, ties to even."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if dtype is DType.BF16:
            return _to_bf16(np.asarray(values))
        return np.asarray(values).astype(dtype.numpy, copy=False)


def wide(operation: Operation, values: Array) -> Array:
    """Return numbers in the type to compute in: float64, or int64 for integers."""
    return values.astype(np.float64 if operation.result.dtype.is_float else np.int64)


def _to_bf16(values: Array) -> Array:
    """Round float32 or float64 to the numbers of bf16, in float32."""
    single = _to_odd(values) if values.dtype == np.float64 else values.astype(np.float32)
    bits = single.reshape(-1).view(np.uint32).astype(np.uint64)
    bits += ((bits >> 16) & 1) + 0x7FFF  # carries into the exponent, and from there to infinity
    near = (bits & 0xFFFF0000).astype(np.uint32).view(np.float32).reshape(single.shape)
    return np.where(np.isnan(single), np.float32(np.nan), near)


def _to_odd(values: Array) -> Array:
    """Round float64 to float32 so that a second rounding is as good as one.

    What is not exact gets the last bit set, toward or away from zero, and can be no tie any more.
    """
    single = values.astype(np.float32)
    bits = single.reshape(-1).view(np.uint32).copy().reshape(single.shape)
    finite = np.isfinite(values)
    inexact = finite & (single.astype(np.float64) != values)
    bits -= (inexact & (np.abs(single.astype(np.float64)) > np.abs(values))).astype(np.uint32)
    bits |= inexact.astype(np.uint32)
    return bits.reshape(-1).view(np.float32).reshape(single.shape)
