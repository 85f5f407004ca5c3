"""Arithmetic on values and numbers: operands are brought to one rank, numbers become constants."""

from __future__ import annotations

import numpy as np

from mizzen.frontends.arrangement.choice import reduced
from mizzen.frontends.arrangement.movement import same_rank
from mizzen.frontends.torch.program import Array
from mizzen.graph import DType, Value
from mizzen.ops import Builder

Operand = Value | float | int | bool


def number(b: Builder, real: float, dtype: DType, rank: int) -> Value:
    """Return a number as a constant of one element."""
    return filled(b, np.full((1,) * rank, real), dtype)


def filled(b: Builder, array: Array, dtype: DType) -> Value:
    """Return real numbers as a constant, rounded to what the type holds."""
    if dtype is DType.BF16:
        array = rounded_to_bf16(array)
    return b.constant(np.ascontiguousarray(array, dtype.numpy).reshape(array.shape), dtype)


def sum_type(dtype: DType) -> DType:
    """Return the element type in which the products of a MATMUL are added up: at least 32 bits."""
    return DType.FP32 if dtype in (DType.FP16, DType.BF16) else dtype


def rounded_to_bf16(array: Array) -> Array:
    """Round to 8 bits of fraction, ties to even, in float32."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    whole = rounded.astype(np.uint32).view(np.float32).reshape(array.shape)
    return np.where(np.isnan(array), np.float32(np.nan), whole)


def matched(b: Builder, x: Operand, y: Operand) -> tuple[Value, Value]:
    """Bring two operands, one a value at least, to one rank."""
    if not isinstance(x, Value):
        assert isinstance(y, Value)
        return number(b, x, y.dtype, y.type.rank), y
    if not isinstance(y, Value):
        return x, number(b, y, x.dtype, x.type.rank)
    x, y = same_rank(b, x, y)
    return x, y


def add(b: Builder, x: Operand, y: Operand) -> Value:
    """x + y."""
    return b("ADD", *matched(b, x, y))


def sub(b: Builder, x: Operand, y: Operand) -> Value:
    """x - y."""
    return b("SUB", *matched(b, x, y))


def mul(b: Builder, x: Operand, y: Operand) -> Value:
    """x * y."""
    return b("MUL", *matched(b, x, y), b.constant([0], DType.INT8))


def div(b: Builder, x: Operand, y: Operand) -> Value:
    """x / y, as x * (1 / y): TOSA has no division of floating-point numbers."""
    if not isinstance(y, Value):
        return mul(b, x, 1.0 / y if y else float(np.copysign(np.inf, y)))
    inverse = b("RECIPROCAL", y)
    return inverse if x == 1 else mul(b, x, inverse)


def maximum(b: Builder, x: Operand, y: Operand) -> Value:
    """The greater of two."""
    return b("MAXIMUM", *matched(b, x, y))


def minimum(b: Builder, x: Operand, y: Operand) -> Value:
    """The lesser of two."""
    return b("MINIMUM", *matched(b, x, y))


def neg(b: Builder, x: Value) -> Value:
    """-x."""
    zero = b.constant([0], x.dtype)
    return b("NEGATE", x, zero, zero)


def sqrt(b: Builder, x: Value) -> Value:
    """The square root, as 1 / (1 / sqrt(x)): 0 for 0, infinity for infinity."""
    return b("RECIPROCAL", b("RSQRT", x))


def square(b: Builder, x: Value) -> Value:
    """x * x."""
    return mul(b, x, x)


def clamp(b: Builder, x: Value, low: float | None, high: float | None) -> Value:
    """Bring within bounds; None is no bound."""
    least = -np.inf if low is None else low
    greatest = np.inf if high is None else high
    if x.dtype.is_float or x.dtype in (DType.INT8, DType.INT16):
        return b("CLAMP", x, min_val=float(min(least, greatest)), max_val=float(greatest))
    if low is not None:
        x = maximum(b, x, int(low))
    return x if high is None else minimum(b, x, int(high))


def select(b: Builder, condition: Value, x: Operand, y: Operand, dtype: DType) -> Value:
    """x where the condition holds, else y; of the result's type."""
    if not isinstance(x, Value):
        x = number(b, x, dtype, 1)
    if not isinstance(y, Value):
        y = number(b, y, dtype, 1)
    return b("SELECT", *same_rank(b, condition, x, y))


def cast(b: Builder, x: Value, dtype: DType) -> Value:
    """Bring to another element type as PyTorch does: fractions are cut off, not 0 is true."""
    if x.dtype is dtype:
        return x
    if x.dtype is DType.BOOL and (dtype.is_float):
        return select(b, x, 1.0, 0.0, dtype)
    if dtype is DType.BOOL:
        return b("LOGICAL_NOT", b("EQUAL", *matched(b, _comparable(b, x), 0)))
    if x.dtype.is_float and not dtype.is_float:
        return b("CAST", truncated(b, x), dtype=dtype)
    if {x.dtype, dtype} == {DType.FP16, DType.BF16}:
        x = b("CAST", x, dtype=DType.FP32)
    return b("CAST", x, dtype=dtype)


def _comparable(b: Builder, x: Value) -> Value:
    return b("CAST", x, dtype=DType.INT32) if x.dtype in (DType.INT8, DType.INT16) else x


def truncated(b: Builder, x: Value) -> Value:
    """The whole number next to x towards 0."""
    positive = b("GREATER", *matched(b, x, 0.0))
    return select(b, positive, b("FLOOR", x), b("CEIL", x), x.dtype)


def mean(b: Builder, x: Value, axes: list[int]) -> Value:
    """The mean over dimensions, which become 1."""
    count = int(np.prod([x.shape[axis] for axis in axes]))
    return mul(b, reduced(b, "REDUCE_SUM", x, axes), 1.0 / count)
