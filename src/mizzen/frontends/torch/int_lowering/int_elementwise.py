"""Sums, differences, products, extremes of two tensors, and clamps.

Both operands come to one scale, with headroom, in 32 bits; one RESCALE gives the result.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.context import Call, lowers
from mizzen.frontends.torch.int_lowering.int_convolution import reshape
from mizzen.frontends.torch.int_lowering.rescale import clamp, requantize, rescale
from mizzen.frontends.torch.values import Constant, Pending, Real, Target
from mizzen.graph import DType, Quantization, Value
from mizzen.ops import Builder

HEADROOM_BITS = {DType.INT8: 20, DType.INT16: 12}
"""Bits by which operands of a sum are shifted left: 8 + 20 + 1 and 16 + 12 + 1 fit into 32."""


@lowers("aten.add.Tensor", "aten.add_.Tensor", "aten.sub.Tensor", "aten.sub_.Tensor")
def sum_or_difference(call: Call) -> Pending:
    """x + y or x - y, broadcast."""
    call.need(call["alpha"] == 1, "it multiplies its second operand (alpha)")
    x, y = operands(call)
    kind = "SUB" if "sub" in str(call.node.target) else "ADD"

    return Pending(lambda target: combine(call.b, kind, x, y, target), call.shape)


@lowers("aten.mul.Tensor", "aten.mul_.Tensor")
def product(call: Call) -> Pending:
    """x * y, broadcast."""
    x, y = operands(call)

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


def multiply(b: Builder, x: Real, y: Real, target: Target) -> Value:
    """Multiply without zero points, in 32 bits."""
    left, right = (
        rescale(b, item.value, 1.0, DType.INT32, (item.zero_point, 0)) for item in (x, y)
    )
    left, right = same_rank(b, left, right)
    value = b("MUL", left, right, b.constant([0], DType.INT8))
    return requantize(b, value, x.scale * y.scale, target)


@lowers("aten.maximum.default", "aten.minimum.default")
def extreme(call: Call) -> Pending:
    """Greater or smaller of x and y, broadcast."""
    x, y = operands(call)
    kind = "MAXIMUM" if "maximum" in str(call.node.target) else "MINIMUM"

    def emit(target: Target) -> Value:
        b = call.b
        left, right = (rescale(b, as_target(b, item, target), 1.0, DType.INT32) for item in (x, y))
        left, right = same_rank(b, left, right)
        return clamp(b, rescale(b, b(kind, left, right), 1.0, target.dtype), target)

    return Pending(emit, call.shape)


@lowers(
    "aten.relu.default",
    "aten.relu_.default",
    "aten.relu6.default",
    "aten.hardtanh.default",
    "aten.hardtanh_.default",
    "aten.clamp.default",
    "aten.clamp_.default",
    "aten.clamp_min.default",
    "aten.clamp_max.default",
)
def clamped(call: Call) -> Pending:
    """Clamp to constant bounds: part of the computation that it follows, else one of its own."""
    low, high = _bounds(call)
    name = "self" if "self" in call.arguments else "input"
    found = call.term(name)
    if isinstance(found, Pending):
        return found.clamped(low, high)
    return follow(call, call.real(name)).clamped(low, high)


def follow(call: Call, x: Real) -> Pending:
    """A tensor as it is, for other scales or bounds."""
    return Pending(lambda target: as_target(call.b, x, target), x.value.shape)


def as_target(b: Builder, x: Real, target: Target) -> Value:
    """Return a real tensor's integers for a target."""
    return requantize(b, x.value, x.scale, target, x.zero_point)


def operands(call: Call) -> tuple[Real, Real]:
    """Return both operands as quantised tensors; numbers become constants of their own scale."""
    return _operand(call, "self"), _operand(call, "other")


def _operand(call: Call, name: str) -> Real:
    found = call[name]
    if isinstance(found, (int, float)):
        return scalar(call, float(found))
    term = call.term(name)
    if isinstance(term, Constant) and term.integers is None and term.real.size == 1:
        return scalar(call, float(term.real.reshape(())))
    return call.real(name)


def scalar(call: Call, number: float) -> Real:
    """Return a number as a quantised tensor that stands for it exactly: its own scale, times 1."""
    if not np.isfinite(number):
        raise RefusedError(f"it takes the number {number}, which no integer stands for")
    integer = 0 if number == 0.0 else int(np.sign(number))
    quantization = Quantization((abs(number) or 1.0,), (0,))
    value = call.context.graph.constant([integer], DType.INT8, quantization=quantization)
    return Real(value)


def same_rank(b: Builder, left: Value, right: Value) -> tuple[Value, Value]:
    """Put extents of 1 in front of the shorter shape: TOSA broadcasts only equal ranks."""
    rank = max(left.type.rank, right.type.rank)
    return _lifted(b, left, rank), _lifted(b, right, rank)


def _lifted(b: Builder, value: Value, rank: int) -> Value:
    return reshape(b, value, (*(1,) * (rank - value.type.rank), *value.shape))


def _bounds(call: Call) -> tuple[float, float]:
    name = str(call.node.target).split(".")[1].rstrip("_")
    match name:
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
