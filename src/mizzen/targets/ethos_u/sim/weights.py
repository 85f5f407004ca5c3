"""Weights as the NPU sees them: undo the hardware's order.

The order of weights in a stream is that of the MAC array's blocks, written out below for Ethos-U55
and U65.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail

IFM_UBLOCK = 8
"""Input channels that one microblock takes."""
SUBKERNEL = 8
"""Rows and columns of the kernel that the MAC array walks at a time."""


@dataclass(frozen=True, slots=True)
class WeightOrder:
    """What decides the order of one core's weight stream.

    Shapes are of the part that this core computes: `ofm_depth` channels of it in blocks of
    `ofm_block_depth`; the kernel is in elements, without dilation; `dilation` only shrinks the
    sub-kernels.
    """

    ofm_depth: int
    ifm_depth: int
    kernel_height: int
    kernel_width: int
    dilation_y: int
    dilation_x: int
    ofm_block_depth: int
    ofm_ublock_depth: int
    ifm_bits: int
    depthwise: bool
    part_kernel: bool

    @property
    def ifm_block_depth(self) -> int:
        """Input channels per block: 16 when kernel elements are taken first or are 16 bit."""
        return 16 if self.part_kernel or self.ifm_bits == 16 else 32

    @property
    def element_step(self) -> int:
        """Kernel elements are padded to a multiple of this."""
        if self.depthwise:
            return 4
        if self.part_kernel:
            return 2 if self.ifm_bits == 16 else 4
        return 1


@lru_cache(maxsize=256)
def positions(order: WeightOrder) -> npt.NDArray[np.int64]:
    """Give for each weight of the stream its place in `[ofm, ky, kx, ifm]`, or -1 for padding."""
    parts: list[npt.NDArray[np.int64]] = []
    ifm_depth = 1 if order.depthwise else order.ifm_depth
    ifm_step = 1 if order.depthwise else order.ifm_block_depth
    for ofm in range(0, order.ofm_depth, order.ofm_block_depth):
        for ifm in range(0, ifm_depth, ifm_step):
            for ky in range(0, order.kernel_height, SUBKERNEL // order.dilation_y):
                for kx in range(0, order.kernel_width, SUBKERNEL // order.dilation_x):
                    parts.append(_subkernel(order, ofm, ifm, ky, kx))
    return np.concatenate(parts)


def _subkernel(order: WeightOrder, ofm: int, ifm: int, ky: int, kx: int) -> npt.NDArray[np.int64]:
    height = min(SUBKERNEL // order.dilation_y, order.kernel_height - ky)
    width = min(SUBKERNEL // order.dilation_x, order.kernel_width - kx)
    elements = -(-height * width // order.element_step) * order.element_step
    ofm_block = min(order.ofm_block_depth, order.ofm_depth - ofm)
    ofm_ublocks = -(-ofm_block // order.ofm_ublock_depth)
    ifm_count, inner = _ifm_extent(order, ifm)

    e = np.arange(elements)
    o = np.arange(ofm_ublocks * order.ofm_ublock_depth).reshape(ofm_ublocks, -1)
    i = np.arange(ifm_count * inner).reshape(ifm_count, inner)
    if order.part_kernel or order.depthwise:  # ifm ublock, ofm ublock, element, ofm, ifm
        e_, o_ = e[None, None, :, None, None], o[None, :, None, :, None]
        i_ = i[:, None, None, None, :]
    else:  # ofm ublock, element, ifm ublock, ofm, ifm
        e_, o_ = e[None, :, None, None, None], o[:, None, None, :, None]
        i_ = i[None, None, :, None, :]
    y, x = ky + e_ // width, kx + e_ % width
    ifm_depth = 1 if order.depthwise else order.ifm_depth
    inside = (o_ < ofm_block) & (ifm + i_ < ifm_depth) & (e_ < height * width)
    flat = ((ofm + o_) * order.kernel_height + y) * order.kernel_width + x
    return np.where(inside, flat * ifm_depth + ifm + i_, -1).ravel()


def _ifm_extent(order: WeightOrder, ifm: int) -> tuple[int, int]:
    """Input microblocks walked in this block, and channels in each."""
    if order.depthwise:
        return 1, 1
    block = order.ifm_block_depth
    if order.part_kernel:
        block = min(block, order.ifm_depth - ifm)
    return -(-block // IFM_UBLOCK), IFM_UBLOCK


def arrange(values: npt.NDArray[np.int16], order: WeightOrder) -> npt.NDArray[np.int16]:
    """Bring one core's weights into `[ofm_depth, kernel_height, kernel_width, ifm_depth or 1]`.

    Raises E621 when there are fewer weights than the operation needs, E622 for a weight where the
    order demands padding.
    """
    place = positions(order)
    if len(values) < len(place):
        raise fail(
            "E621",
            f"a weight stream must hold {len(place)} weights here, not {len(values)}",
            rule="order of weights in the stream, Ethos-U55/U65",
            help="the stream was made for another block size, or its bytes are damaged",
        )
    ifm_depth = 1 if order.depthwise else order.ifm_depth
    shape = (order.ofm_depth, order.kernel_height, order.kernel_width, ifm_depth)
    weights = np.zeros(int(np.prod(shape)), np.int16)
    real = place >= 0
    if values[: len(place)][~real].any() or values[len(place) :].any():
        raise fail(
            "E622",
            "padding in a weight stream must be zero, and is not",
            rule="order of weights in the stream, Ethos-U55/U65",
            help="the stream was made for another block size, or its bytes are damaged",
        )
    weights[place[real]] = values[: len(place)][real]
    return weights.reshape(shape)
