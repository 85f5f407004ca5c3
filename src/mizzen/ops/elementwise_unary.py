"""Elementwise unary operators. Ref: TOSA 1.0, 2.6."""

from __future__ import annotations

from collections.abc import Callable

from mizzen.ops.definition import (
    IN_OUT,
    Definition,
    Row,
    chapter,
    constant,
    define,
    same,
    table,
    tensor,
)

FLOAT = table("in_out_t", "PRO-FP f16\n EXT-BF16 bf16\n PRO-FP f32")


def _unary(kind: str, rows: tuple[Row, ...] = FLOAT) -> Callable[[str], Definition]:
    return define(kind, tensor("input1"), results=IN_OUT, rows=rows, shapes=same)


DEFINITIONS = chapter(
    6,
    _unary("ABS", table("in_out_t", "PRO-INT i32\n PRO-FP f16\n EXT-BF16 bf16\n PRO-FP f32")),
    _unary("BITWISE_NOT", table("in_out_t", "PRO-INT i8\n PRO-INT i16\n PRO-INT i32")),
    _unary("CEIL"),
    _unary("CLZ", table("in_out_t", "PRO-INT i32")),
    _unary("COS"),
    _unary("EXP"),
    _unary("FLOOR"),
    _unary("LOG"),
    _unary("LOGICAL_NOT", table("in_out_t", "PRO-INT/PRO-FP bool")),
    define(
        "NEGATE",
        tensor("input1"),
        constant("input1_zp", "in_out_t"),
        constant("output_zp", "in_out_t"),
        results=IN_OUT,
        rows=table(
            "in_out_t",
            """
            PRO-INT  i8
            PRO-INT  i16
            PRO-INT  i32
            PRO-FP   f16
            EXT-BF16 bf16
            PRO-FP   f32
            """,
        ),
        shapes=same,
    ),
    _unary("RECIPROCAL"),
    _unary("RSQRT"),
    _unary("SIN"),
)
