"""Reduction operators. Ref: TOSA 1.0, 2.9."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import Attributes, Value
from mizzen.ops.definition import (
    IN_OUT,
    Attribute,
    Shape,
    TosaOperation,
    axis_of,
    nan_mode,
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


class Reduction(TosaOperation, results=IN_OUT, shapes=reduce):
    """What makes one of all elements along an axis."""

    input = ranked()
    axis = Attribute(int)


class ReduceExtremum(Reduction, rows=EXTREMA):
    """The greatest or the least along an axis."""

    nan_mode = nan_mode()


ReduceAll = Reduction.member("REDUCE_ALL", "2.9.1", rows=LOGICAL)
ReduceAny = Reduction.member("REDUCE_ANY", "2.9.2", rows=LOGICAL)
ReduceMax = ReduceExtremum.member("REDUCE_MAX", "2.9.3")
ReduceMin = ReduceExtremum.member("REDUCE_MIN", "2.9.4")
ReduceProduct = Reduction.member("REDUCE_PRODUCT", "2.9.5", rows=FLOAT)
ReduceSum = Reduction.member("REDUCE_SUM", "2.9.6", rows=SUM)
