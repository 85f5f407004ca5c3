"""What a schedule says that its stream does, as data for those who judge the stream.

Made of the schedule alone, before anything is encoded, packed or written: nothing that writes words
has a part in it, so what that gets wrong shows as a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations import (
    BRICK,
    PERMUTATIONS,
    Activation,
    Box,
    Bytes,
    Chain,
    ChannelScales,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Fetch,
    Issue,
    Kernel,
    Lines,
    Map,
    MatrixProduct,
    OperandScale,
    Order,
    Pooling,
    Resize,
    Role,
    Scalar,
    Scale,
    Schedule,
    Sequence,
    Shape,
    Steps,
    links_of,
)
from mizzen.targets.ethos_u.judge.witness import (
    SaidActivation,
    SaidChannels,
    SaidConvolution,
    SaidElementwise,
    SaidKernel,
    SaidLines,
    SaidMap,
    SaidMatrixProduct,
    SaidNumber,
    SaidOperandScale,
    SaidOperation,
    SaidOrder,
    SaidPlace,
    SaidPooling,
    SaidResize,
    SaidScale,
    SaidStep,
    SaidSteps,
    SaidTensor,
    SaidTransfer,
    Witness,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode, ReverseU85

MOST_ALIGNMENT_BYTES = 16
"""Up to a multiple of so many bytes a transfer to a tensor's end may go on."""

INDEX_BYTES = 4

Channels = tuple[int, int] | None
"""First channel of an operation's output, and the one after the last; None for all."""


def witness_of(schedule: Schedule) -> Witness:
    """Return what the stream of a schedule has to do."""
    tensors = tuple(
        SaidTensor(each.name, each.shape, each.dtype) for each in schedule.sequence.tensors
    )
    return Witness(tuple(_Says(schedule, dict(_links(schedule.sequence))).steps()), tensors)


def _links(sequence: Sequence) -> Iterator[tuple[int, int]]:
    """Yield tensors that are handed on in chains, and the places of their operations in them."""
    for operation in sequence.operations:
        if isinstance(operation, Chain):
            yield from ((link.ofm.tensor, at) for at, link in enumerate(operation.links[:-1]))


