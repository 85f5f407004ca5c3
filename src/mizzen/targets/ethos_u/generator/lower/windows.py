"""Convolutions and pools: one NPU operation each, with the RESCALE and more behind it.

A convolution with a stride or dilation that the machine does not have is several, or one with a
kernel in which zeros stand; a transposed one is a convolution for each phase of its stride, which
writes every so manieth row and column: no zeros are multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.graph import DType, Value, integer_range
from mizzen.ops.data_layout import Pad
from mizzen.ops.tensor import (
    AvgPool2d,
    Conv2d,
    DepthwiseConv2d,
    MaxPool2d,
    TransposeConv2d,
    Weighted,
)
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, images, pixels
from mizzen.targets.ethos_u.generator.lower.finish import Finish, number, numbers
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View, rows
from mizzen.targets.ethos_u.generator.operations import (
    ChannelScales,
    Convolution,
    Kernel,
    Map,
    Pooling,
    Scale,
)
from mizzen.targets.ethos_u.machine.commands_values import AccFormat, PoolingMode, RoundMode

Weights = npt.NDArray[np.int16]

LONGEST_STRIDE, LONGEST_DILATION = 3, 2
TALLEST_KERNEL, LARGEST_KERNEL = 64, 64 * 64
"""Rows, and elements, of a convolution's kernel, with what is skipped by dilation.

Ref: Vela 5.2.0, SUPPORTED_OPS: conv weights must be at most 64 high, 64x64 in all."""

TALLEST_POOL, LARGEST_POOL = 256, 256 * 256
"""The same of pools without padding."""

PADDED_AVERAGE = 8
"""Rows and columns of an average with padding, at most. Ref: Vela 5.2.0, SUPPORTED_OPS."""

MOST_PIECES = 128
"""Operations that one layer is cut into at most."""

WEIGHT_LIMIT = 255
"""Magnitude of a weight less its zero point; weights have 9 bits."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the output along an axis, and what it reads: with what padding and stride.

    `extent` elements from `start` on, every `step`-th, are read; the output's are every
    `out_step`-th from `out_start` on.

    in_padding  whether windows see nothing of the input: what is read does not count
    """

    out_start: int
    out_step: int
    count: int
    start: int
    step: int
    extent: int
    stride: int
    before: int
    after: int
    in_padding: bool = False


def spans(size: int, count: int, kernel: int, stride: int, pads: tuple[int, int]) -> list[Span]:
    """Return the parts in which a window of `kernel` elements goes over `size` elements."""
    before, _ = pads
    first = max((before - kernel) // stride + 1, 0)
    last = min((size - 1 + before) // stride, count - 1)
    unseen = [*range(min(first, count)), *range(max(last + 1, first), count)]
    found = [Span(place, 1, 1, 0, 1, 1, 1, 0, 0, in_padding=True) for place in unseen]
    if first > last:
        return found
    skipped = max(first * stride - before, 0)
    margins = max(before - first * stride, 0), max(last * stride - before + kernel - size, 0)
    for row in _seeing(size - skipped, last - first + 1, kernel, stride, margins):
        found.append(replace(row, out_start=row.out_start + first, start=row.start + skipped))
    return found


def _seeing(size: int, count: int, kernel: int, stride: int, pads: tuple[int, int]) -> list[Span]:
    """Return the parts where every window sees something."""
    before, _ = pads
    if count == 1 or (stride <= LONGEST_STRIDE and max(pads) < kernel):
        used = (count - 1) * stride + kernel - before
        after = max(used - size, 0)
        extent = min(size, used)
        if extent > 0 and max(before, after) < kernel:
            return [Span(0, 1, count, 0, 1, extent, 1 if count == 1 else stride, before, after)]
    if kernel == 1 and not before and (count - 1) * stride < size:
        return [Span(0, 1, count, 0, stride, count, 1, 0, 0)]
    need(count <= MOST_PIECES, f"it strides over {stride} elements, and {count} times")
    found: list[Span] = []
    for place in range(count):
        first = place * stride - before
        low, high = max(first, 0), min(first + kernel, size)
        found.append(Span(place, 1, 1, low, 1, high - low, 1, low - first, first + kernel - high))
    return found


@dataclass(frozen=True, slots=True)
class Windows:
    """Where windows go: over an input [N, H, W, C], for how many rows and columns of results.

    turned  whether rows are columns of the values and columns rows: what is too tall is wide
    """

    shape: tuple[int, ...]
    size: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, ...]
    turned: bool = False

    def across(self) -> Windows:
        """Return the same windows with rows as columns."""
        count, height, width, depth = self.shape
        top, bottom, left, right = self.pads
        return Windows(
            (count, width, height, depth),
            (self.size[1], self.size[0]),
            (self.strides[1], self.strides[0]),
            (left, right, top, bottom),
            not self.turned,
        )

    def spans(self, kernel: tuple[int, int]) -> tuple[list[Span], list[Span]]:
        """Return the parts down and across in which a window goes over the input."""
        top, bottom, left, right = self.pads
        _, height, width, _ = self.shape
        down = spans(height, self.size[0], kernel[0], self.strides[0], (top, bottom))
        across = spans(width, self.size[1], kernel[1], self.strides[1], (left, right))
        need(len(down) * len(across) <= MOST_PIECES, "its strides are too long")
        return down, across

    def seen(self, view: View) -> View:
        """Return a value [N, H, W, C] as the windows see it."""
        return view.permuted((0, 2, 1, 3)) if self.turned else view


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A convolution in NPU's words: `weights` [O, KH, KW, I] less their zero point."""

    source: Value
    zero: int
    weights: Weights
    biases: npt.NDArray[np.int64]
    depthwise: bool
    dilation: tuple[int, int]

    @property
    def reach(self) -> tuple[int, int]:
        """Rows and columns from the first to the last of the kernel."""
        _, height, width, _ = self.weights.shape
        return (height - 1) * self.dilation[0] + 1, (width - 1) * self.dilation[1] + 1

    def across(self) -> Layer:
        """Return the layer with rows as columns."""
        weights = np.ascontiguousarray(self.weights.transpose(0, 2, 1, 3))
        return replace(self, weights=weights, dilation=self.dilation[::-1])

    def require_kernel(self) -> None:
        """Refuse a kernel that the machine does not have."""
        height, width = self.reach
        need(
            height <= TALLEST_KERNEL and height * width <= LARGEST_KERNEL,
            f"its kernel is {height}x{width}",
        )


