"""Convolutions and pools: one NPU operation each, with the RESCALE and more behind it.

A convolution with a stride or dilation that the machine does not have is several, or one with a
kernel in which zeros stand; a transposed one is a convolution for each phase of its stride, which
writes every so manieth row and column: no zeros are multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np
import numpy.typing as npt

from mizzen.graph import DType, Operation, Value
from mizzen.ops.data_layout import Pad, Slice
from mizzen.ops.tensor import (
    Conv2d,
    Conv3d,
    DepthwiseConv2d,
    TransposeConv2d,
    Weighted,
    Windowed,
)
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, images
from mizzen.targets.ethos_u.generator.lower.finish import Finish, number, numbers
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.spans import (
    LONGEST_STRIDE,
    MOST_PIECES,
    Span,
    Windows,
)
from mizzen.targets.ethos_u.generator.lower.views import View, pixels, rows
from mizzen.targets.ethos_u.generator.operations import (
    ChannelScales,
    Convolution,
    Kernel,
    Map,
)
from mizzen.targets.ethos_u.machine.commands_values import AccFormat, Arch

Weights = npt.NDArray[np.int16]

MOST_SHORT_MULTIPLIER = (1 << 15) - 1
"""Of scale records where accumulators have 48 bits. Ref: scale records of Ethos-U85."""

LONGEST_DILATION = 2
TALLEST_KERNEL, LARGEST_KERNEL = 64, 64 * 64
"""Rows, and elements, of a convolution's kernel, with what is skipped by dilation.

