"""Elementwise binary operators. Ref: TOSA 1.0, 2.5."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.graph import Attributes, DType, Value
from mizzen.ops.definition import (
    IN_OUT,
    NAN_MODE,
    OUT,
    Attribute,
    Definition,
    Row,
    RuleError,
    Shape,
    broadcast,
    chapter,
    constant,
    define,
    same,
    table,
    tensor,
)

ARITHMETIC = table("in_out_t", "PRO-INT/PRO-FP i32\n PRO-FP f16\n EXT-BF16 bf16\n PRO-FP f32")
EXTREMA = table("in_out_t", "PRO-INT i32\n PRO-FP f16\n EXT-BF16 bf16\n PRO-FP f32")
FLOAT = table("in_out_t", "PRO-FP f16\n EXT-BF16 bf16\n PRO-FP f32")
BITS = table("in_out_t", "PRO-INT i8\n PRO-INT i16\n PRO-INT i32")
SHIFTS = table("in_out_t", "PRO-INT/PRO-FP i8\n PRO-INT/PRO-FP i16\n PRO-INT/PRO-FP i32")
LOGICAL = table("in_out_t", "PRO-INT/PRO-FP bool")
INTDIV = table("in_out_t", "PRO-INT/PRO-FP i32")

COMMUTATIVE = frozenset(
    {"ADD", "BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR"}
    | {"MAXIMUM", "MINIMUM"}
)
"""Operations of two operands that give the same with them exchanged."""

TABLE_SIZES = {DType.INT8: 256, DType.INT16: 513}


def lookup(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the first operand's shape; the table has an entry for each value, or each 128th."""
    size, needed = operands[1].type.shape[0], TABLE_SIZES[operands[0].type.dtype]
    if size != needed:
        dtype = operands[0].type.dtype.value
        raise RuleError(f"a table for {dtype} must have {needed} elements, and has {size}")
    return same(operands, attributes)


def _binary(
    kind: str, rows: tuple[Row, ...], *attributes: Attribute
) -> Callable[[str], Definition]:
    return define(
        kind,
        tensor("input1"),
        tensor("input2"),
        results=IN_OUT,
        attributes=attributes,
        rows=rows,
        shapes=broadcast,
        commutative=kind in COMMUTATIVE,
    )


DEFINITIONS = chapter(
    5,
    _binary("ADD", ARITHMETIC),
    _binary("ARITHMETIC_RIGHT_SHIFT", BITS, Attribute("round", bool)),
    _binary("BITWISE_AND", BITS),
    _binary("BITWISE_OR", BITS),
    _binary("BITWISE_XOR", BITS),
    _binary("INTDIV", INTDIV),
    _binary("LOGICAL_AND", LOGICAL),
    _binary("LOGICAL_LEFT_SHIFT", SHIFTS),
    _binary("LOGICAL_RIGHT_SHIFT", SHIFTS),
    _binary("LOGICAL_OR", LOGICAL),
    _binary("LOGICAL_XOR", LOGICAL),
    _binary("MAXIMUM", EXTREMA, NAN_MODE),
    _binary("MINIMUM", EXTREMA, NAN_MODE),
    define(
        "MUL",
        tensor("input1", "in_t"),
        tensor("input2", "in_t"),
        constant("shift", "i8"),
        results=OUT,
        rows=table(
            "in_t out_t",
            """
            PRO-INT        i8   i32
            PRO-INT        i16  i32
            PRO-INT/PRO-FP i32  i32
            PRO-FP         f16  f16
            EXT-BF16       bf16 bf16
            PRO-FP         f32  f32
            """,
        ),
        shapes=broadcast,
        commutative=True,
    ),
    _binary("POW", FLOAT),
    _binary("SUB", ARITHMETIC),
    define(
        "TABLE",
        tensor("input1", "in_t"),
        constant("table", "in_t"),
        results=OUT,
        rows=table("in_t out_t", "PRO-INT i8 i8\n EXT-INT16 i16 i32"),
        shapes=lookup,
    ),
)
