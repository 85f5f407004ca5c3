"""Sums, differences, products, extremes, comparisons of two tensors, and clamps.

Both operands come to one scale, with headroom, in 32 bits; one RESCALE gives the result. Numbers of
one scale compare as their integers do; with a number that is no tensor, PyTorch itself says which
integers are on which side of it. Ref: TOSA 1.0, 2.7 comparison operators.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.choice import compared
from mizzen.frontends.torch.int_lowering.int_activation import evaluate, reals_of
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.int_lowering.int_terms import (
    Constant,
    Pending,
    Plain,
    Real,
    Target,
    as_target,
    clamped,
    requantize,
    rescale,
)
from mizzen.frontends.torch.shapes import same_rank
from mizzen.graph import DType, Quantization, Value, integer_range
from mizzen.ops import Builder

HEADROOM_BITS = {DType.INT8: 20, DType.INT16: 12}
"""Bits by which operands of a sum are shifted left: 8 + 20 + 1 and 16 + 12 + 1 fit into 32."""


def add(call: IntCall) -> Pending:
    """x + y, broadcast."""
    return _combined(call, "ADD")


def sub(call: IntCall) -> Pending:
    """x - y, broadcast."""
    return _combined(call, "SUB")


def _combined(call: IntCall, kind: str) -> Pending:
    call.need(call["alpha"] == 1, "it multiplies its second operand (alpha)")
    x, y = _operands(call)
    return Pending(lambda target: combine(call.b, kind, x, y, target), call.shape)


def mul(call: IntCall) -> Pending:
    """x * y, broadcast."""
    x, y = _operands(call)
    return Pending(lambda target: multiply(call.b, x, y, target), call.shape)


def combine(b: Builder, kind: str, x: Real, y: Real, target: Target) -> Value:
    """Add or subtract (ADD, SUB): both operands in one unit, with headroom, in 32 bits.

    Operands of one scale are added as they are, which is exact too, and which Ethos-U55 does in
    one operation.
    """
    bits = min(HEADROOM_BITS[x.value.dtype], HEADROOM_BITS[y.value.dtype])
    unit = x.scale if x.scale == y.scale else 2 * max(x.scale, y.scale) / (1 << bits)
    left, right = (
        rescale(b, item.value, item.scale / unit, DType.INT32, (item.zero_point, 0))
        for item in (x, y)
    )
    left, right = same_rank(b, left, right)
    return requantize(b, b(kind, left, right), unit, target)


def centered(b: Builder, x: Real) -> Value:
    """Return 32-bit integers without zero point."""
    return rescale(b, x.value, 1.0, DType.INT32, (x.zero_point, 0))


def multiply(b: Builder, x: Real, y: Real, target: Target) -> Value:
    """Multiply without zero points, in 32 bits."""
    left, right = same_rank(b, centered(b, x), centered(b, y))
    value = b("MUL", left, right, b.constant([0], DType.INT8))
    return requantize(b, value, x.scale * y.scale, target)


def maximum(call: IntCall) -> Pending:
    """Greater of x and y, broadcast."""
    return _extreme(call, "MAXIMUM")


def minimum(call: IntCall) -> Pending:
    """Smaller of x and y, broadcast."""
    return _extreme(call, "MINIMUM")


def _extreme(call: IntCall, kind: str) -> Pending:
    x, y = _operands(call)

    def emit(target: Target) -> Value:
        b = call.b
        left, right = (rescale(b, as_target(b, item, target), 1.0, DType.INT32) for item in (x, y))
        left, right = same_rank(b, left, right)
        return clamped(b, rescale(b, b(kind, left, right), 1.0, target.dtype), target)

    return Pending(emit, call.shape)


def clamp(call: IntCall) -> Pending:
    """Clamp to constant bounds: part of the computation that it follows, else one of its own."""
    low, high = _bounds(call)
    found = call.term("self")
    if isinstance(found, Pending):
        return found.clamped(low, high)
    x = call.real("self")
    return Pending(lambda target: as_target(call.b, x, target), call.shape).clamped(low, high)


def _operands(call: IntCall) -> tuple[Real, Real]:
    """Return both operands as quantised tensors; numbers become constants of their own scale."""
    return _operand(call, "self"), _operand(call, "other")


def _operand(call: IntCall, name: str) -> Real:
    found = call[name]
    if isinstance(found, (int, float)):
        return scalar(call, float(found))
    term = call.term(name)
    if isinstance(term, Constant) and term.integers is None and term.real.size == 1:
        return scalar(call, float(term.real.reshape(())))
    return call.real(name)


def scalar(call: IntCall, number: float) -> Real:
    """Return a number as a quantised tensor that stands for it exactly: its own scale, times 1."""
    if not np.isfinite(number):
        raise RefusedError(f"it takes the number {number}, which no integer stands for")
    integer = 0 if number == 0.0 else int(np.sign(number))
    quantization = Quantization((abs(number) or 1.0,), (0,))
    value = call.context.graph.constant([integer], DType.INT8, quantization=quantization)
    return Real(value)


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
    x, y = call.real("self"), call.real("other")
    call.need(
        (x.scale, x.zero_point) == (y.scale, y.zero_point),
        "its operands have different scales",
        "quantise the comparison itself: its operands then share a scale",
    )
    return Plain(compared(call, centered(call.b, x), centered(call.b, y)))


def compare_number(call: IntCall) -> Plain:
    """Compare a tensor with a number: with the first integer on the other side of it."""
    b, x, name = call.b, call.real("self"), call.operator
    low, high = integer_range(x.value.dtype)
    points = np.arange(low, high + 1)
    holds = evaluate(call.node, call["self"], reals_of(x, points))
    negated = name in ("lt", "le", "ne")
    found = points[~holds if negated else holds]
    limit = int(found[0]) if found.size else high + 1
    shape = (1,) * x.value.type.rank
    constant = b.constant(np.full(shape, limit - x.zero_point), DType.INT32)
    kind = "EQUAL" if name in ("eq", "ne") else "GREATER_EQUAL"
    value = b(kind, centered(b, x), constant)
    return Plain(b("LOGICAL_NOT", value) if negated else value)
