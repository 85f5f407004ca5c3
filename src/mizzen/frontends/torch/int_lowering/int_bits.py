"""Bits of whole numbers: combined, inverted, shifted. Truth values are those of one bit.

Ref: TOSA 1.0, 2.4.2 ARITHMETIC_RIGHT_SHIFT to 2.4.8 LOGICAL_LEFT_SHIFT, 2.5.2 BITWISE_NOT.
"""

from __future__ import annotations

from mizzen.frontends.arrangement.movement import same_rank
from mizzen.frontends.quantized.terms import Plain, Term
from mizzen.frontends.torch import choice
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.int_lowering.int_whole import narrowed, number, type_of, wide_operands
from mizzen.graph import DType, Value, integer_range

BITWISE = {
    "logical_and": "BITWISE_AND",
    "logical_or": "BITWISE_OR",
    "logical_xor": "BITWISE_XOR",
}


def logical(call: IntCall) -> Term:
    """Combine truth values, or each bit of two whole numbers, broadcast."""
    if call.gives_truths:
        return choice.logical(call)

    def build(x: Value, y: Value) -> Value:
        return call.b(BITWISE[call.operator], *same_rank(call.b, x, y))

    return call.alike([call["self"], call["other"]], build)


def logical_not(call: IntCall) -> Term:
    """Return the opposite truth, or a whole number with every bit inverted."""
    if call.gives_truths:
        return choice.logical_not(call)

    def build(x: Value) -> Value:
        return call.b("BITWISE_NOT", x)

    return call.alike([call["self"]], build)


def shift_left(call: IntCall) -> Plain:
    """Shift whole numbers to the left; bits beyond the type are lost.

    Of 8 and 16 bits those bits go before the shift, so that nothing has to wrap around: Ethos-U55
    and U65 do not. Of 32 bits nothing is wider.
    """
    b = call.b
    x, by = wide_operands(call, "self", "other")
    dtype = type_of(call.node)
    if dtype is not DType.INT32:
        kept = b("SUB", number(call, 8 * dtype.numpy.itemsize, x.type.rank), by)
        lost = b("ARITHMETIC_RIGHT_SHIFT", x, kept, round=True)
        x = b("SUB", x, b("LOGICAL_LEFT_SHIFT", lost, kept))
    return narrowed(call, b("LOGICAL_LEFT_SHIFT", x, by))


def shift_right(call: IntCall) -> Plain:
    """Shift whole numbers to the right, which rounds down.

    Ethos-U55 and U65 have the shift that rounds to nearest only. It gives the same of a number
    that is smaller by half of the last step; the least numbers of 32 bits, which have no such
    number, give what the least number that has one gives.
    """
    b = call.b
    x, by = wide_operands(call, "self", "other")
    one = number(call, 1, x.type.rank)
    step = b("LOGICAL_LEFT_SHIFT", one, by)
    half = b("SUB", step, b("ARITHMETIC_RIGHT_SHIFT", step, one, round=True))
    if type_of(call.node) is DType.INT32:
        least = b("ADD", half, number(call, integer_range(DType.INT32)[0], x.type.rank))
        x = b("MAXIMUM", x, least)
    return narrowed(call, b("ARITHMETIC_RIGHT_SHIFT", b("SUB", x, half), by, round=True))
