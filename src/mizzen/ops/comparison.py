"""Comparison operators. Ref: TOSA 1.0, 2.8."""

from __future__ import annotations

from mizzen.ops.definition import OUT, broadcast, chapter, define, table, tensor

TYPES = table(
    "in_t out_t",
    """
    PRO-INT  i32  bool
    PRO-FP   f16  bool
    EXT-BF16 bf16 bool
    PRO-FP   f32  bool
    """,
)

DEFINITIONS = chapter(
    8,
    *(
        define(
            kind,
            tensor("input1", "in_t"),
            tensor("input2", "in_t"),
            results=OUT,
            rows=TYPES,
            shapes=broadcast,
            commutative=kind == "EQUAL",
        )
        for kind in ("EQUAL", "GREATER", "GREATER_EQUAL")
    ),
)
