"""Pooling: maximum and average over windows, adaptive pooling."""

from __future__ import annotations

from mizzen.frontends.torch.context import Call, lowers
from mizzen.frontends.torch.geometry import (
    Pads,
    covering,
    cuts_of,
    fit,
    regular_step,
    window_of,
    window_pair,
)
from mizzen.frontends.torch.lowering.convolution import (
    TO_CHANNELS_FIRST,
    TO_CHANNELS_LAST,
    reshape,
    slice_,
    transpose,
)
from mizzen.frontends.torch.lowering.rescale import requantize
from mizzen.frontends.torch.values import Pending, Real, Target
from mizzen.graph import DType, Value
from mizzen.ops import Builder


@lowers("aten.max_pool2d.default", "aten.max_pool1d.default")
def maximum(call: Call) -> Pending:
    """Greatest of each window of [N,C,H,W]."""
    x = call.real("self")
    kernel, stride, pads, dilation = window_of(call)
    call.need(dilation == (1, 1), "its window is dilated", "pool without dilation")

    def emit(target: Target) -> Value:
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
        value = _mean(b, source, kernel, stride, pad, x)
        return _back(b, requantize(b, value, x.scale, target, x.zero_point), call, target)

    return Pending(emit, call.shape)


@lowers("aten.adaptive_avg_pool2d.default", "aten.adaptive_avg_pool1d.default")
def adaptive_average(call: Call) -> Pending:
    """Mean of windows that cut [N,C,H,W] into a given number of rows and columns."""
    x = call.real("self")

    def emit(target: Target) -> Value:
        b = call.b
        source = _channels_last(b, x.value)
        sizes = window_pair(call["output_size"])
        rows = cuts_of(source.shape[1], sizes[0])
        columns = cuts_of(source.shape[2], sizes[1])
        value = _tiles(b, source, rows, columns, x)
        return _back(b, requantize(b, value, x.scale, target, x.zero_point), call, target)

    return Pending(emit, call.shape)


def _tiles(
    b: Builder,
    source: Value,
    rows: list[tuple[int, int]],
    columns: list[tuple[int, int]],
    x: Real,
) -> Value:
    """Average each tile; one operation where all tiles are of one size and in step."""
    row, column = regular_step(rows), regular_step(columns)
    if row and column:
        kernel, stride = (row[0], column[0]), (row[1], column[1])
        source, pad = fit(b, source, kernel, stride, (1, 1), (0, 0, 0, 0))
        return _mean(b, source, kernel, stride, pad, x)
    lines = [_joined(b, [_tile(b, source, line, cut, x) for cut in columns], 2, x) for line in rows]
    return _joined(b, lines, 1, x)


def _tile(b: Builder, source: Value, line: tuple[int, int], cut: tuple[int, int], x: Real) -> Value:
    part = slice_(b, source, 1, line[0], line[1] - line[0])
    part = slice_(b, part, 2, cut[0], cut[1] - cut[0])
    kernel = (part.shape[1], part.shape[2])
    return _mean(b, part, kernel, (1, 1), (0, 0, 0, 0), x)


def _joined(b: Builder, parts: list[Value], axis: int, x: Real) -> Value:
    if len(parts) == 1:
        return parts[0]
    return b("CONCAT", *parts, axis=axis, quantization=x.quantization)


def _mean(
    b: Builder,
    source: Value,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pad: Pads,
    x: Real,
) -> Value:
    zero = b.constant([x.zero_point], source.dtype)
    return b(
        "AVG_POOL2D",
        source,
        zero,
        zero,
        kernel=kernel,
        stride=stride,
        pad=pad,
        acc_type=DType.INT32,
        quantization=x.quantization,
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
