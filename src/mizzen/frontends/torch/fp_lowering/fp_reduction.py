"""Reductions, softmax. Ref: TOSA 1.0, 2.9 reduction operators, 2.3.1 ARGMAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from mizzen.frontends.torch.choice import reduced
from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_arithmetic import mul
from mizzen.frontends.torch.fp_lowering.fp_context import FpCall, Result
from mizzen.frontends.torch.shapes import permuted, reshape
from mizzen.frontends.torch.windows import Pool, Window, adaptive, averaged, window_count
from mizzen.graph import DType, Value
from mizzen.ops import Builder


def _source(call: FpCall) -> Value:
    """Return the input in the result's type, with one dimension at least."""
    x = call.itself()
    return x if x.type.rank else reshape(call.b, x, (1,))


def mean(call: FpCall) -> Value:
    """The mean over dimensions."""
    return reshape(call.b, a.mean(call.b, _source(call), call.axes() or [0]), call.shape)


def sum_(call: FpCall) -> Value:
    """Return the sum over dimensions."""
    return _reduced(call, "REDUCE_SUM")


def prod(call: FpCall) -> Value:
    """Return the product over dimensions."""
    return _reduced(call, "REDUCE_PRODUCT")


def _reduced(call: FpCall, kind: str) -> Value:
    value = reduced(call.b, kind, _source(call), call.axes() or [0])
    return reshape(call.b, value, call.shape)


def var(call: FpCall) -> Value:
    """The mean square of what differs from the mean, or its root."""
    value = _variance(call)
    if call.operator == "std":
        value = a.sqrt(call.b, value)
    return reshape(call.b, value, call.shape)


def var_mean(call: FpCall) -> Result:
    """The variance, and the mean."""
    b, shapes = call.b, call.shapes
    average = a.mean(b, call.value("self"), call.axes())
    return reshape(b, _variance(call), shapes[0]), reshape(b, average, shapes[1])


def _variance(call: FpCall) -> Value:
    b, x, axes = call.b, call.value("self"), call.axes()
    correction = call.arguments.get("correction")
    if "correction" not in call.arguments:
        correction = 1 if call["unbiased"] else 0
    count = int(np.prod([x.shape[axis] for axis in axes]))
    left = max(count - (1 if correction is None else float(correction)), 0.0)
    squares = a.square(b, a.sub(b, x, a.mean(b, x, axes)))
    sums = reduced(b, "REDUCE_SUM", squares, axes)
    return a.mul(b, sums, 1.0 / left if left else float("inf"))


def norm(call: FpCall) -> Value:
    """The length of vectors: of order 1, 2 or infinite."""
    b, x, axes = call.b, call.value("self" if "self" in call.arguments else "x"), call.axes()
    order = call.arguments.get("ord", call.arguments.get("p"))
    order = 2.0 if order is None else float(order)
    match order:
        case 1.0:
            value = reduced(b, "REDUCE_SUM", b("ABS", x), axes)
        case 2.0:
            value = a.sqrt(b, reduced(b, "REDUCE_SUM", a.square(b, x), axes))
        case _:
            call.need(order == float("inf"), f"its order is {order}", "use order 1, 2 or inf")
            value = reduced(b, "REDUCE_MAX", b("ABS", x), axes)
    return reshape(b, value, call.shape)


def softmax(call: FpCall) -> Value:
    """exp(x) over its sum, the greatest taken away first."""
    return softmax_of(call.b, _source(call), call.axis())


def softmax_of(b: Builder, x: Value, axis: int) -> Value:
    """Softmax of a value along a dimension."""
    powers = b("EXP", a.sub(b, x, b("REDUCE_MAX", x, axis=axis)))
    return a.mul(b, powers, b("RECIPROCAL", b("REDUCE_SUM", powers, axis=axis)))


def log_softmax(call: FpCall) -> Value:
    """The logarithm of softmax."""
    b, axis = call.b, call.axis()
    return a.sub(b, x := _shifted(b, _source(call), axis), _log_of_sum(b, x, axis))


def _shifted(b: Builder, x: Value, axis: int) -> Value:
    return a.sub(b, x, b("REDUCE_MAX", x, axis=axis))


def _log_of_sum(b: Builder, x: Value, axis: int) -> Value:
    return b("LOG", b("REDUCE_SUM", b("EXP", x), axis=axis))


def logsumexp(call: FpCall) -> Value:
    """The logarithm of the sum of powers."""
    b, x, axes = call.b, call.value("self"), call.axes()
    greatest = reduced(b, "REDUCE_MAX", x, axes)
    sums = reduced(b, "REDUCE_SUM", b("EXP", a.sub(b, x, greatest)), axes)
    return reshape(b, a.add(b, b("LOG", sums), greatest), call.shape)


def argmax(call: FpCall) -> Value:
    """Where the greatest or least is; in 32 bits."""
    b, x = call.b, call.value("self")
    if call.operator == "argmin":
        x = a.neg(b, x)
    return reshape(b, _argmax(b, x, call.arguments.get("dim")), call.shape)


def _argmax(b: Builder, x: Value, dim: Any) -> Value:
    if dim is None:
        x, dim = reshape(b, x, (x.type.elements,)), 0
    return b("ARGMAX", x, axis=int(dim) % x.type.rank)


def max_dim(call: FpCall) -> Result:
    """The greatest or least along a dimension, and where it is."""
    b, x, axis = call.b, call.value("self"), call.axis()
    least = call.operator == "min"
    values, indices = call.shapes
    value = b("REDUCE_MIN" if least else "REDUCE_MAX", x, axis=axis)
    where = b("ARGMAX", a.neg(b, x) if least else x, axis=axis)
    return reshape(b, value, values), reshape(b, where, indices)


def cumsum(call: FpCall) -> Value:
    """The sum of all up to each: a product with a triangle of ones."""
    b, axis = call.b, call.axis()
    x = call.itself()
    call.need(x.dtype in (DType.FP32, DType.FP16), "it is not of floating-point numbers of TOSA")
    size, rank = x.shape[axis], x.type.rank
    order = [*(dim for dim in range(rank) if dim != axis), axis]
    last = permuted(b, x, order)
    rows = reshape(b, last, (1, x.type.elements // size, size))
    triangle = a.filled(b, np.triu(np.ones((1, size, size))), x.dtype)
    zero = b.constant([0], x.dtype)
    value = a.cast(b, b("MATMUL", rows, triangle, zero, zero, dtype=DType.FP32), x.dtype)
    value = reshape(b, value, last.shape)
    return permuted(b, value, [order.index(dim) for dim in range(rank)])


def avg_pool2d(call: FpCall) -> Value:
    """Return the mean of each window; padding counts only where the model says so."""
    value = averaged(call, call.value("self"), 0, _mean(call))
    divisor = call.arguments.get("divisor_override")
    return mul(call.b, value, window_count(call) / int(divisor)) if divisor else value


def adaptive_avg_pool2d(call: FpCall) -> Value:
    """Return the mean of windows that cut an image into a given number of rows and columns."""
    return adaptive(call, call.value("self"), _mean(call))


def _mean(call: FpCall) -> Pool:
    def pool(source: Value, window: Window) -> Value:
        zero = call.b.constant([0], source.dtype)
        return call.b("AVG_POOL2D", source, zero, zero, acc_type=DType.FP32, **window.attributes)

    return pool
