"""Functions of each number: tables, sums, products, extremes, comparisons, clamps.

Functions of one number are tables, filled by PyTorch's own function. An 8-bit table has an entry
for each of the 256 integers, so it gives what PyTorch gives, exactly. For 16 bits see `int_tables`.

Two operands come to one scale, with headroom, in 32 bits; one RESCALE gives the result. Numbers of
one scale compare as their integers do; with a number that is not a tensor, PyTorch itself says
which integers are on which side of it. Ref: TOSA 1.0, 2.4.14 TABLE, 2.7 comparison operators.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.choice import compared
from mizzen.frontends.torch.int_lowering.int_context import (
    Constant,
    IntCall,
    Pending,
    Plain,
    Real,
    Target,
    Term,
    as_target,
    clamped,
    requantize,
    rescale,
    typed,
)
from mizzen.frontends.torch.int_lowering.int_tables import tables_of, wide_table, wide_target
from mizzen.frontends.torch.int_lowering.int_whole import arithmetic, is_whole
from mizzen.frontends.torch.movement import same_rank
from mizzen.frontends.torch.operators import functional_name
from mizzen.frontends.torch.program import Array, operator_of, tensor_of, without_gradient
from mizzen.graph import DType, Quantization, Value, integer_range
from mizzen.ops import Builder


def unary(call: IntCall) -> Pending:
    """Return a function of each number."""
    names = ("self", "input", "exponent")
    name = next(name for name in names if hasattr(call.arguments.get(name), "meta"))
    x, argument = call.real(name), call[name]

    def function(integers: Array) -> Array:
        return continued(evaluate(call.node, argument, reals_of(x, integers)))

    def emit(target: Target) -> Value:
        """Add the table; 8 bits go in and come out alike, 16 bits come out wider."""
        match x.value.dtype, target.dtype:
            case DType.INT8, DType.INT8:
                entries = quantized(function(np.arange(-128, 128)), target)
                return narrow_table(call.b, x, entries, target)
            case DType.INT16, _:
                wide = wide_target(target)
                tables = tables_of(lambda integers: in_steps(function(integers), wide), target)
                return wide_table(call.b, x, tables, target)
            case given, wanted:
                raise RefusedError(f"no table takes {given.value} and gives {wanted.value}")

    return Pending(emit, call.shape)


def narrow_table(b: Builder, x: Real, entries: Array, target: Target) -> Value:
    """Add a table of 8 bits, of 256 entries on the target's scale."""
    return typed(b("TABLE", x.value, b.constant(entries, DType.INT8)), target)


def reals_of(x: Real, integers: Array) -> Array:
    """Return the real numbers that integers stand for, in float32 as PyTorch computes them."""
    return (integers - x.zero_point).astype(np.float32) * np.float32(x.scale)


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


def continued(reals: Array) -> Array:
    """Let what is not a number be the nearest entry of a table that is one.

    So the edge of a function's domain is right though the integer next to it stands for a number
    beyond: acos(-1) where -1 is rounded to -1.004.
    """
    places = np.arange(reals.size)
    known = places[~np.isnan(reals)]
    if not known.size or known.size == reals.size:
        return reals
    after = np.searchsorted(known, places).clip(0, known.size - 1)
    before = (after - 1).clip(0)
    nearer = np.abs(known[before] - places) < np.abs(known[after] - places)
    return reals[np.where(nearer, known[before], known[after])]


def quantized(reals: Array, target: Target) -> Array:
    """Quantise as PyTorch does: half to even, clamped."""
    low, high = target.bounds
    shifted = np.rint(in_steps(reals, target)) + target.zero_point
    return np.clip(shifted, low, high).astype(np.int64)


def in_steps(reals: Array, target: Target) -> Array:
    """Return numbers in steps of a scale, as PyTorch does: times its inverse, in float32.

    What is never a number has no place on the NPU: it becomes zero.
    """
    scaled = reals.astype(np.float32) * np.float32(1.0 / target.scale)
    return np.nan_to_num(scaled, nan=0.0, posinf=1e9, neginf=-1e9)


HEADROOM_BITS = {DType.INT8: 20, DType.INT16: 12}
"""Bits by which operands of a sum are shifted left: 8 + 20 + 1 and 16 + 12 + 1 fit into 32."""


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


def maximum(call: IntCall) -> Pending | Plain:
    """Greater of x and y, broadcast."""
    return _extreme(call, "MAXIMUM")


def minimum(call: IntCall) -> Pending | Plain:
    """Smaller of x and y, broadcast."""
    return _extreme(call, "MINIMUM")


def _extreme(call: IntCall, kind: str) -> Pending | Plain:
    integers = call.whole()
    if integers is not None:
        return Plain(call.b(kind, *integers))
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
    term = call.term("self")
    if isinstance(term, Pending):
        return term.clamped(low, high)
    x = call.real("self")
    return Pending(lambda target: as_target(call.b, x, target), call.shape).clamped(low, high)


def _operands(call: IntCall) -> tuple[Real, Real]:
    """Return both operands as quantised tensors; numbers become constants of their own scale."""
    return operand(call, "self"), operand(call, "other")


def operand(call: IntCall, name: str) -> Real:
    """Return an operand as a quantised tensor; a number becomes a constant of its own scale."""
    argument = call[name]
    if isinstance(argument, (int, float)):
        return scalar(call, float(argument))
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
    integers = call.whole()
    if integers is not None:
        return Plain(compared(call, *integers))
    x, y = call.real("self"), call.real("other")
    call.need(
        (x.scale, x.zero_point) == (y.scale, y.zero_point),
        "its operands have different scales",
        "quantise the comparison itself: its operands then share a scale",
    )
    return Plain(compared(call, centered(call.b, x), centered(call.b, y)))


def compare_number(call: IntCall) -> Plain:
    """Compare a tensor with a number: with the first integer on the other side of it."""
    integers = call.whole()
    if integers is not None:
        return Plain(compared(call, *integers))
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
