"""Data nodes. Ref: TOSA 1.0, 2.14."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.graph import Attributes, Value
from mizzen.ops.definition import (
    IN_OUT,
    OUT,
    Attribute,
    Shape,
    chapter,
    define,
    same,
    table,
    tensor,
)

TYPES = """
    PRO-INT/PRO-FP bool
    EXT-INT4       i4
    PRO-INT/PRO-FP i8
    PRO-INT/PRO-FP i16
    PRO-INT/PRO-FP i32
    EXT-INT16      i48
    PRO-FP         f16
    EXT-BF16       bf16
    PRO-FP         f32
    """


def const(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the shape of the values."""
    return (attributes["values"].shape,)


DEFINITIONS = chapter(
    14,
    define(
        "CONST",
        results=OUT,
        attributes=(Attribute("values", np.ndarray),),
        rows=table("out_t", TYPES),
        shapes=const,
    ),
    define(
        "IDENTITY", tensor("input1"), results=IN_OUT, rows=table("in_out_t", TYPES), shapes=same
    ),
)
