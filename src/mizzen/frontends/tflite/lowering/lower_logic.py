"""Comparisons, and what is made of their results: logic, choices, reductions.

Kernels compare integers of 8 bits in real numbers: zero points off, shifted left, times the scale,
rounded, so that numbers of a fine scale which are next to each other may be equal. LiteRT does so
with 16 bits where it looks for equality; other comparisons of 16 and all of 32 bits are of the
integers as they are.

Ref: TFLite Micro, kernels/comparisons.cc, select.cc, logical.cc; TensorFlow Lite,
kernels/comparisons.cc, reduce.cc.
"""

from __future__ import annotations

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, kept, lowers
from mizzen.frontends.tflite.lowering.lower_elementwise import in_rank, shifted
from mizzen.frontends.tflite.lowering.requantization import centered, reach, rescale, scale_of
from mizzen.graph import DType, Value

COMPARED_BITS = 8
"""Bits by which kernels shift integers left before they scale and compare them."""

COMPARISONS = {
    "EQUAL": ("EQUAL", False),
    "NOT_EQUAL": ("EQUAL", False),
    "GREATER": ("GREATER", False),
    "GREATER_EQUAL": ("GREATER_EQUAL", False),
    "LESS": ("GREATER", True),
    "LESS_EQUAL": ("GREATER_EQUAL", True),
}
"""TOSA's comparison, and whether operands change their places."""

NEGATED = frozenset({"NOT_EQUAL"})
OF_EQUALITY = frozenset({"EQUAL", "NOT_EQUAL"})


@lowers(*COMPARISONS)
def comparison(call: Call) -> Value:
    """Of each operand [RESCALE (zero point off, shifted left by 8 bits), RESCALE by its scale];
    EQUAL, GREATER or GREATER_EQUAL [, LOGICAL_NOT]."""
    kind, turned = COMPARISONS[call.operator.kind]
    operands = [_compared(call, index) for index in (0, 1)]
    value = call.b(kind, *(reversed(operands) if turned else operands))
    return call.b("LOGICAL_NOT", value) if call.operator.kind in NEGATED else value


def _compared(call: Call, index: int) -> Value:
    """Return an operand in 32 bits, as the kernel compares it."""
    tensors = call.input(0), call.input(1)
    same = tensors[0].type is tensors[1].type and call.output().type is FileType.BOOL
    call.need(same, "its operands are of two types")
    value, dtype = in_rank(call, index), tensors[index].type
    if dtype is FileType.INT32:
        return value
    if dtype is FileType.INT16 and call.operator.kind not in OF_EQUALITY:
        return centered(call.b, value)
    call.need(dtype in (FileType.INT8, FileType.UINT8, FileType.INT16), f"it compares {dtype.name}")
    quantization = call.quantization(tensors[index])
    call.need(0 < quantization.scale < 1, "its scale is not between 0 and 1")
    return rescale(
        call.b,
        shifted(call, value, COMPARED_BITS),
        scale_of(quantization.scale),
        DType.INT32,
        bound=reach(value.dtype, quantization.zero_point) << COMPARED_BITS,
    )


@lowers("LOGICAL_AND", "LOGICAL_OR")
def logic(call: Call) -> Value:
    """LOGICAL_AND or LOGICAL_OR."""
    call.need_types(FileType.BOOL)
    return call.b(call.operator.kind, in_rank(call, 0), in_rank(call, 1))


@lowers("LOGICAL_NOT")
def negation(call: Call) -> Value:
    """LOGICAL_NOT."""
    call.need_types(FileType.BOOL)
    return call.b("LOGICAL_NOT", call.value())


@lowers("SELECT", "SELECT_V2")
def choice(call: Call) -> Value:
    """The second where the first holds, else the third, as they are: SELECT."""
    output = call.output()
    types = FileType.INT8, FileType.UINT8, FileType.INT16, FileType.INT32
    call.need_types(*types, tensors=(call.input(1), call.input(2), output))
    call.need(call.input(0).type is FileType.BOOL, "its condition is not BOOL")
    condition = _conditions(call)
    return call.b("SELECT", condition, in_rank(call, 1), in_rank(call, 2))


def _conditions(call: Call) -> Value:
    """Return the condition in the output's rank; SELECT may have one for each first index."""
    shape, whole = call.input(0).shape, call.output().shape
    if call.operator.kind == "SELECT" and len(shape) == 1 < len(whole):
        value = call.value(0)
        ranked = (*shape, *(1,) * (len(whole) - 1))
        return call.b("RESHAPE", value, call.b.shape(ranked), quantization=kept(value))
    return in_rank(call, 0)


@lowers("REDUCE_ANY", "REDUCE_ALL")
def quantified(call: Call) -> Value:
    """REDUCE_ANY or REDUCE_ALL along each axis, RESHAPE."""
    call.need(call.input(0).type is call.output().type is FileType.BOOL, "it is not of BOOL")
    value = call.value()
    rank = value.type.rank
    for axis in sorted({call.axis(axis, rank) for axis in call.integers(1)}):
        value = call.b(call.operator.kind, value, axis=axis)
    return call.b("RESHAPE", value, call.b.shape(call.output().shape))
