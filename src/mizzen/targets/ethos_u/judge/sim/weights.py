"""Weights as the NPU sees them: undo the hardware's order.

The order of weights in a stream is that of the MAC array's blocks, written out below for Ethos-U55
and U65, and in `weights_u85` for Ethos-U85.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail

IFM_UBLOCK = 8
"""Input channels that one microblock takes."""
SUBKERNEL = 8
"""Rows and columns of the kernel that the MAC array walks at a time."""


Weights = npt.NDArray[np.int16]


class WeightLayout(Protocol):
    """How the streams of one operation hold its weights; a value that can be hashed."""

    @property
    def is_fast(self) -> bool:
        """Whether the stream is in the fast format rather than the standard one."""
        ...

    def arrange(self, streams: Sequence[Weights]) -> Weights:
        """Bring decoded streams into `[O, kernel height, kernel width, I or 1]`; E621, E622."""
        ...


@dataclass(frozen=True, slots=True)
class SplitLayout:
    """U55, U65: one stream a core; core k computes channels k, k + cores, ..."""

    orders: tuple[WeightOrder, ...]
    is_fast = False

    def arrange(self, streams: Sequence[Weights]) -> Weights:
        """Bring decoded streams into `[O, kernel height, kernel width, I or 1]`; E621, E622."""
        parts = [arrange(*pair) for pair in zip(streams, self.orders, strict=True)]
        if len(parts) == 1:
            return parts[0]
        whole = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), np.int16)
        for core, part in enumerate(parts):
            whole[core :: len(parts)] = part
        return whole


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
    """Return for each weight of the stream its place in `[ofm, ky, kx, ifm]`, or -1 for padding."""
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


def arrange(values: Weights, order: WeightOrder) -> Weights:
    """Bring one core's weights into `[ofm_depth, kernel_height, kernel_width, ifm_depth or 1]`.

    Raises E621 when there are fewer weights than the operation needs, E622 for a weight where the
    order demands padding.
    """
    ifm_depth = 1 if order.depthwise else order.ifm_depth
    shape = (order.ofm_depth, order.kernel_height, order.kernel_width, ifm_depth)
    weights = np.zeros(int(np.prod(shape)), np.int16)
    place(values, positions(order), weights, "Ethos-U55/U65")
    return weights.reshape(shape)


def place(
    values: Weights, positions: npt.NDArray[np.int64], weights: Weights, machine: str
) -> None:
    """Put a stream's weights to their places; E621 for too few, E622 for one in the padding."""
    if len(values) < len(positions):
        raise fail(
            "E621",
            f"a weight stream must hold {len(positions)} weights here, not {len(values)}",
            rule=f"order of weights in the stream, {machine}",
            help="the stream was made for another block size, or its bytes are damaged",
        )
    real = positions >= 0
    if values[: len(positions)][~real].any() or values[len(positions) :].any():
        raise fail(
            "E622",
            "padding in a weight stream must be zero, and is not",
            rule=f"order of weights in the stream, {machine}",
            help="the stream was made for another block size, or its bytes are damaged",
        )
    weights[positions[real]] = values[: len(positions)][real]
