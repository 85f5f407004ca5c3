"""Pools: the greatest, or the mean, of windows over images and of whole planes."""

from __future__ import annotations

import numpy as np

from mizzen.frontends.arrangement.choice import reduced
from mizzen.frontends.arrangement.windows import Window, greatest, pooled
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.onnx.lowering.windows import placement
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.layers import ACCUMULATORS
from mizzen.frontends.quantized.pools import Means
from mizzen.frontends.quantized.reductions import mean
from mizzen.frontends.quantized.scales import requantize, rescale
from mizzen.frontends.quantized.terms import Pending, Real, Target, Term
from mizzen.graph import DType, Value

COUNT_BITS = {DType.INT8: 20, DType.INT16: 15}
"""Of the inverse of the number of elements that a window counts: its mean has 31 with them."""


def _window(call: OnnxCall) -> Window:
    place = placement(call, call.wholes("kernel_shape", ()))
    call.need(place.dilation == (1, 1), "its window is dilated", "pool without dilations")
    return Window(place.kernel, place.stride, place.pads)


def max_pool(call: OnnxCall) -> tuple[Term, ...]:
    """Return the greatest of each window; where it was, TOSA does not say."""
    is_asked = len(call.node.outputs) > 1 and bool(call.node.outputs[1])
    call.need(not is_asked, "it gives indices", "pool without its second output")
    window = _window(call)
    return (call.moved(lambda value: pooled(call.b, value, window, greatest(call.b), call.shape)),)


def global_max_pool(call: OnnxCall) -> Term:
    """Return the greatest of each plane."""
    axes = list(range(2, len(call.shape_of(0))))

    def move(value: Value) -> Value:
        quantization = value.quantization
        result = reduced(call.b, "REDUCE_MAX", value, axes)
        result.type = result.type.quantized(quantization)
        return result

    return call.moved(move)


def average_pool(call: OnnxCall) -> Pending:
    """Return the mean of each window; padding counts only where the model says so."""
    x, window = call.real(0), _window(call)
    filling = x.zero_point if call.whole("count_include_pad", 0) else None

    def emit(target: Target) -> Value:
        def pool(source: Value, own: Window) -> Value:
            return _averaged(call, x, source, own, target)

        return pooled(call.b, x.value, window, pool, call.shape, filling)

    return Pending(emit, call.shape)


def _averaged(call: OnnxCall, x: Real, source: Value, window: Window, target: Target) -> Value:
    """Return means of windows, of which those that reach beyond the image count fewer elements."""
    means = Means(call.b, x, target, call.context.limits)
    counts = _counts(source, window)
    same = (x.scale, x.zero_point) == (target.scale, target.zero_point)
    limits = call.context.limits
    fits = (
        max(window.stride) <= limits.longest_stride and max(window.kernel) <= limits.largest_kernel
    )
    if same or not any(window.pads) or not fits:
        return means.of(source, window)
    sums = _sums(call, x, source, window)
    one = 1 << COUNT_BITS[x.value.dtype]
    if sums.dtype is not DType.INT32:
        sums = rescale(call.b, sums, 1.0, DType.INT32)
    factors = call.b.constant(np.rint(one / counts), DType.INT32)
    value = call.b("MUL", sums, factors, call.b.constant([0], DType.INT8))
    return requantize(call.b, value, x.scale / one, target)


def _sums(call: OnnxCall, x: Real, source: Value, window: Window) -> Value:
    """Sum by a convolution with ones, to which padding adds nothing."""
    b, channels = call.b, source.shape[3]
    return b(
        "DEPTHWISE_CONV2D",
        source,
        b.constant(np.ones((*window.kernel, channels, 1), np.int8), DType.INT8),
        b.constant(np.zeros(channels, np.int64), ACCUMULATORS[source.dtype]),
        b.constant([x.zero_point], source.dtype),
        b.constant([0], DType.INT8),
        stride=window.stride,
        pad=window.pads,
    )


def _counts(source: Value, window: Window) -> Array:
    """Return how many elements of the image each window has, [1,H,W,1]."""
    inside: list[Array] = []
    for axis in (0, 1):
        extent, pads = source.shape[1 + axis], window.pads[2 * axis : 2 * axis + 2]
        kernel, step = window.kernel[axis], window.stride[axis]
        count = (extent + sum(pads) - kernel) // step + 1
        first = np.arange(count) * step - pads[0]
        inside.append(np.minimum(first + kernel, extent) - np.maximum(first, 0))
    return (inside[0][:, None] * inside[1][None, :])[None, :, :, None]


def global_average_pool(call: OnnxCall) -> Pending:
    """Return the mean of each plane."""
    x, axes = call.real(0), list(range(2, len(call.shape_of(0))))

    def emit(target: Target) -> Value:
        return mean(call.b, x, axes, target, call.shape, call.context.limits)

    return Pending(emit, call.shape)
