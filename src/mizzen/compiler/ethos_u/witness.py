"""What a schedule says that its stream does, as data for those who judge the stream.

Made of the schedule alone, before anything is encoded, packed or written: nothing that writes words
has a part in it, so what that gets wrong shows as a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations import (
    BRICK,
    Activation,
    Box,
    Bytes,
    ChannelScales,
    Convolution,
    Copy,
    Elementwise,
    Fetch,
    Issue,
    Kernel,
    Map,
    Pooling,
    Role,
    Scalar,
    Scale,
    Schedule,
    Shape,
)
from mizzen.targets.ethos_u.judge.witness import (
    SaidActivation,
    SaidChannels,
    SaidConvolution,
    SaidElementwise,
    SaidKernel,
    SaidMap,
    SaidNumber,
    SaidPlace,
    SaidPooling,
    SaidScale,
    SaidStep,
    SaidTensor,
    SaidTransfer,
    Witness,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode

MOST_ALIGNMENT_BYTES = 16
"""Up to a multiple of so many bytes a transfer to a tensor's end may go on."""

Channels = tuple[int, int] | None
"""First channel of an operation's output, and the one after the last; None for all."""


def witness_of(schedule: Schedule) -> Witness:
    """Return what the stream of a schedule has to do."""
    tensors = tuple(
        SaidTensor(each.name, each.shape, each.dtype) for each in schedule.sequence.tensors
    )
    return Witness(tuple(_Says(schedule).steps()), tensors)


@dataclass(frozen=True, slots=True)
class _Says:
    schedule: Schedule

    def steps(self) -> Iterator[SaidStep]:
        """Yield what each item does, in the order of the stream."""
        origins = self._origins_of_blobs()
        for item in self.schedule.items:
            if isinstance(item, Fetch):
                yield self._fetch(item, origins.get(item.blob, Origin()))
                continue
            match self.schedule.sequence.operations[item.operation]:
                case Copy() as copy:
                    yield self._copy(copy)
                case Convolution() as operation:
                    yield self._convolution(operation, item.channels)
                case Pooling() as operation:
                    yield self._pooling(operation, item.channels)
                case Elementwise() as operation:
                    yield self._elementwise(operation, item.channels)

    def _origins_of_blobs(self) -> dict[int, Origin]:
        """Return of each blob where the last operation that reads it comes from."""
        operations = self.schedule.sequence.operations
        return {
            item.blob: operations[item.operation].origin
            for item in self.schedule.items
            if isinstance(item, Issue) and item.blob is not None
        }

    # Transfers

    def _fetch(self, item: Fetch, origin: Origin) -> SaidTransfer:
        place = self.schedule.stagings[item.staging].place
        to = place.region, place.offset_bytes + item.offset_bytes + item.start
        length = item.stop - item.start
        return SaidTransfer(origin, None, None, to, length, length)

    def _copy(self, copy: Copy) -> SaidTransfer:
        length, start = copy.length_bytes, copy.source_offset_bytes
        constant = self._constant_bytes(copy.source)
        to = self._address(copy.destination, copy.destination_offset_bytes)
        assert to is not None, "what is written is no constant"
        tensor = self.schedule.sequence.tensors[copy.destination]
        size = tensor.size_bytes(self.schedule.layouts[copy.destination])
        is_last = copy.destination_offset_bytes + length >= size
        rounded = MOST_ALIGNMENT_BYTES * -(-length // MOST_ALIGNMENT_BYTES)
        return SaidTransfer(
            origin=copy.origin,
            source=None if constant is not None else self._address(copy.source, start),
            constant=None if constant is None else constant[start : start + length],
            destination=to,
            length_bytes=length,
            most_bytes=rounded if is_last else length,
        )

    def _address(self, tensor: int, offset_bytes: int) -> tuple[int, int] | None:
        place = self.schedule.places[tensor]
        return None if place is None else (place.region, place.offset_bytes + offset_bytes)

    def _constant_bytes(self, tensor: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]] | None:
        known = self.schedule.sequence.tensors[tensor]
        if known.role is not Role.CONSTANT or known.data is None:
            return None
        return np.frombuffer(known.data.tobytes(), np.uint8)

    # Operations

    def _convolution(self, operation: Convolution, channels: Channels) -> SaidConvolution:
        own, written = slice(*channels) if channels else slice(None), operation.written
        streams: tuple[tuple[int, int, int], ...] = ()
        if written is not None:
            at = self._address(written.tensor, 0)
            assert at is not None, "what is written is no constant"
            streams = tuple((at[0], at[1] + start, length) for start, length in written.streams)
        return SaidConvolution(
            origin=operation.origin,
            depthwise=operation.depthwise,
            ifm=self._map(operation.ifm, channels if operation.depthwise else None),
            ofm=self._map(operation.ofm, channels),
            kernel=_kernel(operation.kernel),
            weights=operation.weights[own] if written is None else None,
            streams=streams,
            channels=_channels(operation.scales, own),
            activation=_activation(operation.activation),
            upscale=operation.upscale,
            rounding=operation.rounding,
            accumulators=operation.accumulators,
        )

    def _pooling(self, operation: Pooling, channels: Channels) -> SaidPooling:
        sums = operation.mode is PoolingMode.REDUCE_SUM
        return SaidPooling(
            origin=operation.origin,
            mode=operation.mode,
            ifm=self._map(operation.ifm, None if sums else channels),
            ofm=self._map(operation.ofm, channels),
            kernel=_kernel(operation.kernel),
            scale=SaidScale(operation.scale.multiplier, operation.scale.shift),
            activation=_activation(operation.activation),
            upscale=operation.upscale,
            rounding=operation.rounding,
            accumulators=operation.accumulators,
        )

    def _elementwise(self, operation: Elementwise, channels: Channels) -> SaidElementwise:
        second: SaidMap | SaidNumber | None = None
        match operation.ifm2:
            case Scalar(value, dtype, zero_point):
                second = SaidNumber(value, dtype, zero_point)
            case Map() as map_:
                repeated = map_.shape[2] != operation.ofm.shape[2]
                second = self._map(map_, None if repeated else channels)
            case None:
                pass
        return SaidElementwise(
            origin=operation.origin,
            mode=operation.mode,
            ifm=self._map(operation.ifm, channels),
            ifm2=second,
            ofm=self._map(operation.ofm, channels),
            reversed=operation.reversed,
            scale=_scale(operation.scale),
            scale_a=_scale(operation.scale_a),
            scale_b=_scale(operation.scale_b),
            scale_mode=operation.scale_mode,
            activation=_activation(operation.activation),
            rounding=operation.rounding,
            ifm_rounding=operation.ifm_rounding,
        )

    # Maps

    def _map(self, map_: Map, channels: Channels) -> SaidMap:
        """Return a map, or some channels of it."""
        height, width, depth = map_.shape
        first, stop = channels or (0, depth)
        place = self._placed(map_, first)
        constant = self._constant_bytes(map_.tensor)
        shape = height, width, stop - first
        return SaidMap(
            shape=shape,
            dtype=map_.dtype,
            zero_point=map_.zero_point,
            place=None if constant is not None else place,
            constant=None if constant is None else _elements(constant, shape, place, map_),
            tensor=map_.tensor,
            start=_start(map_, first),
        )

    def _placed(self, map_: Map, channel: int) -> SaidPlace:
        """Return where a map lies from a channel on; a constant as if it began at byte 0."""
        tensor = self.schedule.sequence.tensors[map_.tensor]
        is_constant = self._constant_bytes(map_.tensor) is not None
        place = None if is_constant else self.schedule.places[map_.tensor]
        region, at = (-1, 0) if place is None else (place.region, place.offset_bytes)
        height, width, _ = map_.shape
        split = height, height, width
        match map_.view:
            case Box(start=(y, x, c), steps=steps):
                layout = self.schedule.layouts[map_.tensor]
                own = tensor.strides_bytes(layout)
                strides = own[0] * steps[0], own[1] * steps[1], own[2]
                start = y * own[0] + x * own[1] + _of_channel(c, layout, own, tensor.dtype.itemsize)
                offsets = start, 0, 0, 0
            case Bytes(layout=layout, strides_bytes=strides, offset_bytes=start, tiles=tiles):
                offsets = start, 0, 0, 0
                if tiles is not None:
                    offsets = start, *tiles.offsets_bytes
                    split = tiles.height_0, tiles.height_1, tiles.width_0
        moved = at + _of_channel(channel, layout, strides, map_.dtype.itemsize)
        first, right, below, corner = (offset + moved for offset in offsets)
        return SaidPlace(region, (first, right, below, corner), split, strides, layout)


