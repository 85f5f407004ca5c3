"""Means of windows, rounded once wherever the NPU can. Ref: TOSA 1.0, 2.3.2 AVG_POOL2D."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.frontends.arrangement.windows import Window
from mizzen.frontends.quantized.layers import ACCUMULATORS
from mizzen.frontends.quantized.scales import as_target, requantize, rescale
from mizzen.frontends.quantized.terms import Array, Real, Target
from mizzen.graph import DType, Value
from mizzen.ops import Builder
from mizzen.ops.limits import WindowLimits


@dataclass(frozen=True, slots=True)
class Means:
    """Means of windows over integers that stand for `x`, as a target's; padding is not counted."""

    b: Builder
    x: Real
    target: Target
    limits: WindowLimits

    def of(self, source: Value, window: Window) -> Value:
        """Return the means, rounded once: where the sums of windows fit a convolution with ones."""
        x, target, b = self.x, self.target, self.b
        same = (x.scale, x.zero_point) == (target.scale, target.zero_point)
        if same or any(window.pads) or not self._fits_convolution(window):
            return as_target(b, Real(self._pooled(source, window)), target)
        count = window.kernel[0] * window.kernel[1]
        return requantize(b, self._summed(source, window), x.scale / count, target)

    def at_borders(self, source: Value, window: Window) -> Value:
        """Return the means, rounded once in windows over padding too: weighted sums, in 32 bits."""
        lines, columns = (_taps(source, window, axis) for axis in (0, 1))
        counts = (lines[:, None] * columns)[None, :, :, None]
        whole = int(np.lcm.reduce(counts.reshape(-1)))
        greatest = whole << (8 * source.dtype.numpy.itemsize)
        if not any(window.pads) or greatest > 1 << 31 or not self._fits_convolution(window):
            return self.of(source, window)
        b, x = self.b, self.x
        sums = rescale(b, self._summed(source, window), 1.0, DType.INT32)
        weights = b.constant(whole // counts, DType.INT32)
        weighted = b("MUL", sums, weights, b.constant([0], DType.INT8))
        return requantize(b, weighted, x.scale / whole, self.target)

    def _fits_convolution(self, window: Window) -> bool:
        limits = self.limits
        return (
            max(window.stride) <= limits.longest_stride
            and max(window.kernel) <= limits.largest_kernel
        )

    def _pooled(self, source: Value, window: Window) -> Value:
        """Average in the scale of the input, in which the mean is rounded."""
        b = self.b
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
        b, channels = self.b, source.shape[3]
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


def _taps(source: Value, window: Window, axis: int) -> Array:
    """Return how many rows (columns) of the input each window sees."""
    extent, kernel, stride = source.shape[1 + axis], window.kernel[axis], window.stride[axis]
    before, after = window.pads[2 * axis : 2 * axis + 2]
    starts = np.arange(-before, extent + after - kernel + 1, stride)
    return np.minimum(starts + kernel, extent) - np.maximum(starts, 0)
