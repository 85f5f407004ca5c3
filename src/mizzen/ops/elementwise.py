"""Elementwise operators, of one, two and three operands. Ref: TOSA 1.0, 2.4 to 2.8."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import INTEGER_BITS, Attributes, DType, Value, integer_range
from mizzen.ops.definition import (
    IN_OUT,
    OUT,
    Attribute,
    RuleError,
    Shape,
    TosaOperation,
    broadcast,
    broadcast_shape,
    constant,
    nan_mode,
    same,
    table,
    tensor,
)

FLOAT = table("in_out_t", "PRO-FP f16\n EXT-BF16 bf16\n PRO-FP f32")
ARITHMETIC = table("in_out_t", "PRO-INT/PRO-FP i32") + FLOAT
SIGNED = table("in_out_t", "PRO-INT i32") + FLOAT
BITS = table("in_out_t", "PRO-INT i8\n PRO-INT i16\n PRO-INT i32")
SHIFTS = table("in_out_t", "PRO-INT/PRO-FP i8\n PRO-INT/PRO-FP i16\n PRO-INT/PRO-FP i32")
LOGICAL = table("in_out_t", "PRO-INT/PRO-FP bool")
INTDIV = table("in_out_t", "PRO-INT/PRO-FP i32")
MUL = table(
    "in_t out_t",
    """
    PRO-INT        i8   i32
    PRO-INT        i16  i32
    PRO-INT/PRO-FP i32  i32
    PRO-FP         f16  f16
    EXT-BF16       bf16 bf16
    PRO-FP         f32  f32
    """,
)
TABLE = table("in_t out_t", "PRO-INT i8 i8\n EXT-INT16 i16 i32")
COMPARISONS = table(
    "in_t out_t", "PRO-INT i32 bool\n PRO-FP f16 bool\n EXT-BF16 bf16 bool\n PRO-FP f32 bool"
)

TABLE_SIZES = {DType.INT8: 256, DType.INT16: 513}


def lookup(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the first operand's shape; the table has an entry for each value, or each 128th."""
    size, needed = operands[1].type.shape[0], TABLE_SIZES[operands[0].type.dtype]
    if size != needed:
        dtype = operands[0].type.dtype.value
        raise RuleError(f"a table for {dtype} must have {needed} elements, and has {size}")
    return same(operands, attributes)


def select(operands: Sequence[Value], attributes: Attributes) -> tuple[Shape, ...]:
    """Return the shape that all three operands broadcast to."""
    condition, a, b = (operand.type.shape for operand in operands)
    return (broadcast_shape(broadcast_shape(condition, a), b),)


class Binary(TosaOperation, results=IN_OUT, shapes=broadcast):
    """An operation on the elements of two tensors that broadcast."""

    input1 = tensor()
    input2 = tensor()


class ArithmeticRightShift(Binary, kind="ARITHMETIC_RIGHT_SHIFT", section="2.5.2", rows=BITS):
    """A shift that keeps the sign."""

    round = Attribute(bool)


class Extremum(Binary, rows=SIGNED, commutative=True):
    """The greater or the lesser of two."""

    nan_mode = nan_mode()


class Mul(
    TosaOperation,
    kind="MUL",
    section="2.5.14",
    results=OUT,
    rows=MUL,
    shapes=broadcast,
    commutative=True,
):
    """The product; of i32 shifted to the right."""

    input1 = tensor("in_t")
    input2 = tensor("in_t")
    shift = constant("i8")


class Table(TosaOperation, kind="TABLE", section="2.5.17", results=OUT, rows=TABLE, shapes=lookup):
    """What a table says of each element."""

    input1 = tensor("in_t")
    table = constant("in_t")


