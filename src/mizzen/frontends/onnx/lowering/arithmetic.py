"""Sums, differences, products, quotients, extremes of tensors, broadcast.

Both operands come to one unit in 32 bits, and one RESCALE gives the result. An operand that is a
constant without integers of its own keeps its numbers: one number has a scale to itself, several
are 32-bit integers of a fine unit. Where both operands are functions of one quantised tensor (as
in x * sigmoid(x)), or one is a number, the result is a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np

from mizzen.frontends.arrangement.movement import lifted, same_rank
from mizzen.frontends.onnx.lowering.bounds import bounded
from mizzen.frontends.onnx.lowering.call import QUANTIZE_BEFORE, OnnxCall, within
from mizzen.frontends.onnx.lowering.context import Function
from mizzen.frontends.onnx.lowering.functions import applied, sloped, table, tabled
from mizzen.frontends.onnx.lowering.spans import STEEPEST, WIDE, taken
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.elementwise import combine, multiply, scalar
from mizzen.frontends.quantized.scales import centered, requantize, rescale, typed
from mizzen.frontends.quantized.terms import Constant, Pending, Real, Target, Term
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Value, integer_range
from mizzen.ops import Builder

SUM_BITS = 29
"""Of an operand of a sum in 32 bits."""

FACTORS = {DType.INT8: 1 << 22, DType.INT16: (1 << 16) - 1}
"""The greatest constant factor: products of 255 and 32768 with it have 31 bits."""

GREATEST = {DType.INT8: 255, DType.INT16: 32768}
"""How far an integer of a type may be from its zero point."""

SHORT = integer_range(DType.INT16)[1]

ERROR_MAXIMUM = 0.5
"""By how many steps of the result the rounding of constants may change it."""

Binary = Callable[[Array, Array], Array]


def add(call: OnnxCall) -> Pending:
    """x + y, broadcast."""
    return _with_bias(call) or _binary(call, np.add, lambda x, y, to: _sum(call.b, "ADD", x, y, to))


def sub(call: OnnxCall) -> Pending:
    """x - y, broadcast."""
    return _with_bias(call) or _binary(
        call, np.subtract, lambda x, y, to: _sum(call.b, "SUB", x, y, to)
    )


def mul(call: OnnxCall) -> Pending:
    """x * y, broadcast."""
    return _scaled(call) or _binary(call, np.multiply, lambda x, y, to: _product(call.b, x, y, to))


def div(call: OnnxCall) -> Pending:
    """x / y, broadcast, where y is constant, or both depend on one tensor."""
    scaled = _scaled(call)
    if scaled is not None:
        return scaled
    divisor = call.term(1)
    if not isinstance(divisor, Constant):
        whole = _composed(call, np.divide)
        if whole is None:
            raise RefusedError(*DIVISOR)
        return tabled(call, whole)
    call.need(bool(np.all(divisor.real != 0)), "it divides by a constant that is zero")

    def quotient(x: Operand, y: Operand, target: Target) -> Value:
        assert isinstance(y, np.ndarray)
        return _product(call.b, x, np.asarray(1 / y), target)

    return _binary(call, np.divide, quotient)


DIVISOR = (
    "its divisor is computed at run time, and no NPU divides",
    "divide by a constant, or multiply by a reciprocal that is quantised",
)

Operand = Real | Array | Pending
"""A quantised tensor, or the numbers of a constant that the model does not quantise, float64.