@rule(Conv2d, DepthwiseConv2d)
def convolution(site: Site) -> Node:
    """CONV2D or DEPTHWISE_CONV2D, and the scale, clip and table behind it."""
    operation = site.operation
    assert isinstance(operation, Conv2d | DepthwiseConv2d)
    layer, finish = _layer(operation), site.finish(scales=True)
    scales = _scales(layer, finish)
    source, pads, channels = _padded(layer.source, operation.pad, layer.zero)
    if channels is not None:
        need(not layer.depthwise, "its input's channels are padded")
        first, count = channels
        layer = replace(layer, weights=layer.weights[..., first : first + count])
    layer, windows = _placed(
        replace(layer, source=source),
        Windows(source.shape, _sides(site.root), _pair(operation.stride), pads),
    )
    stage = Stage(site, layer, finish, scales)
    down, across = windows.spans(layer.reach)

    def write(emitter: Emitter, target: View) -> None:
        view = windows.seen(emitter.read(source)).reshaped(windows.shape)
        if view is None or not pixels(view):
            copy = emitter.copied(emitter.read(source), site.origin)
            view = windows.seen(copy).reshaped(windows.shape)
            assert view is not None
        if layer.reach == windows.strides == (1, 1) and not any(pads):
            stage.flat(emitter, view, target)
            return
        for image, made in zip(images(view), images(windows.seen(target)), strict=True):
            for y in down:
                for x in across:
                    stage.add(emitter, image, made, y, x, _seen(layer.weights, y, x))

    operations = (operation,) if source is operation.input else (operation, *_pads_of(operation))
    return site.node((source,), write, operations)


def _seen(weights: Weights, y: Span, x: Span) -> Weights:
    """Return weights of zero, of one row or column, where windows see nothing of the input."""
    if y.in_padding:
        weights = np.zeros_like(weights[:, :1])
    return np.zeros_like(weights[:, :, :1]) if x.in_padding else weights


def _sides(value: Value) -> tuple[int, int]:
    _, height, width, _ = value.shape
    return height, width


def _pair(numbers_: tuple[int, ...]) -> tuple[int, int]:
    first, second = numbers_
    return first, second


def _placed(layer: Layer, windows: Windows) -> tuple[Layer, Windows]:
    """Return a layer and its windows as the machine can have them, if it can."""
    if layer.reach[0] > TALLEST_KERNEL >= layer.reach[1]:
        layer, windows = layer.across(), windows.across()
    layer.require_kernel()
    return _folded(layer, windows) if _folds(layer, windows) else (layer, windows)


