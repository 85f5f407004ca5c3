"""Arithmetic on two tensors, or a tensor and a number; comparisons; choices.

Ref: TOSA 1.0, 2.5 elementwise binary, 2.7 elementwise ternary, 2.8 comparison operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_context import Call, lowers
from mizzen.graph import DType, Value
from mizzen.ops import Builder

BOTH = ("Tensor", "Scalar")


def _named(*names: str) -> list[str]:
    return [f"aten.{name}.{overload}" for name in names for overload in BOTH]


def _operands(call: Call, dtype: DType | None = None) -> tuple[a.Operand, a.Operand]:
    """Return both operands in the type in which PyTorch computes."""
    kind = dtype or call.dtype
    x, y = call.operand("self"), call.operand("other")
    x, y = (a.cast(call.b, item, kind) if isinstance(item, Value) else item for item in (x, y))
    if not (isinstance(x, Value) or isinstance(y, Value)):
        x = a.number(call.b, x, kind, len(call.shape))
    return x, y


@lowers(*_named("add"))
def added(call: Call) -> Value:
    """x + alpha y."""
    x, y = _operands(call)
    return a.add(call.b, x, _scaled(call, y))


@lowers(*_named("sub", "subtract"))
def subtracted(call: Call) -> Value:
    """x - alpha y."""
    x, y = _operands(call)
    return a.sub(call.b, x, _scaled(call, y))


@lowers(*_named("rsub"))
def subtracted_from(call: Call) -> Value:
    """y - alpha x."""
    x, y = _operands(call)
    return a.sub(call.b, y, _scaled(call, x))


def _scaled(call: Call, operand: a.Operand) -> a.Operand:
    alpha = call.arguments.get("alpha", 1)
    if alpha == 1:
        return operand
    return a.mul(call.b, operand, alpha) if isinstance(operand, Value) else operand * alpha


@lowers(*_named("mul", "multiply"))
def multiplied(call: Call) -> Value:
    """x * y; for truths, both."""
    x, y = _operands(call)
    if call.dtype is DType.BOOL:
        return call.b("LOGICAL_AND", *a.matched(call.b, x, y))
    return a.mul(call.b, x, y)


@lowers(*_named("div", "divide", "true_divide"), "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def divided(call: Call) -> Value:
    """x / y, perhaps rounded down or towards 0."""
    b, mode = call.b, call.arguments.get("rounding_mode")
    call.need(call.dtype.is_float, "it divides integers", "divide floating-point numbers")
    value = a.div(b, *_operands(call))
    if mode == "floor":
        return b("FLOOR", value)
    return a.truncated(b, value) if mode == "trunc" else value


@lowers("aten.maximum.default", "aten.max.other")
def greater_of(call: Call) -> Value:
    """The greater of two."""
    return a.maximum(call.b, *_operands(call))


@lowers("aten.minimum.default", "aten.min.other")
def lesser_of(call: Call) -> Value:
    """The lesser of two."""
    return a.minimum(call.b, *_operands(call))


@lowers("aten.square.default")
def squared(call: Call) -> Value:
    """x * x."""
    return a.square(call.b, call.value("self"))


LARGEST_EXPONENT = 64
"""Of a whole number, up to which a power is a product."""


@lowers("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def raised(call: Call) -> Value:
    """x to the y-th: a product where y is a whole number, for x may be negative."""
    b, exponent = call.b, call.arguments["exponent"]
    base = call.arguments["self"]
    if not hasattr(base, "meta"):
        return b("POW", *a.matched(b, float(base), a.cast(b, call.value("exponent"), call.dtype)))
    x = a.cast(b, call.value("self"), call.dtype)
    if hasattr(exponent, "meta"):
        return b("POW", *a.matched(b, x, a.cast(b, call.value("exponent"), call.dtype)))
    return power(call, x, float(exponent))


def power(call: Call, x: Value, exponent: float) -> Value:
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


Comparison = Callable[[Builder, a.Operand, a.Operand], Value]


def _compare(kind: str) -> Comparison:
    return lambda b, x, y: b(kind, *a.matched(b, x, y))


COMPARISONS: dict[str, Comparison] = {
    "gt": _compare("GREATER"),
    "ge": _compare("GREATER_EQUAL"),
    "eq": _compare("EQUAL"),
    "lt": lambda b, x, y: b("GREATER", *a.matched(b, y, x)),
    "le": lambda b, x, y: b("GREATER_EQUAL", *a.matched(b, y, x)),
    "ne": lambda b, x, y: b("LOGICAL_NOT", b("EQUAL", *a.matched(b, x, y))),
}


@lowers(*_named(*COMPARISONS))
def compared(call: Call) -> Value:
    """Whether two numbers are in an order."""
    kind = _common(call)
    x, y = _operands(call, DType.INT32 if not kind.is_float else kind)
    return COMPARISONS[call.node.target.__name__.split(".")[0]](call.b, x, y)


def _common(call: Call) -> DType:
    """Return the type in which PyTorch compares."""
    import torch

    torch_: Any = torch
    metas = [_meta(call.arguments[name]) for name in ("self", "other")]
    example = torch_.empty(0, dtype=torch_.result_type(*metas), device="meta")
    return call.context.dtype(example)


def _meta(argument: Any) -> Any:
    return argument.meta["val"] if hasattr(argument, "meta") else argument


LOGIC = {
    "logical_and": "LOGICAL_AND",
    "logical_or": "LOGICAL_OR",
    "logical_xor": "LOGICAL_XOR",
    "bitwise_and": "LOGICAL_AND",
    "bitwise_or": "LOGICAL_OR",
    "bitwise_xor": "LOGICAL_XOR",
    "__and__": "LOGICAL_AND",
    "__or__": "LOGICAL_OR",
}


@lowers(*(f"aten.{name}.{end}" for name in LOGIC for end in ("default", "Tensor")))
def connected(call: Call) -> Value:
    """Two truths."""
    call.need(call.dtype is DType.BOOL, "it is of integers", "use it on truths (torch.bool)")
    x, y = _operands(call, DType.BOOL)
    return call.b(LOGIC[call.node.target.__name__.split(".")[0]], *a.matched(call.b, x, y))


@lowers("aten.logical_not.default", "aten.bitwise_not.default")
def negated(call: Call) -> Value:
    """The opposite truth."""
    call.need(call.dtype is DType.BOOL, "it is of integers", "use it on truths (torch.bool)")
    return call.b("LOGICAL_NOT", a.cast(call.b, call.value("self"), DType.BOOL))


@lowers(
    "aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar"
)  # fmt: skip
def chosen(call: Call) -> Value:
    """One where a condition holds, else the other."""
    b, dtype = call.b, call.dtype
    x, y = (
        a.cast(b, item, dtype) if isinstance(item, Value) else item
        for item in (call.operand("self"), call.operand("other"))
    )
    return a.select(b, a.cast(b, call.value("condition"), DType.BOOL), x, y, dtype)


@lowers("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked(call: Call) -> Value:
    """A number where a mask is set."""
    b, dtype = call.b, call.dtype
    given = call.operand("value")
    filling = a.cast(b, given, dtype) if isinstance(given, Value) else given
    return a.select(b, call.value("mask"), filling, call.value("self"), dtype)


INFINITE = float("inf")


@lowers("aten.isinf.default", "aten.isposinf.default", "aten.isneginf.default")
def is_infinite(call: Call) -> Value:
    """Whether it is infinite, of one sign or either."""
    b, x = call.b, call.value("self")
    name = call.node.target.__name__
    if name.startswith("isinf"):
        x = b("ABS", x)
    return b("EQUAL", *a.matched(b, x, -INFINITE if name.startswith("isneginf") else INFINITE))


@lowers("aten.nan_to_num.default")
def numbers_only(call: Call) -> Value:
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


@lowers("aten.isnan.default")
def is_no_number(call: Call) -> Value:
    """Whether it is no number: it does not equal itself."""
    x = call.value("self")
    return call.b("LOGICAL_NOT", call.b("EQUAL", x, x))
