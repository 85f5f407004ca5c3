"""Activation functions. Ref: TOSA 1.0, 2.4."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import INTEGER_BITS, Attributes, Value, integer_range
from mizzen.ops.definition import (
    IN_OUT,
    Attribute,
    RuleError,
    Shape,
    TosaOperation,
    nan_mode,
    same,
    table,
    tensor,
)

FLOAT = table("in_out_t", "PRO-FP f16\n EXT-BF16 bf16\n PRO-FP f32")
CLAMPED = table("in_out_t", "PRO-INT i8\n EXT-INT16 i16") + FLOAT


def clamp(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the operand's shape; the bounds must be values of its type."""
    low, high = attributes["min_val"], attributes["max_val"]
    if not low <= high:
        raise RuleError(f"min_val must be at most max_val, and they are {low} and {high}")
    dtype = operands[0].type.dtype
    if dtype in INTEGER_BITS:
        least, greatest = integer_range(dtype)
        if low < least or high > greatest or int(low) != low or int(high) != high:
            raise RuleError(f"bounds must be {dtype.value} values, and are {low} and {high}")
    return same(operands, attributes)


class Clamp(
    TosaOperation, kind="CLAMP", section="2.4.1", results=IN_OUT, rows=CLAMPED, shapes=clamp
):
    """The nearest number within bounds."""

    input = tensor()
    min_val = Attribute((int, float))
    max_val = Attribute((int, float))
    nan_mode = nan_mode()


class Activation(TosaOperation, results=IN_OUT, rows=FLOAT, shapes=same):
    """A function of floating-point numbers."""

    input = tensor()


Erf = Activation.member("ERF", "2.4.2")
Sigmoid = Activation.member("SIGMOID", "2.4.3")
Tanh = Activation.member("TANH", "2.4.4")