def _of_channel(
    channel: int, layout: Layout, strides_bytes: tuple[int, int, int], element_bytes: int
) -> int:
    """Return the bytes from channel 0 to another one."""
    if layout is Layout.NHWC:
        return channel * element_bytes
    return channel // BRICK * strides_bytes[2] + channel % BRICK * element_bytes


def _start(map_: Map, channel: int) -> Shape | None:
    """Return where a map begins in its tensor, whose elements are the map's own."""
    match map_.view:
        case Box(start=(y, x, c), steps=(1, 1)):
            return y, x, c + channel
        case _:
            return None


def _elements(
    data: np.ndarray[tuple[int], np.dtype[np.uint8]], shape: Shape, place: SaidPlace, map_: Map
) -> np.ndarray[tuple[int, int, int], np.dtype[np.integer]]:
    """Return the elements of a constant, ``[H, W, C]``."""
    size = map_.dtype.itemsize
    y, x, c = np.ogrid[: shape[0], : shape[1], : shape[2]]
    height, height_right, width = place.split
    right = x >= width
    below = y >= np.where(right, height_right, height)
    bases = np.array(place.bases)[2 * below + right]
    inner_y = np.where(below, y - np.where(right, height_right, height), y)
    inner_x = np.where(right, x - width, x)
    stride_y, stride_x, stride_c = place.strides
    if place.layout is Layout.NHWC:
        at = bases + inner_y * stride_y + inner_x * stride_x + c * size
    else:
        brick = c // BRICK * stride_c + c % BRICK * size
        at = bases + inner_y * stride_y + inner_x * BRICK * size + brick
    cells = data[at[..., np.newaxis] + np.arange(size)]
    return np.ascontiguousarray(cells).view(map_.dtype)[..., 0]


def _kernel(kernel: Kernel) -> SaidKernel:
    return SaidKernel(
        height=kernel.height,
        width=kernel.width,
        stride_y=kernel.stride_y,
        stride_x=kernel.stride_x,
        dilation_y=kernel.dilation_y,
        dilation_x=kernel.dilation_x,
        pad_top=kernel.pad_top,
        pad_left=kernel.pad_left,
        pad_bottom=kernel.pad_bottom,
        pad_right=kernel.pad_right,
    )


def _scale(scale: Scale | None) -> SaidScale | None:
    return None if scale is None else SaidScale(scale.multiplier, scale.shift)


def _channels(scales: ChannelScales, own: slice) -> SaidChannels:
    return SaidChannels(scales.biases[own], scales.multipliers[own], scales.shifts[own])


def _activation(activation: Activation) -> SaidActivation:
    table = activation.table
    return SaidActivation(
        minimum=activation.minimum,
        maximum=activation.maximum,
        clip_range=activation.clip_range,
        function=activation.function,
        table=None if table is None else np.frombuffer(table.data, np.uint8),
    )
