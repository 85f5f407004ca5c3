"""Reductions, softmax, and norms, over batches as learnt, over layers and groups as measured.

Ref: TOSA 1.0, 2.9 reduction operators, 2.3.1 ARGMAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.choice import reduced
from mizzen.frontends.arrangement.movement import permuted, reshape
from mizzen.frontends.arrangement.windows import Pool, Window, counts_of, pooled
from mizzen.frontends.torch.call import Arguments
from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_arithmetic import add, filled, mul, square, sub
from mizzen.frontends.torch.fp_lowering.fp_lower import FpCall, Result
from mizzen.frontends.torch.program import Array
from mizzen.frontends.torch.windows import by_tiles, by_windows, image_of, window_of
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
    flat = reshape(b, last, (1, x.type.elements // size, size))
    triangle = a.filled(b, np.triu(np.ones((1, size, size))), x.dtype)
    zero = b.constant([0], x.dtype)
    value = a.cast(b, b("MATMUL", flat, triangle, zero, zero, dtype=DType.FP32), x.dtype)
    value = reshape(b, value, last.shape)
    return permuted(b, value, [order.index(dim) for dim in range(rank)])


def avg_pool2d(call: FpCall) -> Value:
    """Return the mean of each window; padding counts only where the model says so."""
    divisor = call.arguments.get("divisor_override")
    if not divisor:
        filling = 0 if call["count_include_pad"] else None
        return by_windows(call, call.value("self"), _mean(call), filling)
    x, window = image_of(call, call.value("self")), window_of(call)
    window = window.covering((1, *x.shape[2:])[-2:], counts_of(x, call.shape))
    value = pooled(call.b, x, window, _mean(call), call.shape, 0)
    return mul(call.b, value, window.kernel[0] * window.kernel[1] / int(divisor))


def adaptive_avg_pool2d(call: FpCall) -> Value:
    """Return the mean of windows that cut an image into a given number of rows and columns."""
    return by_tiles(call, call.value("self"), _mean(call))


def _mean(call: FpCall) -> Pool:
    def pool(source: Value, window: Window) -> Value:
        zero = call.b.constant([0], source.dtype)
        return call.b("AVG_POOL2D", source, zero, zero, acc_type=DType.FP32, **window.attributes)

    return pool


BATCH_NORM = frozenset(
    {"aten.batch_norm.default", "aten._native_batch_norm_legit_no_training.default"}
)
"""Operators that a convolution before them may take in."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """What a batch norm does to each channel, float64: ``y = x * factor + offset``."""

    factor: Array
    offset: Array


def scaling_of(node: Any, constant: Callable[[Any], Array | None]) -> Scaling | None:
    """Return a batch norm's scaling, if all it needs is constant and it is not in training."""
    call = Arguments(node)
    if call.arguments.get("training"):
        return None
    running = [constant(call[name]) for name in ("running_mean", "running_var")]
    affine = [constant(call[name]) for name in ("weight", "bias")]
    average, variance = running
    if average is None or variance is None:
        return None
    if any(call[name] is not None and parameter is None
           for name, parameter in zip(("weight", "bias"), affine, strict=True)):  # fmt: skip
        return None
    factor = 1.0 / np.sqrt(variance.astype(np.float64) + float(call["eps"]))
    if affine[0] is not None:
        factor = factor * affine[0]
    offset = -average.astype(np.float64) * factor
    return Scaling(factor, offset if affine[1] is None else offset + affine[1])


def batch_norm(call: FpCall) -> Result:
    """Scale and shift channels as learnt; nothing is left to do after a convolution."""
    b, x = call.b, call.value("input")
    if call.node in call.context.absorbed:
        return (x,) if call.gives_several else x
    call.need(
        not call.arguments.get("training") and call.given("running_mean"),
        "it measures each batch",
        "call `model.eval()` before export",
    )
    scaling = scaling_of(call.node, lambda node: _fixed(call, node))
    call.need(scaling is not None, "its statistics are no constants of the model")
    assert scaling is not None
    shape = [1, -1, *(1,) * (x.type.rank - 2)]
    value = mul(b, x, filled(b, scaling.factor.reshape(shape), x.dtype))
    value = add(b, value, filled(b, scaling.offset.reshape(shape), x.dtype))
    return (value,) if call.gives_several else value


def _fixed(call: FpCall, node: Any) -> Array | None:
    name = next((name for name, given in call.arguments.items() if given is node), None)
    return call.fixed(name) if name and node is not None else None


def layer_norm(call: FpCall) -> Result:
    """Bring the last dimensions to mean 0 and variance 1, then scale and shift."""
    x = call.value("input")
    rank = x.type.rank
    axes = list(range(rank - len(call["normalized_shape"]), rank))
    value = affine(call, normalized(call.b, x, axes, float(call["eps"])))
    return (value,) if call.gives_several else value


def group_norm(call: FpCall) -> Result:
    """Bring groups of channels to mean 0 and variance 1, then scale and shift channels."""
    x = call.value("input")
    value = _grouped(call, x, int(call["group" if call.gives_several else "num_groups"]))
    return (value,) if call.gives_several else value


def instance_norm(call: FpCall) -> Value:
    """Bring each channel of each image to mean 0 and variance 1, then scale and shift."""
    call.need(bool(call["use_input_stats"]), "it has statistics of its own")
    x = call.value("input")
    return _grouped(call, x, x.shape[1])


def _grouped(call: FpCall, x: Value, groups: int) -> Value:
    b = call.b
    grouped = reshape(b, x, (x.shape[0], groups, x.type.elements // (x.shape[0] * groups)))
    value = reshape(b, normalized(b, grouped, [2], float(call["eps"])), x.shape)
    return affine(call, value, [1, x.shape[1], *(1,) * (x.type.rank - 2)])


def rms_norm(call: FpCall) -> Value:
    """Bring the last dimensions to mean square 1, then scale."""
    b, x = call.b, call.value("input")
    rank = x.type.rank
    axes = list(range(rank - len(call["normalized_shape"]), rank))
    eps = float(np.finfo(np.float32).eps) if call["eps"] is None else float(call["eps"])
    power = a.mean(b, square(b, x), axes)
    return affine(call, mul(b, x, b("RSQRT", add(b, power, eps))))


def normalized(b: Builder, x: Value, axes: list[int], eps: float) -> Value:
    """Bring dimensions to mean 0 and variance 1."""
    centred = sub(b, x, a.mean(b, x, axes))
    variance = a.mean(b, square(b, centred), axes)
    return mul(b, centred, b("RSQRT", add(b, variance, eps)))


def affine(call: FpCall, x: Value, shape: Sequence[int] | None = None) -> Value:
    """Multiply by `weight` and add `bias` where the operator has them."""
    for name, combine in (("weight", mul), ("bias", add)):
        if call.given(name):
            factor = call.value(name)
            x = combine(call.b, x, reshape(call.b, factor, shape) if shape else factor)
    return x
