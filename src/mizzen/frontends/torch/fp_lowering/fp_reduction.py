"""Reductions, softmax. Ref: TOSA 1.0, 2.9 reduction operators, 2.3.1 ARGMAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_context import Call, Result, axes_of, lowers
from mizzen.frontends.torch.fp_lowering.fp_shapes import permuted, reshape, transpose
from mizzen.graph import DType, Value
from mizzen.ops import Builder


def _axes(call: Call) -> list[int]:
    return axes_of(call.arguments.get("dim"), len(call.shape_of(call.first)))


def _source(call: Call) -> Value:
    """Return the input in the result's type, with one dimension at least."""
    x = a.cast(call.b, call.value(call.first), call.dtype)
    return x if x.type.rank else reshape(call.b, x, (1,))


@lowers("aten.mean.dim", "aten.mean.default")
def mean(call: Call) -> Value:
    """The mean over dimensions."""
    return reshape(call.b, a.mean(call.b, _source(call), _axes(call) or [0]), call.shape)


REDUCTIONS = {
    "aten.sum.dim_IntList": "REDUCE_SUM",
    "aten.sum.default": "REDUCE_SUM",
    "aten.amax.default": "REDUCE_MAX",
    "aten.amin.default": "REDUCE_MIN",
    "aten.max.default": "REDUCE_MAX",
    "aten.min.default": "REDUCE_MIN",
    "aten.prod.default": "REDUCE_PRODUCT",
    "aten.prod.dim_int": "REDUCE_PRODUCT",
}


@lowers(*REDUCTIONS)
def reduced(call: Call) -> Value:
    """Sum, greatest, least or product over dimensions."""
    kind = REDUCTIONS[str(call.node.target)]
    value = a.reduce(call.b, kind, _source(call), _axes(call) or [0])
    return reshape(call.b, value, call.shape)


@lowers("aten.any.default", "aten.any.dim", "aten.any.dims")
def any_of(call: Call) -> Value:
    """Whether one is true."""
    value = a.reduce(call.b, "REDUCE_ANY", _source(call), _axes(call) or [0])
    return reshape(call.b, value, call.shape)


@lowers("aten.all.default", "aten.all.dim", "aten.all.dims")
def all_of(call: Call) -> Value:
    """Whether all are true."""
    value = a.reduce(call.b, "REDUCE_ALL", _source(call), _axes(call) or [0])
    return reshape(call.b, value, call.shape)


@lowers("aten.var.correction", "aten.var.dim", "aten.std.correction", "aten.std.dim")
def variance(call: Call) -> Value:
    """The mean square of what differs from the mean, or its root."""
    value = _variance(call)
    if call.node.target.__name__.startswith("std"):
        value = a.sqrt(call.b, value)
    return reshape(call.b, value, call.shape)


@lowers("aten.var_mean.correction")
def variance_and_mean(call: Call) -> Result:
    """The variance, and the mean."""
    b, shapes = call.b, call.shapes
    average = a.mean(b, call.value("self"), _axes(call))
    return reshape(b, _variance(call), shapes[0]), reshape(b, average, shapes[1])


def _variance(call: Call) -> Value:
    b, x, axes = call.b, call.value("self"), _axes(call)
    correction = call.arguments.get("correction")
    if "correction" not in call.arguments:
        correction = 1 if call["unbiased"] else 0
    count = int(np.prod([x.shape[axis] for axis in axes]))
    left = max(count - (1 if correction is None else float(correction)), 0.0)
    squares = a.square(b, a.sub(b, x, a.mean(b, x, axes)))
    sums = a.reduce(b, "REDUCE_SUM", squares, axes)
    return a.mul(b, sums, 1.0 / left if left else float("inf"))


@lowers("aten.linalg_vector_norm.default", "aten.norm.ScalarOpt_dim", "aten.norm.Scalar")
def norm(call: Call) -> Value:
    """The length of vectors: of order 1, 2 or infinite."""
    b, x, axes = call.b, call.value("self" if "self" in call.arguments else "x"), _axes(call)
    order = call.arguments.get("ord", call.arguments.get("p"))
    order = 2.0 if order is None else float(order)
    match order:
        case 1.0:
            value = a.reduce(b, "REDUCE_SUM", b("ABS", x), axes)
        case 2.0:
            value = a.sqrt(b, a.reduce(b, "REDUCE_SUM", a.square(b, x), axes))
        case _:
            call.need(order == float("inf"), f"its order is {order}", "use order 1, 2 or inf")
            value = a.reduce(b, "REDUCE_MAX", b("ABS", x), axes)
    return reshape(b, value, call.shape)


