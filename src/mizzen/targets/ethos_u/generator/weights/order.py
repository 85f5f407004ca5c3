"""The order of weights in a stream: that in which the MAC array takes them.

From the outermost: blocks of output channels, blocks of input channels, parts of the kernel of at
most 8 x 8 elements; within them microblocks of 8 input channels and of 4 or 8 output channels, in
an order that depends on the traversal. What reaches out of the tensor is sent as zero.

Ref: verified against `ethosu.mlw_codec.reorder_encode` of Vela 5.2.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.machine.config import Accelerator

WINDOW = 8
"""Rows and columns, dilation included, of the kernel that is walked at once."""
IFM_MICROBLOCK = 8
"""Input channels of a microblock; a depthwise convolution has one."""
OFM_MICROBLOCKS = {32: 4}
"""Output channels of a microblock, by MACs of a core; all others have 8."""
RULE = "order of weights in the stream, Ethos-U55/U65"


@dataclass(frozen=True, slots=True)
class StreamOrder:
    """All that decides the order of one core's stream.

    shape        [O, kernel height, kernel width, I] of what this core computes; I is 1 if depthwise
    dilation     of the kernel, y and x: 1 or 2
    block_depth  output channels of a block on this core
    microblock   output channels of a microblock
    ifm_bits     of an element of the input: 8 or 16
    """

    shape: tuple[int, int, int, int]
    dilation: tuple[int, int]
    block_depth: int
    microblock: int
    ifm_bits: int
    depthwise: bool
    part_kernel: bool

    @property
    def ifm_block(self) -> int:
        """Input channels of a block."""
        if self.depthwise:
            return 1
        return 16 if self.part_kernel or self.ifm_bits == 16 else 32

    @property
    def element_step(self) -> int:
        """Elements of the kernel that are sent are a multiple of this."""
        if self.depthwise:
            return 4
        if self.part_kernel:
            return 2 if self.ifm_bits == 16 else 4
        return 1

    @property
    def places(self) -> npt.NDArray[np.int32]:
        """Of each weight of the stream its index in the weights as they lie, or -1 for padding.

        The array is shared and must not be written.
        """
        return _places(self)


def microblock_depth(accelerator: Accelerator) -> int:
    """Return the output channels of a microblock."""
    return OFM_MICROBLOCKS.get(accelerator.macs_per_core, 8)


def orders_of(
    shape: tuple[int, int, int, int],
    dilation: tuple[int, int],
    block_depth: int,
    ifm_bits: int,
    depthwise: bool,
    part_kernel: bool,
    accelerator: Accelerator,
) -> tuple[StreamOrder, ...]:
    """Return the order of each core's stream: core k of n computes channels k, k + n, ...

    `shape` is [O, kernel height, kernel width, I] of all cores and `block_depth` what the register
    says. A core without channels has an order of none. Raises E284 for several blocks of a depth
    that is not whole microblocks on each core.
    """
    cores = accelerator.cores
    microblock = microblock_depth(accelerator)
    if block_depth < shape[0] and block_depth % (microblock * cores):
        raise fail(
            "E284",
            f"the depth of several blocks must be a multiple of {microblock * cores}, "
            f"not {block_depth}",
            rule=RULE,
        )
    return tuple(
        StreamOrder(
            (max(0, -(-(shape[0] - core) // cores)), *shape[1:]),
            dilation,
            -(-(block_depth - core) // cores),
            microblock,
            ifm_bits,
            depthwise,
            part_kernel and not depthwise,
        )
        for core in range(cores)
    )


@lru_cache(maxsize=64)
def _places(order: StreamOrder) -> npt.NDArray[np.int32]:
    channels, height, width, _ = order.shape
    if channels == 0:
        return np.zeros(0, np.int32)
    lines, columns = (WINDOW // step for step in order.dilation)
    parts = [
        _window(order, y, x, min(lines, height - y), min(columns, width - x))
        for y in range(0, height, lines)
        for x in range(0, width, columns)
    ]
    flat = np.concatenate(parts, axis=2).ravel()
    present = flat[flat != _ABSENT]
    present.flags.writeable = False
    return present


_ABSENT = -2
"""Of a whole block, what the last one of a tensor does not have, not even as padding."""


def _window(order: StreamOrder, y: int, x: int, height: int, width: int) -> npt.NDArray[np.int32]:
    """Return the places of a part of the kernel: [blocks of outputs, blocks of inputs, weights]."""
    channels, kernel_height, kernel_width, depth = order.shape
    inner = 1 if order.depthwise else IFM_MICROBLOCK
    block = -(-order.block_depth // order.microblock) * order.microblock
    step = order.element_step
    # Axes: 0 block of outputs, 1 block of inputs, then those of a block, in the order of the
    # stream: 2 inputs' microblock, 3 outputs' microblock, 4 element, 5 inputs' microblock
    # (where the whole kernel of few channels does not come first), 6 output, 7 input.
    first = _axis(-(-channels // order.block_depth), 0, order.block_depth)
    o = first + _axis(block // order.microblock, 3, order.microblock)
    o = o + _axis(order.microblock, 6)
    of_microblock = 2 if order.part_kernel or order.depthwise else 5
    i = _axis(-(-depth // order.ifm_block), 1, order.ifm_block)
    i = i + _axis(order.ifm_block // inner, of_microblock, inner)
    present = _axis(1, 0) == 0 if not order.part_kernel else i < depth
    i = i + _axis(inner, 7)
    e = _axis(-(-height * width // step) * step, 4)

    in_block = o - first < np.minimum(order.block_depth, channels - first)
    microblock_start = (o - first) // order.microblock * order.microblock
    present = present & (first + microblock_start < np.minimum(first + order.block_depth, channels))
    inside = in_block & (i < depth) & (e < height * width)
    flat = ((o * kernel_height + y + e // width) * kernel_width + x + e % width) * depth + i
    marked = np.where(present, np.where(inside, flat, -1), _ABSENT).astype(np.int32)
    return marked.reshape(marked.shape[0], marked.shape[1], -1)


def _axis(extent: int, axis: int, step: int = 1) -> npt.NDArray[np.int64]:
    """Return 0, step, 2 * step ... along one of eight axes."""
    shape = [1] * 8
    shape[axis] = extent
    return (np.arange(extent) * step).reshape(shape)