Of two summands, one may be sums of a layer that the model does not quantise.
"""


def _binary(
    call: OnnxCall, function: Binary, build: Callable[[Operand, Operand, Target], Value]
) -> Pending:
    """Return a table where the result depends on one tensor, else what `build` makes."""
    whole = _composed(call, function)
    if whole is not None and any(isinstance(call.term(index), Pending) for index in (0, 1)):
        return tabled(call, whole)
    exact = call.kind == "Div"
    x, y = _operand(call, 0, exact=False), _operand(call, 1, exact=exact)
    is_known = not isinstance(x, Pending) or not isinstance(y, Pending)
    call.need(is_known, "none of its inputs is quantised", QUANTIZE_BEFORE)
    if whole is not None:
        call.context.functions[call.node.outputs[0]] = whole

    def emit(target: Target) -> Value:
        source = None if whole is None or isinstance(whole.x, Pending) else whole.x.value
        if whole is not None and source is not None and source.dtype is target.dtype is DType.INT8:
            return table(call.b, whole, target)
        return typed(build(x, y, target), target)

    return Pending(emit, call.shape)


def _composed(call: OnnxCall, function: Binary) -> Function | None:
    """Return the result as a function of one tensor, where it is one."""
    sides: list[Function | Array] = []
    for index in (0, 1):
        number = _number(call, index)
        side = call.function(index) if number is None else number
        if side is None:
            return None
        sides.append(side)
    functions = [side for side in sides if isinstance(side, Function)]
    if not functions or not all(each.shares(functions[0]) for each in functions):
        return None
    if functions[0].shape != call.shape:
        return None
    left, right = (_side(side) for side in sides)

    def of(reals: Array) -> Array:
        return function(left(reals), right(reals)).astype(np.float32)

    return Function(functions[0].x, of)


def _side(side: Function | Array) -> Callable[[Array], Array]:
    if isinstance(side, Function):
        return side.of
    return lambda reals: side


def _number(call: OnnxCall, index: int) -> Array | None:
    """Return an input that is one constant number, as float32."""
    term = call.term(index)
    if isinstance(term, Constant) and term.real.size == 1:
        return term.real.reshape(()).astype(np.float32)
    return None


def _operand(call: OnnxCall, index: int, *, exact: bool) -> Operand:
    """Return an input as an operand.

    exact  take the numbers of a constant, even where the model has integers for them
    """
    term = call.term(index)
    if isinstance(term, Pending) and call.kind in ("Add", "Sub"):
        return term
    if not isinstance(term, Constant):
        return call.real(index)
    if not exact and term.real.size > 1 and has_integers(term):
        return call.real(index)
    call.need(bool(np.all(np.isfinite(term.real))), "its constant has numbers that are not finite")
    return term.real.astype(np.float64)


def has_integers(constant: Constant) -> bool:
    """Whether a constant has integers of 8 or 16 bits with one scale."""
    integers, quantization = constant.integers, constant.quantization
    return (
        integers is not None
        and integers.dtype.itemsize <= 2
        and quantization is not None
        and quantization.axis is None
    )


def _sum(b: Builder, kind: str, x: Operand, y: Operand, target: Target) -> Value:
    """Add or subtract, in 32 bits."""
    x, y = _settled(x, y, target), _settled(y, x, target)
    if isinstance(x, Real) and isinstance(y, Real):
        return combine(b, kind, x, y, target)
    real, reals = (x, y) if isinstance(x, Real) else (y, x)
    assert isinstance(real, Real)
    assert isinstance(reals, np.ndarray)
    headroom = 20 if real.value.dtype is DType.INT8 else 12
    most = float(np.abs(reals).max(initial=0.0))
    unit = max(real.scale * 2.0**-headroom, most * 2.0**-SUM_BITS)
    wide = rescale(b, real.value, real.scale / unit, DType.INT32, (real.zero_point, 0))
    constant = b.constant(np.rint(reals / unit), DType.INT32)
    left, right = (wide, constant) if real is x else (constant, wide)
    return requantize(b, b(kind, *same_rank(b, left, right)), unit, target)


def _settled(operand: Operand, other: Operand, target: Target) -> Operand:
    """Return sums of a layer as integers, up to where the result saturates whatever is added."""
    if not isinstance(operand, Pending):
        return operand
    low, high = integer_range(target.dtype)
    bound = target.scale * (high - low + 1)
    match other:
        case Real(value):
            bound += GREATEST[value.dtype] * other.scale
        case Pending():
            raise RefusedError("none of its inputs is quantised", QUANTIZE_BEFORE)
        case _:
            bound += float(np.abs(other).max(initial=0.0))
    if bound / SHORT > STEEPEST[target.dtype] * target.scale:
        raise RefusedError("an input is not quantised, and 16 bits are too few for it", WIDE)
    return taken(operand, bound)


def _product(b: Builder, x: Operand, y: Operand, target: Target) -> Value:
    """Multiply, in 32 bits."""
    x, y = (_alone(b, each) for each in (x, y))
    if isinstance(x, Real) and isinstance(y, Real):
        return multiply(b, x, y, target)
    real, reals = (x, y) if isinstance(x, Real) else (y, x)
    assert isinstance(real, Real)
    assert isinstance(reals, np.ndarray)
    unit = (float(np.abs(reals).max(initial=0.0)) or 1.0) / FACTORS[real.value.dtype]
    _need_precise(real, unit, target)
    factors = b.constant(np.rint(reals / unit), DType.INT32)
    left, right = same_rank(b, centered(b, real), factors)
    value = b("MUL", left, right, b.constant([0], DType.INT8))
    return requantize(b, value, real.scale * unit, target)


def _need_precise(x: Real, unit: float, target: Target) -> None:
    """Refuse factors of which the lesser ones have too few digits in the unit of the greatest."""
    error = GREATEST[x.value.dtype] * unit / 2 * x.scale / target.scale
    if error > ERROR_MAXIMUM:
        raise RefusedError(
            "its constant has numbers too far apart for one scale",
            "quantise the constant, or the result with a larger scale",
        )


def _alone(b: Builder, operand: Operand) -> Operand:
    """Return one number as a quantised tensor of its own scale."""
    if not isinstance(operand, np.ndarray) or operand.size != 1:
        return operand
    own = scalar(b.graph, float(operand.reshape(())))
    return Real(lifted(b, own.value, max(operand.ndim, 1)))


def _scaled(call: OnnxCall) -> Pending | None:
    """Multiply or divide what is computed in front by one positive number: its scale takes it."""
    index = 0 if isinstance(call.term(0), Pending) else 1
    term = call.term(index)
    other = _number(call, 1 - index)
    function = call.function(index)
    if other is None or not isinstance(term, Pending) or function is None:
        return None
    if isinstance(function.x, Real) or (call.kind == "Div" and index):
        return None
    factor = float(other) if call.kind == "Mul" else 1 / float(other or np.nan)
    if not 0 < factor < inf or term.shape != call.shape:
        return None

    def emit(target: Target) -> Value:
        scale = (target.scale / factor,)
        inner = replace(
            target,
            quantization=replace(target.quantization, scales=scale),
            low=target.low / factor,
            high=target.high / factor,
        )
        return typed(term.emit(within(inner, term.low, term.high)), target)

    _remember(call, np.multiply if call.kind == "Mul" else np.divide)
    return Pending(emit, call.shape)


def _remember(call: OnnxCall, function: Binary) -> None:
    """Let what follows be a function of what the result is one of."""
    whole = _composed(call, function)
    if whole is not None:
        call.context.functions[call.node.outputs[0]] = whole


def _with_bias(call: OnnxCall) -> Pending | None:
    """Add a constant to the sums of a layer in front: it becomes their bias."""
    for index in (0, 1):
        name, term = call.node.inputs[index], call.term(1 - index)
        take = call.context.sums.get(name)
        if take is None or not isinstance(term, Constant):
            continue
        if call.kind == "Sub" and index:
            return None
        call.term(index)
        bias = Constant(-term.real) if call.kind == "Sub" else term
        if call.shape_of(index) != call.shape:
            return None
        _remember(call, np.subtract if call.kind == "Sub" else np.add)
        return take(bias)
    return None


def maximum(call: OnnxCall) -> Term:
    """Return the greatest of several tensors, broadcast."""
    return _extreme(call, "MAXIMUM")


def minimum(call: OnnxCall) -> Term:
    """Return the least of several tensors, broadcast."""
    return _extreme(call, "MINIMUM")


def _extreme(call: OnnxCall, kind: str) -> Term:
    if call.count == 1:
        return call.itself()
    if call.count == 2 and call.dtype.kind == "f":
        bounded = _bounded(call, kind)
        if bounded is not None:
            return bounded
    b = call.b

    def build(*values: Value) -> Value:
        dtype = values[0].dtype
        wide = [each if dtype is DType.INT32 else rescale(b, each, 1.0, DType.INT32)
                for each in values]  # fmt: skip
        first, *rest = same_rank(b, *wide)
        for each in rest:
            first = b(kind, first, each)
        return first if dtype is DType.INT32 else rescale(b, first, 1.0, dtype)

    return call.alike(range(call.count), build)


def _bounded(call: OnnxCall, kind: str) -> Term | None:
    """Return the extreme of a tensor and one number: a bound."""
    for index in (0, 1):
        number = _number(call, 1 - index)
        if number is not None and call.shape_of(index) == call.shape:
            limits = (float(number), inf) if kind == "MAXIMUM" else (-inf, float(number))
            return bounded(call, *limits, index)
    return None


def prelu(call: OnnxCall) -> Pending:
    """Multiply what is below zero, by one constant or by one for each channel."""
    slopes = call.array(1).astype(np.float64)
    call.need(bool(np.all(np.isfinite(slopes))), "its slopes are not finite")
    if slopes.size == 1:
        return applied(call, 0, sloped(float(slopes.reshape(()))))
    x = call.real(0)
    most = max(float(np.abs(slopes).max(initial=0.0)), 1.0)
    unit = most / FACTORS[x.value.dtype]

    def emit(target: Target) -> Value:
        b = call.b
        factors, one = (b.constant(np.rint(each / unit), DType.INT32)
                        for each in (slopes, np.ones((1,) * slopes.ndim)))  # fmt: skip
        wide, factors, one = same_rank(b, centered(b, x), factors, one)
        zero, none = b.constant(np.zeros(one.shape), DType.INT32), b.constant([0], DType.INT8)
        above = b("MUL", b("MAXIMUM", wide, zero), one, none)
        below = b("MUL", b("MINIMUM", wide, zero), factors, none)
        return requantize(b, b("ADD", above, below), x.scale * unit, target)

    return Pending(emit, call.shape)