@lowers("aten.softmax.int", "aten._softmax.default")
def softmax(call: Call) -> Value:
    """exp(x) over its sum, the greatest taken away first."""
    return softmax_of(call.b, _source(call), call.axis())


def softmax_of(b: Builder, x: Value, axis: int) -> Value:
    """Softmax of a value along a dimension."""
    powers = b("EXP", a.sub(b, x, b("REDUCE_MAX", x, axis=axis)))
    return a.mul(b, powers, b("RECIPROCAL", b("REDUCE_SUM", powers, axis=axis)))


@lowers("aten.log_softmax.int", "aten._log_softmax.default")
def log_softmax(call: Call) -> Value:
    """The logarithm of softmax."""
    b, axis = call.b, call.axis()
    return a.sub(b, x := _shifted(b, _source(call), axis), _log_of_sum(b, x, axis))


def _shifted(b: Builder, x: Value, axis: int) -> Value:
    return a.sub(b, x, b("REDUCE_MAX", x, axis=axis))


def _log_of_sum(b: Builder, x: Value, axis: int) -> Value:
    return b("LOG", b("REDUCE_SUM", b("EXP", x), axis=axis))


@lowers("aten.logsumexp.default")
def logsumexp(call: Call) -> Value:
    """The logarithm of the sum of powers."""
    b, x, axes = call.b, call.value("self"), _axes(call)
    greatest = a.reduce(b, "REDUCE_MAX", x, axes)
    sums = a.reduce(b, "REDUCE_SUM", b("EXP", a.sub(b, x, greatest)), axes)
    return reshape(b, a.add(b, b("LOG", sums), greatest), call.shape)


@lowers("aten.argmax.default", "aten.argmin.default")
def place(call: Call) -> Value:
    """Where the greatest or least is; in 32 bits."""
    b, x = call.b, call.value("self")
    if call.node.target.__name__.startswith("argmin"):
        x = a.neg(b, x)
    return reshape(b, _argmax(b, x, call.arguments.get("dim")), call.shape)


def _argmax(b: Builder, x: Value, dim: Any) -> Value:
    if dim is None:
        x, dim = reshape(b, x, (x.type.elements,)), 0
    return b("ARGMAX", x, axis=int(dim) % x.type.rank)


@lowers("aten.max.dim", "aten.min.dim")
def extreme_and_place(call: Call) -> Result:
    """The greatest or least along a dimension, and where it is."""
    b, x, axis = call.b, call.value("self"), call.axis()
    least = call.node.target.__name__.startswith("min")
    values, indices = call.shapes
    value = b("REDUCE_MIN" if least else "REDUCE_MAX", x, axis=axis)
    where = b("ARGMAX", a.neg(b, x) if least else x, axis=axis)
    return reshape(b, value, values), reshape(b, where, indices)


@lowers("aten.cumsum.default")
def running_sum(call: Call) -> Value:
    """The sum of all up to each: a product with a triangle of ones."""
    b, axis = call.b, call.axis()
    x = a.cast(b, call.value("self"), call.dtype)
    call.need(x.dtype in (DType.FP32, DType.FP16), "it is not of floating-point numbers of TOSA")
    size, rank = x.shape[axis], x.type.rank
    order = [*(dim for dim in range(rank) if dim != axis), axis]
    last = permuted(b, x, order)
    rows = reshape(b, last, (1, x.type.elements // size, size))
    triangle = a.filled(b, np.triu(np.ones((1, size, size))), x.dtype)
    zero = b.constant([0], x.dtype)
    value = a.cast(b, b("MATMUL", rows, triangle, zero, zero, dtype=DType.FP32), x.dtype)
    value = reshape(b, value, last.shape)
    back = [order.index(dim) for dim in range(rank)]
    return value if back == list(range(rank)) else transpose(b, value, back)
