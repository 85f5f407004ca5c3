"""Sums and means along dimensions, and of windows, rounded once wherever the NPU can."""

from __future__ import annotations

import numpy as np

from mizzen.frontends.arrangement.movement import permuted, reshape
from mizzen.frontends.arrangement.windows import linear
from mizzen.frontends.quantized import reductions
from mizzen.frontends.quantized.layers import IntLayer
from mizzen.frontends.quantized.pools import Means
from mizzen.frontends.quantized.reductions import summed
from mizzen.frontends.quantized.terms import Pending, Target, Term, Wide
from mizzen.frontends.torch.choice import amax, amin
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.int_lowering.int_whole import is_whole, type_of
from mizzen.frontends.torch.windows import by_tiles, by_windows
from mizzen.graph import DType, Value


def sum_(call: IntCall) -> Pending:
    """Return the sum along dimensions."""
    x, axes = call.real("self"), call.axes()
    return Pending(lambda target: summed(call.b, x, axes, target, call.shape), call.shape)


def mean(call: IntCall) -> Pending:
    """Return the mean along dimensions."""
    x, axes, limits = call.real("self"), call.axes(), call.context.limits
    return Pending(
        lambda target: reductions.mean(call.b, x, axes, target, call.shape, limits), call.shape
    )


def max_dim(call: IntCall) -> tuple[Term, ...]:
    """Return the greatest or least along a dimension, and where it is."""
    values = (amin if call.operator == "min" else amax)(call)
    if call.used <= {0}:
        return (values,)
    return values, Wide(_found(call, call.axis(), call.operator == "min"))


def argmax(call: IntCall) -> Wide:
    """Return where the greatest or least is along a dimension, or among all."""
    axis = None if call["dim"] is None else call.axis()
    return Wide(_found(call, axis, call.operator == "argmin"))


def _found(call: IntCall, axis: int | None, least: bool) -> Value:
    """Return the index, i32, of the greatest or least, the first of several."""
    b, given = call.b, call["self"]
    if is_whole(given):
        value = call.as_plain(given, type_of(given))
        call.need(value.dtype is not DType.INT32, "it is of 32 bits, and TOSA finds among 8 or 16")
    else:
        value = call.real("self").value
    if axis is None:
        axis, value = 0, reshape(b, value, (value.type.elements,))
    if least:
        call.need(value.dtype is DType.INT8, "it is of 16 bits", "take the argmax of the negative")
        backwards = b.constant(np.arange(-128, 128)[::-1], DType.INT8)
        value = b("TABLE", value, backwards)
    return reshape(b, b("ARGMAX", value, axis=axis), call.shapes[-1])


def cumsum(call: IntCall) -> Pending:
    """Return the sums of all up to each: a product with a triangle of ones, rounded once."""
    x, axis = call.real("self"), call.axis()
    size, rank = x.value.shape[axis], x.value.type.rank
    order = [*(dim for dim in range(rank) if dim != axis), axis]

    def emit(target: Target) -> Value:
        b = call.b
        last = permuted(b, x.value, order)
        ones = np.tril(np.ones((size, size), np.int64)).reshape(size, 1, 1, size)
        bias = np.zeros(size, np.int64)
        layer = IntLayer(b, x, ones, bias, np.array([x.scale]), target)
        value = linear(b, last, layer, last.shape)
        return permuted(b, value, [order.index(dim) for dim in range(rank)])

    return Pending(emit, call.shape)


def avg_pool2d(call: IntCall) -> Pending:
    """Return the mean of each window of [N,C,H,W] or [C,H,W]."""
    x, limits = call.real("self"), call.context.limits
    call.need(call.arguments.get("divisor_override") is None, "it has a divisor of its own")
    filling = x.zero_point if call["count_include_pad"] else None

    def emit(target: Target) -> Value:
        return by_windows(call, x.value, Means(call.b, x, target, limits).of, filling)

    return Pending(emit, call.shape)


def adaptive_avg_pool2d(call: IntCall) -> Pending:
    """Return the mean of windows that cut [N,C,H,W] into a given number of rows and columns."""
    x, limits = call.real("self"), call.context.limits

    def emit(target: Target) -> Value:
        return by_tiles(call, x.value, Means(call.b, x, target, limits).of)

    return Pending(emit, call.shape)