Add = Binary.member("ADD", "2.5.1", rows=ARITHMETIC, commutative=True)
BitwiseAnd = Binary.member("BITWISE_AND", "2.5.3", rows=BITS, commutative=True)
BitwiseOr = Binary.member("BITWISE_OR", "2.5.4", rows=BITS, commutative=True)
BitwiseXor = Binary.member("BITWISE_XOR", "2.5.5", rows=BITS, commutative=True)
Intdiv = Binary.member("INTDIV", "2.5.6", rows=INTDIV)
LogicalAnd = Binary.member("LOGICAL_AND", "2.5.7", rows=LOGICAL, commutative=True)
LogicalLeftShift = Binary.member("LOGICAL_LEFT_SHIFT", "2.5.8", rows=SHIFTS)
LogicalRightShift = Binary.member("LOGICAL_RIGHT_SHIFT", "2.5.9", rows=SHIFTS)
LogicalOr = Binary.member("LOGICAL_OR", "2.5.10", rows=LOGICAL, commutative=True)
LogicalXor = Binary.member("LOGICAL_XOR", "2.5.11", rows=LOGICAL, commutative=True)
Maximum = Extremum.member("MAXIMUM", "2.5.12")
Minimum = Extremum.member("MINIMUM", "2.5.13")
Pow = Binary.member("POW", "2.5.15", rows=FLOAT)
Sub = Binary.member("SUB", "2.5.16", rows=ARITHMETIC)


class Unary(TosaOperation, results=IN_OUT, rows=FLOAT, shapes=same):
    """An operation on the elements of one tensor."""

    input1 = tensor()


class Negate(Unary, kind="NEGATE", section="2.6.10", rows=BITS + FLOAT):
    """The negative, between zero points."""

    input1_zp = constant()
    output_zp = constant()


Abs = Unary.member("ABS", "2.6.1", rows=SIGNED)
BitwiseNot = Unary.member("BITWISE_NOT", "2.6.2", rows=BITS)
Ceil = Unary.member("CEIL", "2.6.3")
Clz = Unary.member("CLZ", "2.6.4", rows=table("in_out_t", "PRO-INT i32"))
Cos = Unary.member("COS", "2.6.5")
Exp = Unary.member("EXP", "2.6.6")
Floor = Unary.member("FLOOR", "2.6.7")
Log = Unary.member("LOG", "2.6.8")
LogicalNot = Unary.member("LOGICAL_NOT", "2.6.9", rows=LOGICAL)
Reciprocal = Unary.member("RECIPROCAL", "2.6.11")
Rsqrt = Unary.member("RSQRT", "2.6.12")
Sin = Unary.member("SIN", "2.6.13")


class Select(
    TosaOperation,
    kind="SELECT",
    section="2.7.1",
    results=IN_OUT,
    rows=LOGICAL + BITS + FLOAT,
    shapes=select,
):
    """The second where the first holds, else the third."""

    input1 = tensor("bool")
    input2 = tensor()
    input3 = tensor()


class Comparison(TosaOperation, results=OUT, rows=COMPARISONS, shapes=broadcast):
    """A comparison of the elements of two tensors that broadcast."""

    input1 = tensor("in_t")
    input2 = tensor("in_t")


Equal = Comparison.member("EQUAL", "2.8.1", commutative=True)
Greater = Comparison.member("GREATER", "2.8.2")
GreaterEqual = Comparison.member("GREATER_EQUAL", "2.8.3")


CLAMPED = table("in_out_t", "PRO-INT i8\n EXT-INT16 i16") + FLOAT


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


class Clamp(
    TosaOperation, kind="CLAMP", section="2.4.1", results=IN_OUT, rows=CLAMPED, shapes=clamp
):
    """The nearest number within bounds."""

    input = tensor()
    min_val = Attribute((int, float))
    max_val = Attribute((int, float))
    nan_mode = nan_mode()


class Activation(TosaOperation, results=IN_OUT, rows=FLOAT, shapes=same):
    """A function of floating-point numbers."""

    input = tensor()


Erf = Activation.member("ERF", "2.4.2")
Sigmoid = Activation.member("SIGMOID", "2.4.3")
Tanh = Activation.member("TANH", "2.4.4")
