"""Functions of each number, sums, products, extremes, comparisons, clamps.

Functions of one number are tables, filled by PyTorch's own function. Numbers of one scale compare
as their integers do; with a number that is not a tensor, PyTorch itself says which integers are on
which side of it. Ref: TOSA 1.0, 2.7 comparison operators.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.choice import compared
from mizzen.frontends.quantized.elementwise import combine, extreme, multiply, scalar
from mizzen.frontends.quantized.functions import function_of, reals_of
from mizzen.frontends.quantized.scales import as_target, centered
from mizzen.frontends.quantized.terms import Constant, Pending, Plain, Real, Term
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.int_lowering.int_whole import (
    are_whole,
    arithmetic,
    is_whole,
    narrowed,
    number,
    type_of,
    wide_operands,
)
from mizzen.frontends.torch.operators import functional_name
from mizzen.frontends.torch.program import Array, operator_of, tensor_of, without_gradient
from mizzen.graph import DType, integer_range


def unary(call: IntCall) -> Pending:
    """Return a function of each number."""
    names = ("self", "input", "exponent")
    name = next(name for name in names if hasattr(call.arguments.get(name), "meta"))
    x, argument = call.real(name), call[name]

    def function(reals: Array) -> Array:
        return evaluate(call.node, argument, reals)

    return Pending(lambda target: function_of(call.b, x, function, target), call.shape)


def evaluate(node: Any, argument: Any, reals: Array) -> Array:
    """Let PyTorch compute a node's function of each number, float32."""
    tensor = tensor_of(reals)
    arguments = [tensor if item is argument else item for item in node.args]
    named = {name: tensor if item is argument else item for name, item in node.kwargs.items()}
    name = str(node.target)
    kept = functional_name(name) == name
    function = node.target if kept else operator_of(functional_name(name))
    return without_gradient(function, *arguments, **named).numpy()


def nan_to_num(call: IntCall) -> Term:
    """Return the tensor itself: integers stand for numbers only."""
    return call.itself()


def add(call: IntCall) -> Pending | Plain:
    """x + y, broadcast."""
    return _combined(call, "ADD")


def sub(call: IntCall) -> Pending | Plain:
    """x - y, broadcast."""
    return _combined(call, "SUB")


def _combined(call: IntCall, kind: str) -> Pending | Plain:
    call.need(call["alpha"] == 1, "it multiplies its second operand (alpha)")
    if is_whole(call.node):
        return arithmetic(call, kind)
    x, y = _operands(call)
    return Pending(lambda target: combine(call.b, kind, x, y, target), call.shape)


def mul(call: IntCall) -> Pending | Plain:
    """x * y, broadcast."""
    if is_whole(call.node):
        return arithmetic(call, "MUL")
    x, y = _operands(call)
    return Pending(lambda target: multiply(call.b, x, y, target), call.shape)


def maximum(call: IntCall) -> Pending | Plain:
    """Greater of x and y, broadcast."""
    return _extreme(call, "MAXIMUM")


def minimum(call: IntCall) -> Pending | Plain:
    """Smaller of x and y, broadcast."""
    return _extreme(call, "MINIMUM")


def _extreme(call: IntCall, kind: str) -> Pending | Plain:
    if is_whole(call["self"]):
        return narrowed(call, call.b(kind, *wide_operands(call, "self", "other")))
    x, y = _operands(call)

    return Pending(lambda target: extreme(call.b, kind, x, y, target), call.shape)


def clamp(call: IntCall) -> Pending | Plain:
    """Clamp to constant bounds: part of the computation that it follows, else one of its own."""
    low, high = _bounds(call)
    if is_whole(call["self"]):
        return _clamped(call, low, high)
    term = call.term("self")
    if isinstance(term, Pending):
        return term.clamped(low, high)
    x = call.real("self")
    return Pending(lambda target: as_target(call.b, x, target), call.shape).clamped(low, high)


def _clamped(call: IntCall, low: float, high: float) -> Plain:
    """Clamp whole numbers, which stay whole: 8 and 16 bits at once, 32 bits at either bound."""
    call.need(is_whole(call.node), "its result is a fraction of whole numbers")
    b, dtype = call.b, type_of(call["self"])
    value, (least, most) = call.as_plain(call["self"], dtype), integer_range(dtype)
    bounds = [int(min(max(bound, least), most)) for bound in (low, high)]
    if dtype is not DType.INT32:
        return Plain(b("CLAMP", value, min_val=bounds[0], max_val=bounds[1]))
    rank = value.type.rank
    if bounds[0] > least:
        value = b("MAXIMUM", value, number(call, bounds[0], rank))
    return Plain(value if bounds[1] == most else b("MINIMUM", value, number(call, bounds[1], rank)))


def _operands(call: IntCall) -> tuple[Real, Real]:
    """Return both operands as quantised tensors; numbers become constants of their own scale."""
    return operand(call, "self"), operand(call, "other")


def operand(call: IntCall, name: str) -> Real:
    """Return an operand as a quantised tensor; a number becomes a constant of its own scale."""
    argument = call[name]
    if isinstance(argument, (int, float)):
        return scalar(call.context.graph, float(argument))
    term = call.term(name)
    if isinstance(term, Constant) and term.integers is None and term.real.size == 1:
        return scalar(call.context.graph, float(term.real.reshape(())))
    return call.real(name)


def _bounds(call: IntCall) -> tuple[float, float]:
    match call.operator:
        case "relu":
            return 0.0, inf
        case "relu6":
            return 0.0, 6.0
        case "hardtanh":
            return float(call["min_val"]), float(call["max_val"])
        case _:
            low = _number(call.arguments.get("min"), -inf)
            return low, _number(call.arguments.get("max"), inf)


def _number(value: Any, default: float) -> float:
    return default if value is None else float(value)


def compare(call: IntCall) -> Plain:
    """Compare two tensors, broadcast."""
    if are_whole(call, "self", "other"):
        return Plain(compared(call.b, call.operator, *wide_operands(call, "self", "other")))
    x, y = call.real("self"), call.real("other")
    call.need(
        (x.scale, x.zero_point) == (y.scale, y.zero_point),
        "its operands have different scales",
        "quantise the comparison itself: its operands then share a scale",
    )
    return Plain(compared(call.b, call.operator, centered(call.b, x), centered(call.b, y)))


def compare_number(call: IntCall) -> Plain:
    """Compare a tensor with a number: with the first integer on the other side of it."""
    if are_whole(call, "self"):
        return Plain(compared(call.b, call.operator, *wide_operands(call, "self", "other")))
    b, x, name = call.b, call.real("self"), call.operator
    low, high = integer_range(x.value.dtype)
    points = np.arange(low, high + 1)
    holds = evaluate(call.node, call["self"], reals_of(x, points))
    negated = name in ("lt", "le", "ne")
    answers = points[~holds if negated else holds]
    limit = int(answers[0]) if answers.size else high + 1
    shape = (1,) * x.value.type.rank
    constant = b.constant(np.full(shape, limit - x.zero_point), DType.INT32)
    kind = "EQUAL" if name in ("eq", "ne") else "GREATER_EQUAL"
    value = b(kind, centered(b, x), constant)
    return Plain(b("LOGICAL_NOT", value) if negated else value)