def _folds(layer: Layer, windows: Windows) -> bool:
    """Whether the columns that a long stride passes can be channels of one column."""
    stride = windows.strides[1]
    whole = not any(windows.pads[2:]) and not windows.shape[2] % stride and not windows.turned
    single = layer.dilation[1] == 1 and not layer.depthwise
    return stride > LONGEST_STRIDE and layer.reach[1] > 1 and whole and single


def _folded(layer: Layer, windows: Windows) -> tuple[Layer, Windows]:
    """Return a convolution with columns that a stride passes as channels of one."""
    outputs, height, width, channels = layer.weights.shape
    stride = windows.strides[1]
    columns = -(-width // stride)
    whole = np.zeros((outputs, height, columns * stride, channels), np.int16)
    whole[:, :, :width] = layer.weights
    weights = whole.reshape(outputs, height, columns, stride * channels)
    shape = (*windows.shape[:2], windows.shape[2] // stride, stride * channels)
    seen = replace(windows, shape=shape, strides=(windows.strides[0], 1))
    return replace(layer, weights=weights), seen


def _pads_of(operation: Conv2d | DepthwiseConv2d) -> tuple[Any, ...]:
    producer = operation.input.producer
    return () if producer is None else (producer,)


def _layer(operation: Weighted) -> Layer:
    """Read a convolution's constants."""
    weights = operation.weight.constant
    need(weights is not None, "its weights are computed")
    assert weights is not None
    values = weights.astype(np.int16) - np.int16(number(operation.weight_zp))
    need(int(np.abs(values).max(initial=0)) <= WEIGHT_LIMIT, "its weights have more than 9 bits")
    depthwise = isinstance(operation, DepthwiseConv2d)
    if depthwise:
        values, depthwise = _by_channel(values)
    if isinstance(operation, TransposeConv2d):
        dilation = (1, 1)
    else:
        assert isinstance(operation, Conv2d | DepthwiseConv2d)
        values, dilation = _dilated(values, (operation.dilation[0], operation.dilation[1]))
    channels = values.shape[0]
    biases = np.broadcast_to(numbers(operation.bias), channels).copy()
    return Layer(operation.input, number(operation.input_zp), values, biases, depthwise, dilation)


def _by_channel(values: Weights) -> tuple[Weights, bool]:
    """Return depthwise weights [KH, KW, C, M] as [C*M, KH, KW, I], and whether they still are.

    With one channel, or several results of each, it is a convolution; of several channels one in
    whose weights most are zero.
    """
    height, width, channels, multiplier = values.shape
    if multiplier == 1 and channels > 1:
        return values.transpose(2, 0, 1, 3), True
    spread = np.zeros((channels, multiplier, height, width, channels), np.int16)
    for channel in range(channels):
        spread[channel, ..., channel] = values[:, :, channel].transpose(2, 0, 1)
    return spread.reshape(channels * multiplier, height, width, channels), False


def _dilated(values: Weights, dilation: tuple[int, int]) -> tuple[Weights, tuple[int, int]]:
    """Return weights with zeros where the machine does not skip so far itself."""
    inside: list[int] = []
    for axis, wanted in enumerate(dilation):
        own = 1 if values.shape[1 + axis] == 1 else wanted
        kept = gcd(own, LONGEST_DILATION)
        inside.append(own // kept)
    if inside == [1, 1]:
        kernel = values.shape[1:3]
        one = tuple(1 if size == 1 else step for size, step in zip(kernel, dilation, strict=True))
        return values, (one[0], one[1])
    outputs, height, width, inputs = values.shape
    shape = (outputs, (height - 1) * inside[0] + 1, (width - 1) * inside[1] + 1, inputs)
    spread = np.zeros(shape, np.int16)
    spread[:, :: inside[0], :: inside[1]] = values
    kept = [
        1 if size == 1 else step // factor
        for size, step, factor in zip((height, width), dilation, inside, strict=True)
    ]
    return spread, (kept[0], kept[1])


def _scales(layer: Layer, finish: Finish) -> ChannelScales:
    channels = layer.weights.shape[0]
    need(len(finish.multipliers) in (1, channels), "its channels change their places")
    return ChannelScales(
        layer.biases,
        np.broadcast_to(finish.multipliers, channels).copy(),
        np.broadcast_to(finish.shifts, channels).copy(),
    )


def _padded(
    value: Value, pads: tuple[int, ...], zero: int
) -> tuple[Value, tuple[int, int, int, int], tuple[int, int] | None]:
    """Return what a convolution reads and with what padding, past a PAD with its zero point.

    Also which of the channels that it then sees are not the PAD's, if that pads channels.
    """
    top, bottom, left, right = pads
    producer = value.producer
    own = (top, bottom, left, right)
    if not isinstance(producer, Pad) or number(producer.pad_const) != zero:
        return value, own, None
    amounts = numbers(producer.padding).tolist()
    if len(amounts) != 8 or any(amounts[:2]):
        return value, own, None
    source = producer.operand
    whole = (top + amounts[2], bottom + amounts[3], left + amounts[4], right + amounts[5])
    channels = (amounts[6], source.shape[3]) if any(amounts[6:]) else None
    return source, whole, channels


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """What all parts of one convolution share."""

    site: Site
    layer: Layer
    finish: Finish
    scales: ChannelScales

    def add(
        self, emitter: Emitter, image: View, made: View, y: Span, x: Span, weights: Weights
    ) -> None:
        """Add the operation of one part of an image [H, W, C]."""
        _, height, width, _ = weights.shape
        down, across = self.layer.dilation
        kernel = Kernel(
            height,
            width,
            y.stride,
            x.stride,
            1 if height == 1 else down,
            1 if width == 1 else across,
            y.before,
            x.before,
            y.after,
            x.after,
        )
        ifm = emitter.map(part(image, y, x), self.layer.zero)
        ofm = emitter.map(result(made, y, x), self.finish.zero_point)
        emitter.operations.append(self._operation(ifm, ofm, kernel, weights))

    def flat(self, emitter: Emitter, source: View, target: View) -> None:
        """Add a convolution of single elements, whatever rows and columns they are in."""
        for one, other in rows(source, target):
            self.emit(emitter, one, other)

    def emit(self, emitter: Emitter, image: View, made: View) -> None:
        """Add a convolution of single elements of an image [H, W, C]."""
        ifm = emitter.map(image, self.layer.zero)
        ofm = emitter.map(made, self.finish.zero_point)
        emitter.operations.append(self._operation(ifm, ofm, Kernel(), self.layer.weights))

    def _operation(self, ifm: Map, ofm: Map, kernel: Kernel, weights: Weights) -> Convolution:
        wide = ifm.dtype.itemsize == 2
        return Convolution(
            self.site.origin,
            ifm,
            ofm,
            kernel,
            weights,
            self.scales,
            self.finish.activation,
            depthwise=self.layer.depthwise,
            rounding=self.finish.rounding,
            accumulators=AccFormat.I40 if wide else AccFormat.I32,
        )


def part(image: View, y: Span, x: Span) -> View:
    """Return what a part reads of an image [H, W, C]."""
    rows = image.part(0, y.start, image.shape[0] - y.start).stepped(0, y.step, y.extent)
    return rows.part(1, x.start, rows.shape[1] - x.start).stepped(1, x.step, x.extent)


def result(made: View, y: Span, x: Span) -> View:
    """Return what a part writes of an image [H, W, C]."""
    rows = made.part(0, y.out_start, made.shape[0] - y.out_start).stepped(0, y.out_step, y.count)
    return rows.part(1, x.out_start, rows.shape[1] - x.out_start).stepped(1, x.out_step, x.count)


@rule(MaxPool2d, AvgPool2d)
def pool(site: Site) -> Node:
    """MAX_POOL2D or AVG_POOL2D, and the clip and table behind it."""
    operation = site.operation
    assert isinstance(operation, MaxPool2d | AvgPool2d)
    finish = site.finish(scales=False)
    average = isinstance(operation, AvgPool2d)
    zeros = (0, 0)
    source, pads = operation.input, operation.pad
    if isinstance(operation, AvgPool2d):
        zeros = number(operation.input_zp), number(operation.output_zp)
    elif source.dtype in (DType.INT8, DType.INT16):
        source, pads, channels = _padded(source, pads, integer_range(source.dtype)[0])
        if channels is not None:
            source, pads = operation.input, operation.pad
    height, width = operation.kernel
    padded = any(pads)
    windows = Windows(source.shape, _sides(site.root), _pair(operation.stride), pads)
    if height > TALLEST_POOL >= width:
        height, width, windows = width, height, windows.across()
    need(height <= TALLEST_POOL and height * width <= LARGEST_POOL, "its window is too large")
    need(
        not average or not padded or max(height, width) <= PADDED_AVERAGE,
        "its padded window is large",
    )
    down, across = windows.spans((height, width))
    mode = PoolingMode.AVERAGE if average else PoolingMode.MAX
    scale = reciprocal(height * width) if average else Scale(1, 0)

    def write(emitter: Emitter, target: View) -> None:
        """Append the operations that write the result into `target`."""
        view = emitter.read(source)
        if not pixels(view):
            view = emitter.copied(view, site.origin)
        seen = windows.seen(view), windows.seen(target)
        for image, made in zip(*map(images, seen), strict=True):
            for y in down:
                for x in across:
                    window = Kernel(
                        height,
                        width,
                        y.stride,
                        x.stride,
                        1,
                        1,
                        y.before,
                        x.before,
                        y.after,
                        x.after,
                    )
                    own = Scale(1, 0) if any(window.pads) else scale
                    emitter.operations.append(
                        Pooling(
                            site.origin,
                            mode,
                            emitter.map(part(image, y, x), zeros[0]),
                            emitter.map(result(made, y, x), zeros[1]),
                            window,
                            own,
                            finish.activation,
                            rounding=RoundMode.NATURAL,
                        )
                    )

    return site.node((source,), write)


def reciprocal(count: int) -> Scale:
    """Return the scale that divides by a number as TOSA does, rounded once.

    Ref: TOSA 1.0, 1.11.1 reciprocal_scale.
    """
    bits = (count - 1).bit_length()
    return Scale((((1 << 30) + 1) << bits) // count, 30 + bits)


@rule(TransposeConv2d)
def transposed(site: Site) -> Node:
    """TRANSPOSE_CONV2D: a convolution for each phase of its stride."""
    operation = site.operation
    assert isinstance(operation, TransposeConv2d)
    layer, finish = _layer(operation), site.finish(scales=True)
    layer.require_kernel()
    stage = Stage(site, layer, finish, _scales(layer, finish))
    top, _, left, _ = operation.out_pad
    _, height, width, _ = site.root.shape
    kernel = layer.weights.shape[1:3]
    down = list(phases(operation.input.shape[1], height, kernel[0], operation.stride[0], top))
    across = list(phases(operation.input.shape[2], width, kernel[1], operation.stride[1], left))
    need(len(down) * len(across) <= MOST_PIECES, "its strides are too long")

    def write(emitter: Emitter, target: View) -> None:
        view = emitter.read(operation.input)
        if not pixels(view):
            view = emitter.copied(view, site.origin)
        for image, made in zip(images(view), images(target), strict=True):
            for y, taps_y in down:
                for x, taps_x in across:
                    weights = layer.weights[:, taps_y][:, :, taps_x]
                    stage.add(emitter, image, made, y, x, _one(weights))

    return site.node((operation.input,), write)


def _one(weights: Weights) -> Weights:
    """Return weights, one of zero where there are none."""
    outputs, height, width, inputs = weights.shape
    if height and width:
        return np.ascontiguousarray(weights)
    return np.zeros((outputs, max(height, 1), max(width, 1), inputs), np.int16)


def phases(
    size: int, count: int, kernel: int, stride: int, before: int
) -> Iterator[tuple[Span, list[int]]]:
    """Return the phases of a transposed convolution along an axis, and the kernel's taps of each.

    Output `q * stride + phase + before` is the sum over taps j of input `q - j` times weight
    `phase + stride * j`: a convolution with the taps backwards.
    """
    for phase in range(stride):
        taps = list(range(phase, kernel, stride))[::-1]
        reach = max(len(taps), 1)
        first = -((phase + before) // stride)
        start = first * stride + phase + before
        places = range(start, count, stride)
        if not places:
            continue
        # Windows reach from q - (reach - 1) to q; those beyond the input are cut to what they see.
        yield from _phase(size, first, reach, taps, places, stride)


def _phase(
    size: int, first: int, reach: int, taps: list[int], places: range, stride: int
) -> Iterator[tuple[Span, list[int]]]:
    run: list[int] = []

    def span(quotients: list[int]) -> tuple[Span, list[int]]:
        low, high = quotients[0] - (reach - 1), quotients[-1]
        start, stop = max(low, 0), min(high, size - 1)
        out = places[quotients[0] - first]
        return (
            Span(
                out, stride, len(quotients), start, 1, stop - start + 1, 1, start - low, high - stop
            ),
            taps,
        )

    for index in range(len(places)):
        quotient = first + index
        sees = quotient - (reach - 1) < size and quotient >= 0
        if sees:
            run.append(quotient)
            continue
        if run:
            yield span(run)
            run = []
        yield Span(places[index], 1, 1, 0, 1, 1, 1, 0, 0), []
    if run:
        yield span(run)