@dataclass(frozen=True, slots=True)
class _Says:
    schedule: Schedule
    links: Mapping[int, int]

    def steps(self) -> Iterator[SaidStep]:
        """Yield what each item does, in the order of the stream."""
        origins = self._origins_of_blobs()
        for item in self.schedule.items:
            if isinstance(item, Fetch):
                yield self._fetch(item, origins.get(item.blob, Origin()))
                continue
            operation = self.schedule.sequence.operations[item.operation]
            if isinstance(operation, Copy):
                yield self._copy(operation)
            for link in links_of(operation):
                yield self._computation(link, item.channels)

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
            constant=None if constant is None else constant[start : start + copy.spans_bytes[0]],
            destination=to,
            length_bytes=length,
            most_bytes=rounded if is_last and copy.lines is None else length,
            lines=None if copy.lines is None else self._lines(copy.lines),
        )

    def _lines(self, lines: Lines) -> SaidLines:
        constant, start = self._constant_bytes(lines.indices), lines.offset_bytes
        stop = start + INDEX_BYTES * lines.count
        return SaidLines(
            indices=None if constant is not None else self._address(lines.indices, start),
            constant=None if constant is None else constant[start:stop],
            count=lines.count,
            strides=lines.strides_bytes,
            greatest=lines.greatest,
            scatters=lines.scatters,
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

    def _computation(self, operation: Computation, channels: Channels) -> SaidOperation:
        match operation:
            case Convolution():
                return self._convolution(operation, channels)
            case MatrixProduct():
                return self._product(operation, channels)
            case Pooling():
                return self._pooling(operation, channels)
            case Resize():
                return self._resize(operation, channels)
            case Elementwise():
                return self._elementwise(operation, channels)

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
            order=_order(operation.order),
        )

    def _product(self, operation: MatrixProduct, channels: Channels) -> SaidMatrixProduct:
        first, stop = channels or (0, operation.ifm2.shape[1])
        whole = self._map(operation.ifm2, None)
        return SaidMatrixProduct(
            origin=operation.origin,
            ifm=self._map(operation.ifm, None),
            ifm2=_columns(whole, first, stop),
            ofm=self._map(operation.ofm, channels),
            scale=SaidScale(operation.scale.multiplier, operation.scale.shift),
            activation=_activation(operation.activation),
            rounding=operation.rounding,
            accumulators=operation.accumulators,
            order=_order(operation.order),
        )

    def _resize(self, operation: Resize, channels: Channels) -> SaidResize:
        return SaidResize(
            origin=operation.origin,
            mode=operation.mode,
            ifm=self._map(operation.ifm, channels),
            ofm=self._map(operation.ofm, channels),
            rows=_steps(operation.rows),
            columns=_steps(operation.columns),
            scale=SaidScale(operation.scale.multiplier, operation.scale.shift),
            activation=_activation(operation.activation),
            rounding=operation.rounding,
            order=_order(operation.order),
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
            order=_order(operation.order),
        )

    def _elementwise(self, operation: Elementwise, channels: Channels) -> SaidElementwise:
        second: SaidMap | SaidNumber | None = None
        match operation.ifm2:
            case Scalar(value, dtype, zero_point):
                second = SaidNumber(value, dtype, zero_point)
            case Map() as map_:
                second = self._operand(map_, operation, channels)
            case None:
                pass
        return SaidElementwise(
            origin=operation.origin,
            mode=operation.mode,
            ifm=self._operand(operation.ifm, operation, channels),
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
            operand_scales=_operand_scales(operation),
            order=_order(operation.order),
        )

    def _operand(self, map_: Map, operation: Elementwise, channels: Channels) -> SaidMap:
        """Return some channels of an operand; all of one that is the same for all channels."""
        computed = operation.order.computed(operation.ofm.shape)
        return self._map(map_, None if map_.shape[2] != computed[2] else channels)

    # Maps

    def _map(self, map_: Map, channels: Channels) -> SaidMap:
        """Return a map, or some channels of it."""
        height, width, depth = map_.shape
        first, stop = channels or (0, depth)
        place = self._placed(map_, first)
        constant = self._constant_bytes(map_.tensor)
        shape = height, width, stop - first
        link = self.links.get(map_.tensor)
        return SaidMap(
            shape=shape,
            dtype=map_.dtype,
            zero_point=map_.zero_point,
            place=None if constant is not None or link is not None else place,
            constant=None if constant is None else _elements(constant, shape, place, map_),
            tensor=map_.tensor,
            start=_start(map_, first),
            link=link,
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


def _columns(said: SaidMap, first: int, stop: int) -> SaidMap:
    """Return some of the columns of a product's second map, ``[1, columns, C]``."""
    if (first, stop) == (0, said.shape[1]):
        return said
    assert said.place is not None, "what lies nowhere is not parted"
    step = (
        said.place.strides[1] if said.place.layout is Layout.NHWC else BRICK * said.dtype.itemsize
    )
    at, *others = said.place.bases
    bases = at + first * step, others[0], others[1], others[2]
    return replace(
        said,
        shape=(said.shape[0], stop - first, said.shape[2]),
        place=replace(said.place, bases=bases),
        start=None,
    )


def _order(order: Order) -> SaidOrder:
    reversed_ = None if order.reverse is ReverseU85.NONE else int(order.reverse) - 1
    return SaidOrder(PERMUTATIONS[order.transpose], reversed_)


def _steps(steps: Steps) -> SaidSteps:
    return SaidSteps(steps.scale, steps.step, steps.offset)


def _operand_scales(
    operation: Elementwise,
) -> tuple[SaidOperandScale | None, SaidOperandScale | None] | None:
    if operation.operand_scales is None:
        return None
    first, second = operation.operand_scales
    return _operand_scale(first), _operand_scale(second)


def _operand_scale(scale: OperandScale | None) -> SaidOperandScale | None:
    if scale is None:
        return None
    return SaidOperandScale(scale.multiplier, scale.shift, scale.rounding, scale.left)


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
