"""Elementwise ternary operators. Ref: TOSA 1.0, 2.7."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import Attributes, Value
from mizzen.ops.definition import IN_OUT, Shape, broadcast_shape, chapter, define, table, tensor


def select(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the shape that all three operands broadcast to."""
    condition, a, b = (operand.type.shape for operand in operands)
    return (broadcast_shape(broadcast_shape(condition, a), b),)


DEFINITIONS = chapter(
    7,
    define(
        "SELECT",
        tensor("input1", "bool"),
        tensor("input2"),
        tensor("input3"),
        results=IN_OUT,
        rows=table(
            "in_out_t",
            """
            PRO-INT/PRO-FP bool
            PRO-INT        i8
            PRO-INT        i16
            PRO-INT        i32
            PRO-FP         f16
            EXT-BF16       bf16
            PRO-FP         f32
            """,
        ),
        shapes=select,
    ),
)
