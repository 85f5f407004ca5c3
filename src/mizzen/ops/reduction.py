"""Reduction operators. Ref: TOSA 1.0, 2.9."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.graph import Attributes, Value
from mizzen.ops.definition import (
    AXIS,
    IN_OUT,
    NAN_MODE,
    Attribute,
    Definition,
    Row,
    Shape,
    axis_of,
    chapter,
    define,
    ranked,
    table,
)

LOGICAL = table("in_out_t", "PRO-INT/PRO-FP bool")
FLOAT = table("in_out_t", "PRO-FP f16\n EXT-BF16 bf16\n PRO-FP f32")
SUM = table("in_out_t", "PRO-INT i32\n PRO-FP f16\n EXT-BF16 bf16\n PRO-FP f32")
EXTREMA = table("in_out_t", "PRO-INT i8\n PRO-INT i16") + SUM


def reduce(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the shape with 1 along the axis."""
    axis = axis_of(operands, attributes)
    shape = operands[0].type.shape
    return ((*shape[:axis], 1, *shape[axis + 1 :]),)


def _reduction(
    kind: str, rows: tuple[Row, ...], *attributes: Attribute
) -> Callable[[str], Definition]:
    return define(
        kind,
        ranked("input"),
        results=IN_OUT,
        attributes=(AXIS, *attributes),
        rows=rows,
        shapes=reduce,
    )


DEFINITIONS = chapter(
    9,
    _reduction("REDUCE_ALL", LOGICAL),
    _reduction("REDUCE_ANY", LOGICAL),
    _reduction("REDUCE_MAX", EXTREMA, NAN_MODE),
    _reduction("REDUCE_MIN", EXTREMA, NAN_MODE),
    _reduction("REDUCE_PRODUCT", FLOAT),
    _reduction("REDUCE_SUM", SUM),
)
