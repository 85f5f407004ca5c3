"""Quotients of two tensors that are cut to whole numbers, and remainders: exactly, by INTDIV.

Integers ``a`` of scale ``s`` and ``b`` of scale ``t`` stand for ``a * s`` and ``b * t``. Two scales
are in the ratio of two whole numbers, ``s / t = m / n``, so the quotient is that of ``a * m`` and
``b * n``: INTDIV cuts it toward zero, and what remains says where the floor is one less.

PyTorch divides numbers of float32. They are the same numbers where ``a * s`` and ``b * t`` have at
most 24 bits, as with the quantiser's scales of few bits; its `floor_divide` and `remainder` start
from an exact `fmod` then. ``trunc`` cuts a rounded quotient. A quotient that is not whole is off
the next whole number ``q`` by ``1 / (b * n)`` at least, which no rounding to 24 bits bridges while
``q * b * n < 2**24``. Beyond, with the 16 bits at most that ``b * n`` has then of 8-bit operands,
``q`` is above 255: a whole number is less than a step of what 8 bits can say of it.

Of a quotient by zero the sign remains, and the range of the result: as PyTorch saturates it. What
is no number, 0 / 0 and a remainder by zero, becomes the zero point.

Ref: TOSA 1.0, 2.4.5 INTDIV; ATen, div_floor_floating and remainder.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from mizzen.frontends.arrangement.movement import same_rank
from mizzen.frontends.quantized.scales import requantize, rescale
from mizzen.frontends.quantized.terms import Pending, Plain, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.int_lowering.int_elementwise import operand, unary
from mizzen.frontends.torch.int_lowering.int_whole import narrowed, wide_operands
from mizzen.graph import DType, Value, integer_range
from mizzen.ops import Builder

FLOAT_BITS = 24
"""Bits of a float32's significand."""

OPERAND_BITS = 30
"""Of dividend and divisor, so that their sums have 31."""

APART = "choose values of ranges that are nearer to each other"
FEW_BITS = "quantise it with EthosUQuantizer, which gives divided tensors scales of few bits"


def div(call: IntCall) -> Pending | Plain:
    """Divide, and cut the quotient as the model says; by a number it is a table."""
    divided = "self" if hasattr(call["self"], "meta") else "other"
    if not call[divided].meta["val"].is_floating_point():
        return _whole(call)
    return _real_quotient(call) if hasattr(call["other"], "meta") else unary(call)


def remainder(call: IntCall) -> Pending | Plain:
    """What remains when the quotient is rounded down: of the divisor's sign."""
    return _remains(call, rounds_down=True)


def fmod(call: IntCall) -> Pending | Plain:
    """What remains when the quotient is cut: of the dividend's sign."""
    return _remains(call, rounds_down=False)


def _rounds_down(call: IntCall) -> bool:
    return call.operator == "floor_divide" or call["rounding_mode"] == "floor"


def _whole(call: IntCall) -> Plain:
    """Divide whole numbers; PyTorch refuses to divide them by zero, and so does the NPU here."""
    call.need(
        call.operator == "floor_divide" or call.given("rounding_mode"),
        "its result is a fraction of whole numbers",
    )
    x, y = wide_operands(call, "self", "other")
    quotient = call.b("INTDIV", x, y)
    if _rounds_down(call):
        quotient = _floor(call.b, quotient, _rest(call.b, x, y, quotient), y)
    return narrowed(call, quotient)


def _remains(call: IntCall, *, rounds_down: bool) -> Pending | Plain:
    given = call["self"] if hasattr(call["self"], "meta") else call["other"]
    if given.meta["val"].is_floating_point():
        return _real_remainder(call, rounds_down=rounds_down)
    x, y = wide_operands(call, "self", "other")
    rest = _rest(call.b, x, y, call.b("INTDIV", x, y))
    return narrowed(call, _of_divisors_sign(call.b, rest, y) if rounds_down else rest)


@dataclass(frozen=True, slots=True)
class _Division:
    """A dividend and a divisor as integers of one unit, of one rank.

    given    the divisor
    divisor  the same with 1 in the place of 0
    most     the greatest dividend, and the greatest divisor
    unit     what 1 stands for
    """

    dividend: Value
    given: Value
    divisor: Value
    most: tuple[int, int]
    unit: float


