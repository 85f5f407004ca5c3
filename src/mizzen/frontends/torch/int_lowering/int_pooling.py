"""Pooling: maximum and average over windows, adaptive pooling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.frontends.torch.context import Call, lowers
from mizzen.frontends.torch.geometry import (
    Pads,
    covering,
    cuts_of,
    fit,
    need_batch,
    regular_step,
    window_of,
    window_pair,
)
from mizzen.frontends.torch.int_lowering.int_convolution import (
    ACCUMULATORS,
    TO_CHANNELS_FIRST,
    TO_CHANNELS_LAST,
    reshape,
    slice_,
    transpose,
)
from mizzen.frontends.torch.int_lowering.rescale import requantize
from mizzen.frontends.torch.values import Pending, Real, Target
from mizzen.graph import DType, Value
from mizzen.ops import Builder

LONGEST_STRIDE, LARGEST_KERNEL = 3, 64
"""Of depthwise convolutions on Ethos-U. Ref: Vela 5.2.0, ``vela --supported-ops-report``."""


@lowers("aten.max_pool2d.default", "aten.max_pool1d.default")
def maximum(call: Call) -> Pending:
    """Greatest of each window of [N,C,H,W]."""
    need_batch(call)
    x = call.real("self")
    kernel, stride, pads, dilation = window_of(call)
    call.need(dilation == (1, 1), "its window is dilated", "pool without dilation")

    def emit(target: Target) -> Value:
        """Add the pooling, and what gives the integers of `target`."""
        b = call.b
        source = _channels_last(b, x.value)
        source, pad = covering(call, b, source, kernel, stride, pads)
        value = b(
            "MAX_POOL2D",
            source,
            kernel=kernel,
            stride=stride,
            pad=pad,
            quantization=x.quantization,
        )
        return _back(b, requantize(b, value, x.scale, target, x.zero_point), call, target)

    return Pending(emit, call.shape)


@lowers("aten.avg_pool2d.default", "aten.avg_pool1d.default")
def average(call: Call) -> Pending:
    """Mean of each window of [N,C,H,W]; padding counts only where the model says so."""
    need_batch(call)
    x = call.real("self")
    kernel, stride, pads, _ = window_of(call)
    counted = bool(call["count_include_pad"]) and any(pads)
    call.need(call.arguments.get("divisor_override") is None, "it has a divisor of its own")

    def emit(target: Target) -> Value:
        b = call.b
        source = _channels_last(b, x.value)
        inner = pads
        if counted:
            source, inner = _padded(b, source, pads, x), (0, 0, 0, 0)
        source, pad = covering(call, b, source, kernel, stride, inner)
        means = Means(x, kernel, stride, pad)
        return _back(b, means.emit(b, source, target), call, target)

    return Pending(emit, call.shape)


@lowers("aten.adaptive_avg_pool2d.default", "aten.adaptive_avg_pool1d.default")
def adaptive_average(call: Call) -> Pending:
    """Mean of windows that cut [N,C,H,W] into a given number of rows and columns."""
    need_batch(call)
    x = call.real("self")

    def emit(target: Target) -> Value:
        b = call.b
        source = _channels_last(b, x.value)
        sizes = window_pair(call["output_size"])
        rows = cuts_of(source.shape[1], sizes[0])
        columns = cuts_of(source.shape[2], sizes[1])
        value = _tiles(b, source, rows, columns, x, target)
        return _back(b, value, call, target)

    return Pending(emit, call.shape)


def _tiles(
    b: Builder,
    source: Value,
    rows: list[tuple[int, int]],
    columns: list[tuple[int, int]],
    x: Real,
    target: Target,
) -> Value:
    """Average each tile; one operation where all tiles are of one size and in step."""
    row, column = regular_step(rows), regular_step(columns)
    if row and column:
        kernel, stride = (row[0], column[0]), (row[1], column[1])
        source, pad = fit(b, source, kernel, stride, (1, 1), (0, 0, 0, 0))
        return Means(x, kernel, stride, pad).emit(b, source, target)
    lines = [
        _joined(b, [_tile(b, source, line, cut, x, target) for cut in columns], 2, target)
        for line in rows
    ]
    return _joined(b, lines, 1, target)


def _tile(
    b: Builder,
    source: Value,
    line: tuple[int, int],
    cut: tuple[int, int],
    x: Real,
    target: Target,
) -> Value:
    part = slice_(b, source, 1, line[0], line[1] - line[0])
    part = slice_(b, part, 2, cut[0], cut[1] - cut[0])
    return Means(x, (part.shape[1], part.shape[2])).emit(b, part, target)


def _joined(b: Builder, parts: list[Value], axis: int, target: Target) -> Value:
    if len(parts) == 1:
        return parts[0]
    return b("CONCAT", *parts, axis=axis, quantization=target.quantization)


@dataclass(frozen=True, slots=True)
class Means:
    """Means of windows over [N,H,W,C] that stand for `x`; padding (top, bottom, left, right) is
    not counted."""

    x: Real
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pad: Pads = (0, 0, 0, 0)

    def emit(self, b: Builder, source: Value, target: Target) -> Value:
        """Return the means as the target's integers, rounded once wherever the NPU can."""
        x = self.x
        same = (x.scale, x.zero_point) == (target.scale, target.zero_point)
        if same or not self._fits_convolution():
            return requantize(b, self._pooled(b, source), x.scale, target, x.zero_point)
        count = self.kernel[0] * self.kernel[1]
        return requantize(b, self._summed(b, source), x.scale / count, target)

    def _fits_convolution(self) -> bool:
        return (
            not any(self.pad)
            and max(self.stride) <= LONGEST_STRIDE
            and max(self.kernel) <= LARGEST_KERNEL
        )

    def _pooled(self, b: Builder, source: Value) -> Value:
        """Average in the scale of the input, in which the mean is rounded."""
        zero = b.constant([self.x.zero_point], source.dtype)
        return b(
            "AVG_POOL2D",
            source,
            zero,
            zero,
            kernel=self.kernel,
            stride=self.stride,
            pad=self.pad,
            acc_type=DType.INT32,
            quantization=self.x.quantization,
        )

    def _summed(self, b: Builder, source: Value) -> Value:
        """Sum by a convolution with ones, exactly."""
        channels = source.shape[3]
        return b(
            "DEPTHWISE_CONV2D",
            source,
            b.constant(np.ones((*self.kernel, channels, 1), np.int8), DType.INT8),
            b.constant(np.zeros(channels, np.int64), ACCUMULATORS[source.dtype]),
            b.constant([self.x.zero_point], source.dtype),
            b.constant([0], DType.INT8),
            stride=self.stride,
            pad=self.pad,
        )


def _padded(b: Builder, source: Value, pads: Pads, x: Real) -> Value:
    padding = [0, 0, pads[0], pads[1], pads[2], pads[3], 0, 0]
    zero = b.constant([x.zero_point], source.dtype)
    return b("PAD", source, b.shape(padding), zero, quantization=x.quantization)


def _channels_last(b: Builder, value: Value) -> Value:
    if value.type.rank == 3:
        count, channels, width = value.shape
        value = reshape(b, value, (count, channels, 1, width))
    return transpose(b, value, TO_CHANNELS_LAST)


def _back(b: Builder, value: Value, call: Call, target: Target) -> Value:
    return reshape(b, transpose(b, value, TO_CHANNELS_FIRST), call.shape, target)