Ref: Vela 5.2.0, SUPPORTED_OPS: conv weights must be at most 64 high, 64x64 in all."""

TALLEST_POOL, LARGEST_POOL = 256, 256 * 256
"""The same of pools without padding."""

WEIGHT_LIMIT = 255
"""Magnitude of a weight less its zero point; weights have 9 bits."""


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
        fits = height <= TALLEST_KERNEL and height * width <= LARGEST_KERNEL
        need(fits, f"its kernel is {height}x{width}")


def convolved(site: Site, operation: Conv2d | DepthwiseConv2d, phases: tuple[int, int]) -> Node:
    """Return the node of a convolution whose kernel the machine has.

    phases  those of its rows and columns
    """
    layer, finish = layer_of(operation, phases), site.finish(scales=True)
    scales = scales_of(layer, finish)
    source, pads, channels = _past_pads(layer, operation.pad, site.arch)
    if channels is not None:
        first, count = channels
        layer = replace(layer, weights=layer.weights[..., first : first + count])
    layer, windows = placed(
        replace(layer, source=source),
        Windows(source.shape, sides(site.root), pair(operation.stride), pads, phases),
    )
    stage = Stage(site, layer, finish, scales)
    down, across = windows.spans(layer.reach, layer.dilation)

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
            stage.over(emitter, image, made, down, across)

    operations = (operation,) if source is operation.input else (operation, *_pads_of(operation))
    return site.node((source,), write, operations)


def seen_weights(weights: Weights, y: Span, x: Span) -> Weights:
    """Return weights of what windows see: zero, of one row or column, if that is nothing."""
    _, height, width, _ = weights.shape
    above, below = y.skipped
    left, right = x.skipped
    weights = weights[:, above : height - below, left : width - right]
    if y.in_padding:
        weights = np.zeros_like(weights[:, :1])
    if x.in_padding:
        weights = np.zeros_like(weights[:, :, :1])
    return np.ascontiguousarray(weights)


def sides(value: Value) -> tuple[int, int]:
    """Return rows and columns of a value [N, H, W, C]."""
    _, height, width, _ = value.shape
    return height, width


def pair(numbers_: Sequence[int]) -> tuple[int, int]:
    """Return two numbers as such."""
    first, second = numbers_
    return first, second


def placed(layer: Layer, windows: Windows) -> tuple[Layer, Windows]:
    """Return a layer and its windows as the machine can have them, if it can."""
    layer, windows = upright(layer, windows)
    return _folded(layer, windows) if _folds(layer, windows) else (layer, windows)


def upright(layer: Layer, windows: Windows) -> tuple[Layer, Windows]:
    """Return a layer and its windows with rows as columns where they are too tall else."""
    if layer.reach[0] > TALLEST_KERNEL >= layer.reach[1]:
        layer, windows = layer.across(), windows.across()
    layer.require_kernel()
    return layer, windows


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


def _pads_of(operation: Conv2d | DepthwiseConv2d) -> tuple[Operation, ...]:
    """Return the operations before a convolution that are done with it: a PAD, and its SLICE."""
    producer = operation.input.producer
    if isinstance(producer, Slice) and producer.operand.producer is not None:
        return producer, producer.operand.producer
    return () if producer is None else (producer,)


def layer_of(operation: Weighted, phases: tuple[int, int] = (1, 1)) -> Layer:
    """Read a convolution's constants; of a CONV3D the one slice of its kernel.

    phases  rows, and columns, from one that it sees to the next: it is dilated by less
    """
    weights = operation.weight.constant
    need(weights is not None, "its weights are computed")
    assert weights is not None
    values = weights.astype(np.int16) - np.int16(number(operation.weight_zp))
    need(int(np.abs(values).max(initial=0)) <= WEIGHT_LIMIT, "its weights have more than 9 bits")
    depthwise = isinstance(operation, DepthwiseConv2d)
    if depthwise:
        values, depthwise = _by_channel(values)
    if values.ndim == 5:
        need(values.shape[1] == 1, "its kernel has several slices")
        values = values[:, 0]
    dilation = (1, 1)
    if isinstance(operation, Windowed):
        down, across = operation.dilation[-2:]
        values, dilation = _dilated(values, (down // phases[0], across // phases[1]))
    channels = values.shape[0]
    biases = np.broadcast_to(numbers(operation.bias), channels).copy()
    return Layer(operation.input, number(operation.input_zp), values, biases, depthwise, dilation)


def layer_of_slices(operation: Conv3d, left_out: tuple[int, int]) -> Layer:
    """Read a CONV3D's constants as those of a convolution of slices side by side as channels.

    left_out  slices of the kernel at its start and its end that see nothing
    """
    weights = operation.weight.constant
    need(weights is not None, "its weights are computed")
    assert weights is not None
    values = weights.astype(np.int16) - np.int16(number(operation.weight_zp))
    need(int(np.abs(values).max(initial=0)) <= WEIGHT_LIMIT, "its weights have more than 9 bits")
    values = values[:, left_out[0] : values.shape[1] - left_out[1]]
    outputs, _, height, width, _ = values.shape
    flat = values.transpose(0, 2, 3, 1, 4).reshape(outputs, height, width, -1)
    down, across = operation.dilation[1:]
    flat, dilation = _dilated(np.ascontiguousarray(flat), (down, across))
    biases = np.broadcast_to(numbers(operation.bias), outputs).copy()
    return Layer(operation.input, number(operation.input_zp), flat, biases, False, dilation)


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


def scales_of(layer: Layer, finish: Finish) -> ChannelScales:
    """Return bias, multiplier and shift of each channel."""
    channels = layer.weights.shape[0]
    need(len(finish.multipliers) in (1, channels), "its channels change their places")
    return ChannelScales(
        layer.biases,
        np.broadcast_to(finish.multipliers, channels).copy(),
        np.broadcast_to(finish.shifts, channels).copy(),
    )


def _past_pads(
    layer: Layer, pad: tuple[int, ...], arch: Arch
) -> tuple[Value, tuple[int, int, int, int], tuple[int, int] | None]:
    """Return the same of a layer, but past no PAD of channels where each has its own weights."""
    whole, less = _uncropped(layer.source, pad) if arch is Arch.U85 else (layer.source, pad)
    source, pads, channels = padded_by(whole, less, layer.zero)
    if source is whole:
        source, pads, channels = padded_by(layer.source, pad, layer.zero)
    if channels is None or not layer.depthwise:
        return source, pads, channels
    top, bottom, left, right = pad
    return layer.source, (top, bottom, left, right), None


def _uncropped(value: Value, pads: tuple[int, ...]) -> tuple[Value, tuple[int, ...]]:
    """Return what a SLICE takes without rows and columns that a PAD adds, and padding less them.

    A convolution with a stride need not see all that was padded.
    """
    top, bottom, left, right = pads
    producer = value.producer
    if not isinstance(producer, Slice) or numbers(producer.start).any() or len(value.shape) != 4:
        return value, pads
    whole = producer.operand
    below, beside = (whole.shape[axis] - value.shape[axis] for axis in (1, 2))
    pad = whole.producer
    if not isinstance(pad, Pad) or whole.shape[::3] != value.shape[::3]:
        return value, pads
    amounts = numbers(pad.padding).tolist()
    if below > amounts[3] or beside > amounts[5]:
        return value, pads
    return whole, (top, bottom - below, left, right - beside)


def padded_by(
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
    """What all parts of one convolution share. Refused where no accumulators take its sums."""

    site: Site
    layer: Layer
    finish: Finish
    scales: ChannelScales

    def __post_init__(self) -> None:
        assert self.accumulators is not None

    @property
    def accumulators(self) -> AccFormat:
        """Wide ones for 16 bits; on U85 these have short multipliers, others are of 32 bits."""
        if self.layer.source.dtype is not DType.INT16:
            return AccFormat.I32
        is_long = int(self.scales.multipliers.max()) > MOST_SHORT_MULTIPLIER
        if not is_long or self.site.arch is not Arch.U85:
            return AccFormat.I40
        weights = np.abs(self.layer.weights.astype(np.int64)).sum(axis=(1, 2, 3))
        most = (weights << 15) + np.abs(self.scales.biases)
        need(int(most.max()) < 1 << 31, "its sums have more than 32 bits, and its scale 31")
        return AccFormat.I32

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

    def over(
        self,
        emitter: Emitter,
        image: View,
        made: View,
        down: Sequence[Span],
        across: Sequence[Span],
    ) -> None:
        """Add the operations of all parts of an image [H, W, C]."""
        for y in down:
            for x in across:
                self.add(emitter, image, made, y, x, seen_weights(self.layer.weights, y, x))

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
            accumulators=self.accumulators,
        )


def part(image: View, y: Span, x: Span) -> View:
    """Return what a part reads of an image [H, W, C]."""
    rows = image.part(0, y.start, image.shape[0] - y.start).stepped(0, y.step, y.extent)
    return rows.part(1, x.start, rows.shape[1] - x.start).stepped(1, x.step, x.extent)


def result(made: View, y: Span, x: Span) -> View:
    """Return what a part writes of an image [H, W, C]."""
    rows = made.part(0, y.out_start, made.shape[0] - y.out_start).stepped(0, y.out_step, y.count)
    return rows.part(1, x.out_start, rows.shape[1] - x.out_start).stepped(1, x.out_step, x.count)


@rule(TransposeConv2d)
def transposed(site: Site) -> Node:
    """TRANSPOSE_CONV2D: a convolution for each phase of its stride."""
    operation = site.operation
    assert isinstance(operation, TransposeConv2d)
    layer, finish = layer_of(operation), site.finish(scales=True)
    layer.require_kernel()
    stage = Stage(site, layer, finish, scales_of(layer, finish))
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
