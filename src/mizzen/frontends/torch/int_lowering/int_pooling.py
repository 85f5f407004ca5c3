"""Means of windows of integers, rounded once wherever the NPU can."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.frontends.torch.geometry import need_batch
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.int_lowering.int_convolution import ACCUMULATORS
from mizzen.frontends.torch.int_lowering.int_rescale import as_target, requantize
from mizzen.frontends.torch.int_lowering.int_terms import Pending, Real, Target
from mizzen.frontends.torch.pooling import Window, adaptive, averaged, spatial_of
from mizzen.graph import DType, Value


def avg_pool2d(call: IntCall) -> Pending:
    """Return the mean of each window of [N,C,H,W]."""
    need_batch(call, spatial_of(call) + 2)
    x = call.real("self")
    call.need(call.arguments.get("divisor_override") is None, "it has a divisor of its own")
    return Pending(
        lambda target: averaged(call, x.value, x.zero_point, Means(call, x, target).emit),
        call.shape,
    )


def adaptive_avg_pool2d(call: IntCall) -> Pending:
    """Return the mean of windows that cut [N,C,H,W] into a given number of rows and columns."""
    need_batch(call, spatial_of(call) + 2)
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