def _division(call: IntCall, x: Real, y: Real) -> _Division:
    b, scales = call.b, [Fraction(float(np.float32(each.scale))) for each in (x, y)]
    ratio = scales[0] / scales[1]
    factors, most = (ratio.numerator, ratio.denominator), (_most(x), _most(y))
    for number, scale in zip(most, scales, strict=True):
        odd = scale.numerator // (scale.numerator & -scale.numerator)
        call.need(number * odd < 1 << FLOAT_BITS, "its operands have scales of many bits", FEW_BITS)
    _check_extents(call, x, most, factors)
    values = [
        rescale(b, each.value, factor, DType.INT32, (each.zero_point, 0))
        for each, factor in zip((x, y), factors, strict=True)
    ]
    dividend, divisor = same_rank(b, *values)
    one = _number(b, 1, divisor)
    is_other = b("MINIMUM", b("ABS", divisor), one)
    return _Division(
        dividend,
        divisor,
        b("ADD", divisor, b("SUB", one, is_other)),
        (most[0] * factors[0], most[1] * factors[1]),
        float(scales[0] / factors[0]),
    )


def _check_extents(call: IntCall, x: Real, most: tuple[int, int], factors: tuple[int, int]) -> None:
    """Refuse ranges so far apart that quotients are not exact; see the module."""
    bits = OPERAND_BITS if x.value.dtype is DType.INT8 else FLOAT_BITS - 1
    if max(number * factor for number, factor in zip(most, factors, strict=True)) >= 1 << bits:
        reason = "its operands have scales that are too far apart to divide exactly"
        raise RefusedError(reason, APART)


def _most(x: Real) -> int:
    """Return the greatest distance of a tensor's integers from zero."""
    constant = x.value.constant
    if constant is not None and constant.size:
        return max(int(np.abs(constant.astype(np.int64) - x.zero_point).max()), 1)
    return max(abs(limit - x.zero_point) for limit in integer_range(x.value.dtype))


def _real_quotient(call: IntCall) -> Pending:
    x, y = operand(call, "self"), operand(call, "other")
    rounds_down = _rounds_down(call)

    def emit(target: Target) -> Value:
        b, parts = call.b, _division(call, x, y)
        whole = b("INTDIV", parts.dividend, parts.divisor)
        if rounds_down:
            rest = _rest(b, parts.dividend, parts.divisor, whole)
            whole = _floor(b, whole, rest, parts.divisor)
        limit = min(_limit(target, 1.0), integer_range(DType.INT32)[1])
        whole = _between(b, whole, limit)
        sign = _between(b, parts.dividend, 1)
        beyond = b("MUL", sign, _number(b, limit, sign), b.constant([0], DType.INT8))
        return requantize(b, _if_zero(b, parts.given, beyond, whole), 1.0, target)

    return Pending(emit, call.shape)


def _real_remainder(call: IntCall, *, rounds_down: bool) -> Pending:
    x, y = operand(call, "self"), operand(call, "other")

    def emit(target: Target) -> Value:
        b, parts = call.b, _division(call, x, y)
        whole = b("INTDIV", parts.dividend, parts.divisor)
        rest = _rest(b, parts.dividend, parts.divisor, whole)
        if rounds_down:
            rest = _of_divisors_sign(b, rest, parts.divisor)
        limit = _limit(target, parts.unit)
        if max(parts.most) > limit:
            rest = _between(b, rest, limit)
        zero = _number(b, 0, rest)
        return requantize(b, _if_zero(b, parts.given, zero, rest), parts.unit, target)

    return Pending(emit, call.shape)


def _if_zero(b: Builder, divisor: Value, one: Value, other: Value) -> Value:
    return b("SELECT", b("EQUAL", divisor, _number(b, 0, divisor)), one, other)


def _limit(target: Target, unit: float) -> int:
    """Return a number of units that is beyond what the target's integers stand for."""
    low, high = integer_range(target.dtype)
    span = max(high - target.zero_point, target.zero_point - low) + 1
    return ceil(span * target.scale / unit)


def _between(b: Builder, value: Value, limit: int) -> Value:
    """Cut what is beyond a limit, of either sign."""
    below = b("MINIMUM", value, _number(b, limit, value))
    return b("MAXIMUM", below, _number(b, -limit, value))


def _rest(b: Builder, dividend: Value, divisor: Value, quotient: Value) -> Value:
    product = b("MUL", quotient, divisor, b.constant([0], DType.INT8))
    return b("SUB", dividend, product)


def _against(b: Builder, rest: Value, divisor: Value) -> Value:
    """Return where something remains whose sign is not the divisor's."""
    zero = _number(b, 0, rest)
    signed = b("SELECT", b("EQUAL", rest, zero), divisor, rest)
    return b("GREATER", zero, b("BITWISE_XOR", signed, divisor))


def _floor(b: Builder, quotient: Value, rest: Value, divisor: Value) -> Value:
    less = b("SUB", quotient, _number(b, 1, quotient))
    return b("SELECT", _against(b, rest, divisor), less, quotient)


def _of_divisors_sign(b: Builder, rest: Value, divisor: Value) -> Value:
    return b("SELECT", _against(b, rest, divisor), b("ADD", rest, divisor), rest)


def _number(b: Builder, number: int, like: Value) -> Value:
    return b.constant(np.full((1,) * like.type.rank, number), DType.INT32)
