"""Pools: the greatest, or the mean, of windows over images and of whole planes."""

from __future__ import annotations

from math import lcm

import numpy as np

from mizzen.frontends.arrangement.choice import reduced
from mizzen.frontends.arrangement.movement import reshape
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

MOST = {DType.INT8: 255, DType.INT16: 32768}
"""How far an integer of a type may be from its zero point."""

PRODUCT_BITS = 31
"""Of a mean times a common multiple of the numbers of elements."""


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
    axes = range(2, len(call.shape_of(0)))
    return call.moved(lambda value: reduced(call.b, "REDUCE_MAX", value, axes))


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
    """Return means of windows, rounded once wherever that takes few operations."""
    means = Means(call.b, x, target, call.context.limits)
    if (x.scale, x.zero_point) == (target.scale, target.zero_point):
        return means.of(source, window)
    limits = call.context.limits
    if _are_tiles(source, window) and max(window.stride) > limits.longest_stride:
        return _tiles(call, x, source, window, target)
    fits = (
        max(window.stride) <= limits.longest_stride and max(window.kernel) <= limits.largest_kernel
    )
    if any(window.pads) and fits:
        return _edged(call, x, source, window, target) or means.of(source, window)
    return means.of(source, window)


def _are_tiles(source: Value, window: Window) -> bool:
    """Whether windows cover an image without overlaps and gaps."""
    return (
        window.kernel == window.stride
        and not any(window.pads)
        and not any(source.shape[1 + axis] % window.kernel[axis] for axis in (0, 1))
    )


def _tiles(call: OnnxCall, x: Real, source: Value, window: Window, target: Target) -> Value:
    """Return means of tiles, summed along one dimension after the other."""
    b, (count, height, width, channels) = call.b, source.shape
    high, wide = window.kernel
    lines, columns = height // high, width // wide
    value = rescale(b, source, 1.0, DType.INT32, (x.zero_point, 0))
    value = reshape(b, value, (count * lines, high, columns, wide * channels))
    value = b("REDUCE_SUM", value, axis=1)
    value = reshape(b, value, (count * lines, columns, wide, channels))
    value = requantize(b, b("REDUCE_SUM", value, axis=2), x.scale / (high * wide), target)
    return reshape(b, value, (count, lines, columns, channels))


def _edged(call: OnnxCall, x: Real, source: Value, window: Window, target: Target) -> Value | None:
    """Return means of windows of which some reach beyond the image, and count fewer elements.

    Sums come to one divisor, a common multiple of their counts. None where it is too large.
    """
    counts = _counts(source, window)
    call.need(bool(np.all(counts)), "a window of it has no element of its image")
    multiple = lcm(*np.unique(counts).tolist())
    if MOST[x.value.dtype] * multiple >= 1 << PRODUCT_BITS:
        return None
    b, sums = call.b, _sums(call, x, source, window)
    if sums.dtype is not DType.INT32:
        sums = rescale(b, sums, 1.0, DType.INT32)
    factors = b.constant(multiple // counts, DType.INT32)
    value = b("MUL", sums, factors, b.constant([0], DType.INT8))
    return requantize(b, value, x.scale / multiple, target)


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
