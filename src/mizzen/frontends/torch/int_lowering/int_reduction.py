"""Sums and means along dimensions, and of windows, rounded once wherever the NPU can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from mizzen.frontends.arrangement.choice import reduced
from mizzen.frontends.arrangement.movement import channels_first, image, permuted, reshape
from mizzen.frontends.quantized.scales import as_target, centered, requantize
from mizzen.frontends.quantized.terms import Pending, Real, Target, Term, Wide
from mizzen.frontends.torch.choice import amax, amin
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.int_lowering.int_convolution import ACCUMULATORS, IntLayer
from mizzen.frontends.torch.windows import POINTWISE, Window, adaptive, averaged
from mizzen.graph import DType, Value


def sum_(call: IntCall) -> Pending:
    """Return the sum along dimensions."""
    x = call.real("self")
    return Pending(lambda target: _summed(call, x, 1, target), call.shape)


def mean(call: IntCall) -> Pending:
    """Return the mean along dimensions."""
    x, axes = call.real("self"), call.axes()
    count = prod(x.value.shape[axis] for axis in axes)

    def emit(target: Target) -> Value:
        if _is_plane(call, x, axes):
            return _plane(call, x, target)
        return _summed(call, x, count, target)

    return Pending(emit, call.shape)


def _summed(call: IntCall, x: Real, count: int, target: Target) -> Value:
    value = reduced(call.b, "REDUCE_SUM", centered(call.b, x), call.axes())
    return reshape(call.b, requantize(call.b, value, x.scale / count, target), call.shape)


def _is_plane(call: IntCall, x: Real, axes: Sequence[int]) -> bool:
    """Whether the dimensions are the whole of each plane of [N,C,H,W], and fit a window."""
    return (
        x.value.type.rank == 4
        and tuple(axes) == (2, 3)
        and max(x.value.shape[2:]) <= call.context.limits.largest_kernel
    )


def _plane(call: IntCall, x: Real, target: Target) -> Value:
    source = image(call.b, x.value, 2)
    _, height, width, _ = source.shape
    value = Means(call, x, target).emit(source, Window((height, width)))
    return channels_first(call.b, value, call.shape)


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
    b, x = call.b, call.real("self")
    value = x.value
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
        flat = reshape(b, last, (1, last.type.elements // size, 1, size))
        ones = np.tril(np.ones((size, size), np.int64)).reshape(size, 1, 1, size)
        bias = np.zeros(size, np.int64)
        layer = IntLayer(b, x, ones, bias, np.array([x.scale]), target)
        value = reshape(b, layer.product("CONV2D", flat, ones, POINTWISE), last.shape)
        return permuted(b, value, [order.index(dim) for dim in range(rank)])

    return Pending(emit, call.shape)


def avg_pool2d(call: IntCall) -> Pending:
    """Return the mean of each window of [N,C,H,W] or [C,H,W]."""
    x = call.real("self")
    call.need(call.arguments.get("divisor_override") is None, "it has a divisor of its own")
    return Pending(
        lambda target: averaged(call, x.value, x.zero_point, Means(call, x, target).emit),
        call.shape,
    )


def adaptive_avg_pool2d(call: IntCall) -> Pending:
    """Return the mean of windows that cut [N,C,H,W] into a given number of rows and columns."""
    x = call.real("self")
    return Pending(lambda target: adaptive(call, x.value, Means(call, x, target).emit), call.shape)


@dataclass(frozen=True, slots=True)
class Means:
    """Means of windows over integers that stand for `x`, as a target's; padding is not counted."""

    call: IntCall
    x: Real
    target: Target

    def emit(self, source: Value, window: Window) -> Value:
        """Return the means, rounded once: where the sums of windows fit a convolution with ones."""
        x, target, b = self.x, self.target, self.call.b
        same = (x.scale, x.zero_point) == (target.scale, target.zero_point)
        if same or not self._fits_convolution(window):
            return as_target(b, Real(self._pooled(source, window)), target)
        count = window.kernel[0] * window.kernel[1]
        return requantize(b, self._summed(source, window), x.scale / count, target)

    def _fits_convolution(self, window: Window) -> bool:
        limits = self.call.context.limits
        return (
            not any(window.pads)
            and max(window.stride) <= limits.longest_stride
            and max(window.kernel) <= limits.largest_kernel
        )

    def _pooled(self, source: Value, window: Window) -> Value:
        """Average in the scale of the input, in which the mean is rounded."""
        b = self.call.b
        zero = b.constant([self.x.zero_point], source.dtype)
        return b(
            "AVG_POOL2D",
            source,
            zero,
            zero,
            acc_type=DType.INT32,
            quantization=self.x.quantization,
            **window.attributes,
        )

    def _summed(self, source: Value, window: Window) -> Value:
        """Sum by a convolution with ones, exactly."""
        b, channels = self.call.b, source.shape[3]
        return b(
            "DEPTHWISE_CONV2D",
            source,
            b.constant(np.ones((*window.kernel, channels, 1), np.int8), DType.INT8),
            b.constant(np.zeros(channels, np.int64), ACCUMULATORS[source.dtype]),
            b.constant([self.x.zero_point], source.dtype),
            b.constant([0], DType.INT8),
            stride=window.stride,
            pad=window.pads,
        )
