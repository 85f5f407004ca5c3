"""Data nodes and shape operators. Ref: TOSA 1.0, 2.14, 2.18."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.graph import Array, Attributes, Value
from mizzen.ops.definition import IN_OUT, OUT, Attribute, Shape, TosaOperation, same, table, tensor

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


class Constant(TosaOperation, results=OUT, shapes=const):
    """A tensor or a shape whose elements are known."""

    values = Attribute[Array](np.ndarray)


Const = Constant.member("CONST", "2.14.1", rows=table("out_t", TYPES))
ConstShape = Constant.member("CONST_SHAPE", "2.18.1", rows=table("out_t", "PRO-INT/PRO-FP shape"))


class Identity(
    TosaOperation,
    kind="IDENTITY",
    section="2.14.2",
    results=IN_OUT,
    rows=table("in_out_t", TYPES),
    shapes=same,
):
    """The tensor itself."""

    input1 = tensor()
