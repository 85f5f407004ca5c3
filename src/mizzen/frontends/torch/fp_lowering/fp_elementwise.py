"""Arithmetic on two tensors, or a tensor and a number; comparisons; choices.

Ref: TOSA 1.0, 2.5 elementwise binary, 2.7 elementwise ternary, 2.8 comparison operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mizzen.frontends.torch.choice import compared
from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_context import FpCall
from mizzen.graph import DType, Value
from mizzen.ops import Builder


def _operands(call: FpCall, dtype: DType | None = None) -> tuple[a.Operand, a.Operand]:
    """Return both operands in the type in which PyTorch computes."""
    kind = dtype or call.dtype
    x, y = call.operand("self"), call.operand("other")
    x, y = (a.cast(call.b, item, kind) if isinstance(item, Value) else item for item in (x, y))
    if not (isinstance(x, Value) or isinstance(y, Value)):
        x = a.number(call.b, x, kind, len(call.shape))
    return x, y


def add(call: FpCall) -> Value:
    """x + alpha y."""
    x, y = _operands(call)
    return a.add(call.b, x, _scaled(call, y))


def sub(call: FpCall) -> Value:
    """x - alpha y."""
    x, y = _operands(call)
    return a.sub(call.b, x, _scaled(call, y))


def rsub(call: FpCall) -> Value:
    """y - alpha x."""
    x, y = _operands(call)
    return a.sub(call.b, y, _scaled(call, x))


def _scaled(call: FpCall, operand: a.Operand) -> a.Operand:
    alpha = call.arguments.get("alpha", 1)
    if alpha == 1:
        return operand
    return a.mul(call.b, operand, alpha) if isinstance(operand, Value) else operand * alpha


def mul(call: FpCall) -> Value:
    """x * y; for truths, both."""
    x, y = _operands(call)
    if call.dtype is DType.BOOL:
        return call.b("LOGICAL_AND", *a.matched(call.b, x, y))
    return a.mul(call.b, x, y)


def div(call: FpCall) -> Value:
    """x / y, perhaps rounded down or towards 0."""
    b, mode = call.b, call.arguments.get("rounding_mode")
    call.need(call.dtype.is_float, "it divides integers", "divide floating-point numbers")
    value = a.div(b, *_operands(call))
    if mode == "floor":
        return b("FLOOR", value)
    return a.truncated(b, value) if mode == "trunc" else value


def maximum(call: FpCall) -> Value:
    """The greater of two."""
    return a.maximum(call.b, *_operands(call))


def minimum(call: FpCall) -> Value:
    """The lesser of two."""
    return a.minimum(call.b, *_operands(call))


LARGEST_EXPONENT = 64
"""Of a whole number, up to which a power is a product."""


def pow_(call: FpCall) -> Value:
    """x to the y-th: a product where y is a whole number, for x may be negative."""
    b, exponent = call.b, call.arguments["exponent"]
    base = call.arguments["self"]
    if not hasattr(base, "meta"):
        return b("POW", *a.matched(b, float(base), a.cast(b, call.value("exponent"), call.dtype)))
    x = a.cast(b, call.value("self"), call.dtype)
    if hasattr(exponent, "meta"):
        return b("POW", *a.matched(b, x, a.cast(b, call.value("exponent"), call.dtype)))
    return _power(call, x, float(exponent))


def _power(call: FpCall, x: Value, exponent: float) -> Value:
    """x to a constant."""
    b = call.b
    if exponent in ROOTS:
        return ROOTS[exponent](b, x)
    if exponent == int(exponent) and 0 < abs(exponent) <= LARGEST_EXPONENT:
        value = _product(b, x, int(abs(exponent)))
        return value if exponent > 0 else b("RECIPROCAL", value)
    call.need(x.dtype.is_float, "it is of integers")
    return b("POW", *a.matched(b, x, exponent))


ROOTS: dict[float, Callable[[Builder, Value], Value]] = {
    0.5: a.sqrt,
    -0.5: lambda b, x: b("RSQRT", x),
}


def _product(b: Builder, x: Value, count: int) -> Value:
    """Multiply x with itself: squares of squares."""
    result: Value | None = None
    while True:
        if count & 1:
            result = x if result is None else a.mul(b, result, x)
        count >>= 1
        if not count:
            assert result is not None
            return result
        x = a.square(b, x)


def compare(call: FpCall) -> Value:
    """Return whether two numbers are in an order."""
    kind = _common(call)
    x, y = _operands(call, kind if kind.is_float else DType.INT32)
    return compared(call, *a.matched(call.b, x, y))


def _common(call: FpCall) -> DType:
    """Return the type in which PyTorch compares."""
    import torch

    torch_: Any = torch
    metas = [_meta(call.arguments[name]) for name in ("self", "other")]
    example = torch_.empty(0, dtype=torch_.result_type(*metas), device="meta")
    return call.context.dtype(example)


def _meta(argument: Any) -> Any:
    return argument.meta["val"] if hasattr(argument, "meta") else argument


INFINITE = float("inf")


def isinf(call: FpCall) -> Value:
    """Whether it is infinite, of one sign or either."""
    b, x = call.b, call.value("self")
    if call.operator == "isinf":
        x = b("ABS", x)
    return b("EQUAL", *a.matched(b, x, -INFINITE if call.operator == "isneginf" else INFINITE))


def nan_to_num(call: FpCall) -> Value:
    """What is no number becomes 0, what is infinite the greatest number, or others given."""
    b, x = call.b, call.value("self")
    greatest = LARGEST[x.dtype]
    low = -greatest if call["neginf"] is None else float(call["neginf"])
    high = greatest if call["posinf"] is None else float(call["posinf"])
    value = a.select(b, _equals(b, x, INFINITE), high, x, x.dtype)
    value = a.select(b, _equals(b, x, -INFINITE), low, value, x.dtype)
    return a.select(b, b("EQUAL", x, x), value, float(call["nan"] or 0.0), x.dtype)


def _equals(b: Builder, x: Value, number: float) -> Value:
    return b("EQUAL", *a.matched(b, x, number))


LARGEST = {
    DType.FP32: (2.0 - 2.0**-23) * 2.0**127,
    DType.FP16: 65504.0,
    DType.BF16: (2.0 - 2.0**-7) * 2.0**127,
}
"""The greatest finite number of a type."""


def isnan(call: FpCall) -> Value:
    """Whether it is no number: it does not equal itself."""
    x = call.value("self")
    return call.b("LOGICAL_NOT", call.b("EQUAL", x, x))
