"""Sums, means and extremes along dimensions, where extremes are, and running sums."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from mizzen.frontends.arrangement.choice import reduced
from mizzen.frontends.arrangement.movement import permuted, reshape
from mizzen.frontends.arrangement.windows import linear
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.quantized.layers import IntLayer
from mizzen.frontends.quantized.reductions import mean, summed
from mizzen.frontends.quantized.scales import centered, requantize, widened
from mizzen.frontends.quantized.softmax import logsumexp, need_few_terms
from mizzen.frontends.quantized.terms import Pending, Plain, Real, Target, Term, Wide
from mizzen.graph import DType, Value

SUM_BITS = 31

LONGEST = 2048
"""Of a running sum, whose weights are as many as its square."""

EXTREMES = {"ReduceMax": "REDUCE_MAX", "ReduceMin": "REDUCE_MIN"}
OF_TRUTHS = {"ReduceMax": "REDUCE_ANY", "ReduceMin": "REDUCE_ALL"}


def axes_of(call: OnnxCall) -> list[int]:
    """Return the dimensions that are reduced: all where none is named, or none where it says so."""
    rank = len(call.shape_of(0))
    named: list[int] = call.array(1).reshape(-1).tolist() if call.given(1) else []
    if not named and call.whole("noop_with_empty_axes", 0):
        return []
    call.need(all(-rank <= axis < rank for axis in named), f"its input has no dimensions {named}")
    return sorted({axis % rank for axis in named}) or list(range(rank))


def sum_(call: OnnxCall) -> Term:
    """Return the sum along dimensions."""
    axes = axes_of(call)
    if not axes:
        return call.itself()
    if call.dtype.kind != "f":
        return _whole(call, axes)
    x = call.real(0)
    _need_few(call, x, axes, 9)
    return Pending(lambda target: summed(call.b, x, axes, target, call.shape), call.shape)


def _whole(call: OnnxCall, axes: Sequence[int]) -> Term:
    """Sum integers of 32 bits."""
    value = call.integers(0)
    call.need(value.dtype is DType.INT32, f"it sums integers of {call.dtype.name}")
    result = reshape(call.b, reduced(call.b, "REDUCE_SUM", value, axes), call.shape)
    return Wide(result) if call.dtype == np.int64 else Plain(result)


def _need_few(call: OnnxCall, x: Real, axes: Sequence[int], bits: int) -> None:
    """Refuse sums of numbers of some bits, or of 8 more, that 32 bits do not hold."""
    terms = prod(x.value.shape[axis] for axis in axes)
    wide = bits if x.value.dtype is DType.INT8 else bits + 8
    most = 1 << max(SUM_BITS - wide, 0)
    call.need(terms <= most, f"it sums {terms} numbers, and 32 bits hold {most}")


def mean_(call: OnnxCall) -> Term:
    """Return the mean along dimensions."""
    axes = axes_of(call)
    if not axes:
        return call.itself()
    x = call.real(0)
    _need_few(call, x, axes, 9)
    limits = call.context.limits
    return Pending(lambda target: mean(call.b, x, axes, target, call.shape, limits), call.shape)


def extreme(call: OnnxCall) -> Term:
    """Return the greatest or least along dimensions."""
    axes = axes_of(call)
    kinds = OF_TRUTHS if call.dtype == np.bool_ else EXTREMES
    return call.moved(
        lambda value: reshape(call.b, reduced(call.b, kinds[call.kind], value, axes), call.shape)
    )


def absolute_sum(call: OnnxCall) -> Pending:
    """Return the sum of distances from zero along dimensions (ReduceL1)."""
    x, axes, b = call.real(0), axes_of(call), call.b
    _need_few(call, x, axes, 9)

    def emit(target: Target) -> Value:
        value = reduced(b, "REDUCE_SUM", b("ABS", centered(b, x)), axes)
        return reshape(b, requantize(b, value, x.scale, target), call.shape)

    return Pending(emit, call.shape)


def square_sum(call: OnnxCall) -> Pending:
    """Return the sum of squares along dimensions (ReduceSumSquare)."""
    x, axes, b = call.real(0), axes_of(call), call.b
    call.need(x.value.dtype is DType.INT8, "it sums squares of 16 bits, which 32 bits do not hold")
    _need_few(call, x, axes, 16)

    def emit(target: Target) -> Value:
        wide = centered(b, x)
        squares = b("MUL", wide, wide, b.constant([0], DType.INT8))
        value = reduced(b, "REDUCE_SUM", squares, axes)
        return reshape(b, requantize(b, value, x.scale**2, target), call.shape)

    return Pending(emit, call.shape)


def log_sum_exp(call: OnnxCall) -> Pending:
    """Return the logarithm of the sum of exponentials along dimensions."""
    x, axes = call.real(0), axes_of(call)
    call.need(bool(axes), "it reduces no dimension")
    need_few_terms(call.shape_of(0), axes)

    def emit(target: Target) -> Value:
        wide = widened(call.b, x) if x.value.dtype is DType.INT8 else x
        return logsumexp(call.b, wide, axes, target, call.shape)

    return Pending(emit, call.shape)


def arg_extreme(call: OnnxCall) -> Wide:
    """Return where the greatest or least is along a dimension, the first one or the last one."""
    return Wide(reshape(call.b, _place(call, call.axis(0), call.kind == "ArgMin"), call.shape))


def _place(call: OnnxCall, axis: int, least: bool) -> Value:
    """Return the index, 32 bits, of the greatest or least."""
    b, is_last = call.b, bool(call.whole("select_last_index", 0))
    value = call.real(0).value if call.dtype_of(0).kind == "f" else call.integers(0)
    call.need(value.dtype in (DType.INT8, DType.INT16), f"it is of {call.dtype_of(0).name}")
    if least:
        call.need(value.dtype is DType.INT8, "it is of 16 bits", "take ArgMax of the negative")
        value = b("TABLE", value, b.constant(np.arange(-128, 128)[::-1], DType.INT8))
    if not is_last:
        return b("ARGMAX", value, axis=axis)
    place = b("ARGMAX", b("REVERSE", value, axis=axis), axis=axis)
    last = np.full((1,) * place.type.rank, value.shape[axis] - 1)
    return b("SUB", b.constant(last, DType.INT32), place)


def top_k(call: OnnxCall) -> tuple[Term, Term]:
    """Return the greatest or least along a dimension, and where it is."""
    count = call.scalar(1)
    call.need(
        count == 1,
        f"it sorts: it wants the first {count:.0f}",
        "take the greatest only (k of 1), or cut the network before it: `mizzen quantize --cut`",
    )
    axis, is_least = call.axis(-1), not call.whole("largest", 1)
    kind = "REDUCE_MIN" if is_least else "REDUCE_MAX"
    values = call.moved(lambda value: reduced(call.b, kind, value, [axis]))
    place = _place(call, axis, is_least)
    return values, Wide(reshape(call.b, place, call.shapes[1]))


def cumulative_sum(call: OnnxCall) -> Pending:
    """Return the sums of all up to each: a product with a triangle of ones, rounded once."""
    x, rank, b = call.real(0), len(call.shape), call.b
    axis = int(call.scalar(1)) % rank
    size = x.value.shape[axis]
    call.need(size <= LONGEST, f"it sums along {size} numbers, and {LONGEST} are the most here")
    order = [*(dim for dim in range(rank) if dim != axis), axis]
    ones = np.tril(np.ones((size, size), np.int64), -1 if call.whole("exclusive", 0) else 0)
    weight = (ones.T if call.whole("reverse", 0) else ones).reshape(size, 1, 1, size)

    def emit(target: Target) -> Value:
        layer = IntLayer(b, x, weight, np.zeros(size, np.int64), np.array([x.scale]), target)
        last = permuted(b, x.value, order)
        value = linear(b, last, layer, last.shape)
        return permuted(b, value, [order.index(dim) for dim in range(rank)])

    return Pending(emit, call.shape)
