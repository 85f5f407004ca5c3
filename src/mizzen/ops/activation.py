"""Activation functions. Ref: TOSA 1.0, 2.4."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import INTEGER_BITS, Attributes, Value, integer_range
from mizzen.ops.definition import (
    IN_OUT,
    NAN_MODE,
    Attribute,
    RuleError,
    Shape,
    chapter,
    define,
    same,
    table,
    tensor,
)

FLOAT = table("in_out_t", "PRO-FP f16\n EXT-BF16 bf16\n PRO-FP f32")


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


DEFINITIONS = chapter(
    4,
    define(
        "CLAMP",
        tensor("input"),
        results=IN_OUT,
        attributes=(
            Attribute("min_val", (int, float)),
            Attribute("max_val", (int, float)),
            NAN_MODE,
        ),
        rows=table(
            "in_out_t",
            """
            PRO-INT   i8
            EXT-INT16 i16
            PRO-FP    f16
            EXT-BF16  bf16
            PRO-FP    f32
            """,
        ),
        shapes=clamp,
    ),
    *(
        define(kind, tensor("input"), results=IN_OUT, rows=FLOAT, shapes=same)
        for kind in ("ERF", "SIGMOID", "TANH")
    ),
)
