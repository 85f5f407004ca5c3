"""Weights as the NPU sees them: decode the compressed stream, undo the hardware's order.

Ref: `ethosu.mlw_codec` decodes the bitstream; the order of weights inside it is that of the
MAC array's blocks, written out below outermost loop first for Ethos-U55 and U65.
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
    return _place(order, ofm + o_, ifm + i_, (ky, kx, height, width), e_, ofm + ofm_block)


def _ifm_extent(order: WeightOrder, ifm: int) -> tuple[int, int]:
    """Input microblocks walked in this block, and channels in each."""
    if order.depthwise:
        return 1, 1
    block = order.ifm_block_depth
    if order.part_kernel:
        block = min(block, order.ifm_depth - ifm)
    return -(-block // IFM_UBLOCK), IFM_UBLOCK


def _place(
    order: WeightOrder,
    ofm: npt.NDArray[np.int64],
    ifm: npt.NDArray[np.int64],
    kernel: tuple[int, int, int, int],
    element: npt.NDArray[np.int64],
    ofm_end: int,
) -> npt.NDArray[np.int64]:
    ky, kx, height, width = kernel
    ifm_depth = 1 if order.depthwise else order.ifm_depth
    inside = (ofm < ofm_end) & (ifm < ifm_depth) & (element < height * width)
    y, x = ky + element // width, kx + element % width
    flat = ((ofm * order.kernel_height + y) * order.kernel_width + x) * ifm_depth + ifm
    return np.where(inside, flat, -1).ravel()


def decode(stream: npt.NDArray[np.uint8], order: WeightOrder) -> npt.NDArray[np.int16]:
    """Decode one core's stream to `[ofm_depth, kernel_height, kernel_width, ifm_depth or 1]`.

    Values lie in -255..255: the compiler has already subtracted the weights' zero point. Raises
    E621 when the stream holds fewer weights than the operation needs, or a weight where the order
    demands padding.
    """
    from ethosu import mlw_codec

    place = positions(order)
    values = np.asarray(mlw_codec.decode(bytearray(stream.tobytes())), np.int16)
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
