"""The order of weights in the streams of U85.

From the outermost: blocks of output channels, blocks of input channels (there and back), parts of
the kernel of at most 8 x 8 elements; within them microblocks of inputs and of outputs, elements of
the kernel in rounds, a few input channels at once. Output channels go round over the streams in
groups of four. A fast stream is one for all: the decoders take turns, round after round of
elements. What reaches out of the tensor is sent as zero.

Ref: verified against streams of Vela 5.2.0 on all five accelerators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.generator.operations import Convolution, is_sparse
from mizzen.targets.ethos_u.machine.config import Accelerator

WINDOW = 8
"""Rows and columns, dilation included, of the kernel that is walked at once."""
GROUP = 4
"""Output channels that go to one stream together."""
PART_KERNEL_CHANNELS, DEPTH_FIRST_CHANNELS, SHALLOW_CHANNELS = 16, 64, 32
"""Input channels of a block; shallow where elements are of 32 bits or the array is small."""
SPARSE_CHANNELS = 128
"""... of a block of 8-bit input whose weights are sparse."""
SHALLOW_MACS, SHALLOW_MICROBLOCK = 256, 16
"""Arrays up to this size have shallow blocks where the microblock is this deep."""
CHANNELS_AT_ONCE, SPARSE_AT_ONCE = 8, 16
"""Input channels that are taken for an element before the next."""
LONG_ROUND, SHORT_ROUND = 10, 5
"""Elements of a round; short of 8-bit part-kernel, where weights are not sparse."""
GAP_ELEMENTS = {128: (0, 2), 256: (0, 2), 512: (2, 2), 1024: (6, 6), 2048: (6, 6)}
"""Zeros after each round of a depthwise kernel, by MACs: of 8-bit, and of wider, input."""
RULE = "order of weights in the stream, Ethos-U85"

_ABSENT = -2
"""Of a whole block, what the last one of a tensor does not have, not even as padding."""
_OUTSIDE = -(1 << 29)
"""Added to a place once for each axis on which it lies outside; three times fit 32 bits."""
_AXES = 11


@dataclass(frozen=True, slots=True)
class StreamOrderU85:
    """All that decides the order of one stream.

    shape        [O, kernel height, kernel width, I] of the operation; I is 1 if depthwise
    stride       of the kernel, y and x
    dilation     of the kernel, y and x: 1 or 2
    block_depth  output channels of a block
    microblock   output channels of a microblock
    ifm_bits     of an element of the input
    macs         of the array
    streams      that channels are divided into
    stream       which of them this one is; not looked at if fast
    sparse       whether of four weights in a row, along the inputs, at most two are not zero
    fast         whether one stream is for all decoders
    """

    shape: tuple[int, int, int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    block_depth: int
    microblock: int
    ifm_bits: int
    macs: int
    streams: int
    stream: int
    depthwise: bool
    part_kernel: bool
    sparse: bool = False
    fast: bool = False

    @property
    def ifm_block(self) -> int:
        """Input channels of a block."""
        if self.depthwise:
            return 1
        if self.part_kernel:
            return PART_KERNEL_CHANNELS
        if self.sparse and self.ifm_bits == 8:
            return SPARSE_CHANNELS
        small = self.macs <= SHALLOW_MACS and self.microblock == SHALLOW_MICROBLOCK
        shallow = (small and not self.sparse) or self.ifm_bits == 32
        return SHALLOW_CHANNELS if shallow else DEPTH_FIRST_CHANNELS

    @property
    def ifm_microblock(self) -> int:
        """Input channels that are walked before the next microblock of outputs."""
        halved = self.part_kernel and self.ifm_bits == 16 and not self.sparse
        return self.ifm_block // 2 if halved else self.ifm_block

    @property
    def at_once(self) -> int:
        """Input channels that are taken for an element before the next."""
        if self.depthwise:
            return 1
        return SPARSE_AT_ONCE if self.sparse else CHANNELS_AT_ONCE

    @property
    def round_elements(self) -> int:
        """Elements of the kernel that are sent are a multiple of this, but for gaps."""
        if self.depthwise:
            return LONG_ROUND
        if not self.part_kernel:
            return 1
        return LONG_ROUND if self.sparse or self.ifm_bits == 16 else SHORT_ROUND

    @property
    def gap_elements(self) -> int:
        """Zeros that are sent after each round."""
        return GAP_ELEMENTS[self.macs][self.ifm_bits > 8] if self.depthwise else 0

    @property
    def places(self) -> npt.NDArray[np.int32]:
        """Of each weight of the stream its index in the weights as they lie, or -1 for padding.

        The array is shared and must not be written.
        """
        return _places(self)


def orders_u85(
    operation: Convolution,
    channels: tuple[int, int],
    block_depth: int,
    part_kernel: bool,
    microblock: int,
    accelerator: Accelerator,
    fast: bool,
) -> tuple[StreamOrderU85, ...]:
    """Return the order of each stream of output channels `channels[0] .. channels[1] - 1`.

    `microblock` is the depth of the microblock. Raises E284 for several blocks of a depth that is
    not whole microblocks.
    """
    count = channels[1] - channels[0]
    if block_depth < count and block_depth % microblock:
        raise fail(
            "E284",
            f"the depth of several blocks must be a multiple of {microblock}, not {block_depth}",
            origin=operation.origin,
            rule=RULE,
        )
    kernel = operation.kernel
    return tuple(
        StreamOrderU85(
            shape=(count, *operation.weights.shape[1:]),
            stride=(kernel.stride_y, kernel.stride_x),
            dilation=(kernel.dilation_y, kernel.dilation_x),
            block_depth=min(block_depth, count + -count % microblock),
            microblock=microblock,
            ifm_bits=8 * operation.ifm.dtype.itemsize,
            macs=accelerator.macs,
            streams=accelerator.weight_streams,
            stream=stream,
            depthwise=operation.depthwise,
            part_kernel=part_kernel and not operation.depthwise,
            sparse=is_sparse(operation, accelerator.arch),
            fast=fast,
        )
        for stream in range(1 if fast else accelerator.weight_streams)
    )


@lru_cache(maxsize=64)
def _places(order: StreamOrderU85) -> npt.NDArray[np.int32]:
    _, height, width, _ = order.shape
    lines, columns = (WINDOW // step for step in order.dilation)
    parts = [
        _window(order, y, x, min(lines, height - y), min(columns, width - x))
        for x in range(0, width, columns)
        for y in range(0, height, lines)
    ]
    flat = np.concatenate(parts, axis=2).ravel() if len(parts) > 1 else parts[0].ravel()
    if flat.min() == _ABSENT:
        flat = flat[flat != _ABSENT]
    flat.flags.writeable = False
    return flat


def _window(
    order: StreamOrderU85, y: int, x: int, height: int, width: int
) -> npt.NDArray[np.int32]:
    """Return the places of a part of the kernel: [blocks of outputs, blocks of inputs, weights]."""
    channels, kernel_height, kernel_width, depth = order.shape
    # Axes: 0 block of outputs, 1 block of inputs, then those of a block, in the order of the
    # stream: 2 inputs' microblock, 3 outputs' microblock, 4 round, 5 stream, 6 element,
    # 7 inputs' step, 8 group, 9 output, 10 input.
    o_blocks, i_blocks = -(-channels // order.block_depth), -(-depth // order.ifm_block)
    start = _axis(o_blocks, 0, order.block_depth)
    stop = np.minimum(start + order.block_depth, channels)
    o_microblock = start + _axis(-(-order.block_depth // order.microblock), 3, order.microblock)
    o = o_microblock + _of_stream(order)
    block = _axis(i_blocks, 1)
    there = _axis(o_blocks, 0) % 2 == 0
    i_microblock = np.where(there, block, i_blocks - 1 - block) * order.ifm_block
    i_microblock = i_microblock + _axis(
        order.ifm_block // order.ifm_microblock, 2, order.ifm_microblock
    )
    i = i_microblock + _axis(order.ifm_microblock // order.at_once, 7, order.at_once)
    i = i + _axis(order.at_once, 10)
    e = _elements(order, y, x, height, width)

    o_place = np.where(o < stop, o * (kernel_height * kernel_width * depth), _OUTSIDE)
    i_place = np.where(i < depth, i, _OUTSIDE)
    e_place = np.where(e >= 0, e * depth, _OUTSIDE)
    flat = (o_place + e_place).astype(np.int32) + i_place.astype(np.int32)
    np.maximum(flat, -1, out=flat)
    present = (o_microblock < stop) & (i_microblock < depth)
    if not present.all():
        np.copyto(flat, np.int32(_ABSENT), where=~present)
    return flat.reshape(o_blocks, i_blocks, -1)


def _of_stream(order: StreamOrderU85) -> npt.NDArray[np.int64]:
    """Return which outputs of a microblock go to the stream: axes of stream, group and output."""
    groups = _axis(order.microblock // (GROUP * order.streams), 8, GROUP * order.streams)
    first = _axis(order.streams, 5, GROUP) if order.fast else GROUP * order.stream
    return groups + first + _axis(GROUP, 9)


def _elements(
    order: StreamOrderU85, y: int, x: int, height: int, width: int
) -> npt.NDArray[np.int64]:
    """Return the elements of a part of the kernel in rounds, -1 for none: axes of both."""
    phased = order.part_kernel or order.depthwise
    walked = _walked(height, width, order.stride if phased else (1, 1))
    numbers = [(y + line) * order.shape[2] + x + column for line, column in walked]
    rounds = -(-len(numbers) // order.round_elements)
    padded = np.full(rounds * order.round_elements, -1, np.int64)
    padded[: len(numbers)] = numbers
    gap = np.full((rounds, order.gap_elements), -1, np.int64)
    each = np.concatenate((padded.reshape(rounds, -1), gap), axis=1)
    return each.reshape((1,) * 4 + (rounds, 1, each.shape[1]) + (1,) * 4)


def _walked(height: int, width: int, stride: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Walk elements that inputs a stride apart meet, line by line, there and back."""
    step_y, step_x = stride
    for top in range(min(step_y, height)):
        for left in range(min(step_x, width)):
            columns = range(left, width, step_x)
            for turn, line in enumerate(range(top, height, step_y)):
                yield from ((line, column) for column in columns[:: -1 if turn % 2 else 1])


def _axis(extent: int, axis: int, step: int = 1) -> npt.NDArray[np.int64]:
    """Return 0, step, 2 * step ... along one of the axes."""
    shape = [1] * _AXES
    shape[axis] = extent
    return (np.arange(extent) * step).reshape(shape)
