"""Scatter and gather operators. Ref: TOSA 1.0, 2.11."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import Attributes, Value
from mizzen.ops.definition import IN_OUT, RuleError, Shape, TosaOperation, table, tensor

TYPES = table(
    "in_out_t index_t",
    """
    PRO-INT  i8   i32
    PRO-INT  i16  i32
    PRO-INT  i32  i32
    PRO-FP   f16  i32
    EXT-BF16 bf16 i32
    PRO-FP   f32  i32
    """,
)


def gather(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,K,C], indices [N,W] -> [N,W,C]."""
    (n, _, c), (batches, w) = operands[0].type.shape, operands[1].type.shape
    if n != batches:
        raise RuleError(f"values and indices must have one batch size, not {n} and {batches}")
    return ((n, w, c),)


def scatter(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """[N,K,C], indices [N,W], input [N,W,C] -> [N,K,C]."""
    old, (_, w), new = (operand.type.shape for operand in operands)
    n, k, c = old
    if operands[1].type.shape[0] != n or new != (n, w, c):
        raise RuleError(
            f"operands must be [N,K,C], [N,W], [N,W,C], and are "
            f"{old}, {operands[1].type.shape}, {new}"
        )
    if k < w:
        raise RuleError(f"each position is written at most once, but {w} indices are given for {k}")
    return (old,)


class Gather(
    TosaOperation, kind="GATHER", section="2.11.1", results=IN_OUT, rows=TYPES, shapes=gather
):
    """The rows that indices name."""

    values = tensor(rank=3)
    indices = tensor("index_t", 2)


class Scatter(
    TosaOperation,
    kind="SCATTER",
    section="2.11.2",
    results=(("values_out", "in_out_t"),),
    rows=TYPES,
    shapes=scatter,
):
    """A tensor with new rows at the places that indices name."""

    values_in = tensor(rank=3)
    indices = tensor("index_t", 2)
    input = tensor(rank=3)
