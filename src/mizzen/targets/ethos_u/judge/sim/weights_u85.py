"""The order of weights in the streams of Ethos-U85.

One order for all cores: the MAC array takes output channels in groups of four, and the groups go
round over the streams. Checked against compiled networks on all five configurations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.judge.sim.weights import SUBKERNEL, Weights, place

GROUP = 4
"""Output channels that go to one stream together."""
ELEMENTS = 10
"""Kernel elements that a part-kernel or depthwise round takes; part-kernel of 8 bit takes half."""

Element = tuple[int, int] | None
"""A kernel element, or padding."""
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LayoutU85:
    """What decides the order of weights.

    The kernel is in elements, without dilation; `dilation` only shrinks the sub-kernels.
    `ofm_ublock_depth` is the depth of the microblock.
    """

    ofm_depth: int
    ifm_depth: int
    kernel_height: int
    kernel_width: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    ofm_block_depth: int
    ofm_ublock_depth: int
    ifm_bits: int
    macs: int
    streams: int
    depthwise: bool
    part_kernel: bool
    sparse: bool
    is_fast: bool

    @property
    def ifm_block_depth(self) -> int:
        """Input channels per block."""
        if self.part_kernel:
            return 16
        if self.sparse and self.ifm_bits == 8:
            return 128
        small = self.macs <= 256 and self.ofm_ublock_depth == 16 and not self.sparse
        return 32 if self.ifm_bits == 32 or small else 64

    @property
    def ifm_ublock_depth(self) -> int:
        """Input channels that are walked before the next output microblock."""
        if self.part_kernel:
            return 8 if self.ifm_bits == 16 and not self.sparse else 16
        return self.ifm_block_depth

    @property
    def ifm_step(self) -> int:
        """Input channels taken at once."""
        if self.depthwise:
            return 1
        return 16 if self.sparse else 8

    @property
    def round_elements(self) -> int:
        """Kernel elements are padded to a multiple of this."""
        if self.depthwise:
            return ELEMENTS
        if not self.part_kernel:
            return 1
        return ELEMENTS if self.ifm_bits == 16 or self.sparse else ELEMENTS // 2

    @property
    def gap_elements(self) -> int:
        """Padding after every round of a depthwise kernel."""
        if not self.depthwise or (self.ifm_bits == 8 and self.macs <= 256):
            return 0
        return 2 if self.macs <= 512 else 6

    def arrange(self, streams: Sequence[Weights]) -> Weights:
        """Bring decoded streams into `[O, kernel height, kernel width, I or 1]`; E621, E622."""
        ifm_depth = 1 if self.depthwise else self.ifm_depth
        shape = (self.ofm_depth, self.kernel_height, self.kernel_width, ifm_depth)
        weights = np.zeros(int(np.prod(shape)), np.int16)
        for values, where in zip(streams, positions(self), strict=True):
            place(values, where, weights, "Ethos-U85")
        return weights.reshape(shape)


@lru_cache(maxsize=64)
def positions(layout: LayoutU85) -> tuple[Positions, ...]:
    """Return for each weight of a stream its place in `[ofm, ky, kx, ifm]`, or -1 for padding."""
    parts: list[list[Positions]] = [[] for _ in range(1 if layout.is_fast else layout.streams)]
    blocks = list(range(0, layout.ifm_depth, layout.ifm_block_depth))
    if layout.depthwise:
        blocks = [0]
    for index, ofm in enumerate(range(0, layout.ofm_depth, layout.ofm_block_depth)):
        for ifm in reversed(blocks) if index % 2 else blocks:
            for elements in _subkernels(layout):
                walked = _walk(layout, ofm, ifm, elements)
                for stream, part in zip(parts, _by_stream(layout, walked), strict=True):
                    stream.append(part)
    return tuple(np.concatenate(stream) for stream in parts)


def _subkernels(layout: LayoutU85) -> Iterator[list[Element]]:
    height, width = SUBKERNEL // layout.dilation_y, SUBKERNEL // layout.dilation_x
    for x in range(0, layout.kernel_width, width):
        for y in range(0, layout.kernel_height, height):
            lines = range(y, min(y + height, layout.kernel_height))
            columns = range(x, min(x + width, layout.kernel_width))
            yield _padded(layout, list(_elements(layout, lines, columns)))


def _elements(layout: LayoutU85, lines: range, columns: range) -> Iterator[Element]:
    """Walk a sub-kernel, phase of the stride by phase, back and forth along its rows."""
    phased = layout.part_kernel or layout.depthwise
    step_y, step_x = (layout.stride_y, layout.stride_x) if phased else (1, 1)
    for phase_y in range(min(step_y, len(lines))):
        for phase_x in range(min(step_x, len(columns))):
            for turn, y in enumerate(lines[phase_y::step_y]):
                line = columns[phase_x::step_x]
                yield from ((y, x) for x in (reversed(line) if turn % 2 else line))


def _padded(layout: LayoutU85, elements: list[Element]) -> list[Element]:
    step = layout.round_elements
    made: list[Element] = []
    for start in range(0, len(elements), step):
        taken = elements[start : start + step]
        made += [*taken, *[None] * (step - len(taken) + layout.gap_elements)]
    return made


def _walk(layout: LayoutU85, ofm: int, ifm: int, elements: list[Element]) -> Positions:
    """Places of one block, `[ifm ublock, ofm ublock, element, ifm step, group, ofm, ifm]`."""
    depth = min(layout.ofm_block_depth, layout.ofm_depth - ofm)
    ublocks = -(-depth // layout.ofm_ublock_depth)
    o = np.arange(ublocks * layout.ofm_ublock_depth)
    o_ = o.reshape(1, ublocks, 1, 1, -1, min(GROUP, layout.ofm_ublock_depth), 1)
    i_ = _ifm_channels(layout, ifm)[:, None, None, :, None, None, :]
    element = [-1 if e is None else e[0] * layout.kernel_width + e[1] for e in elements]
    e_ = np.array(element, np.int64)[None, None, :, None, None, None, None]
    ifm_depth = 1 if layout.depthwise else layout.ifm_depth
    inside = (o_ < depth) & (i_ < ifm_depth) & (e_ >= 0)
    flat = (ofm + o_) * (layout.kernel_height * layout.kernel_width) + e_
    return np.where(inside, flat * ifm_depth + i_, -1)


def _ifm_channels(layout: LayoutU85, ifm: int) -> Positions:
    """Input channels of one block, `[ublock, step, channel]`."""
    if layout.depthwise:
        return np.zeros((1, 1, 1), np.int64)
    ublock = layout.ifm_ublock_depth
    count = -(-min(layout.ifm_block_depth, layout.ifm_depth - ifm) // ublock)
    return ifm + np.arange(count * ublock).reshape(count, -1, layout.ifm_step)


def _by_stream(layout: LayoutU85, walked: Positions) -> list[Positions]:
    cores = [walked[:, :, :, :, core :: layout.streams] for core in range(layout.streams)]
    if not layout.is_fast:
        return [part.ravel() for part in cores]
    # One stream for all cores, which take turns after every round of elements.
    ifm, ofm, elements, *_ = cores[0].shape
    rounds = [part.reshape(ifm, ofm, elements // layout.round_elements, -1) for part in cores]
    return [np.stack(rounds, axis=3).ravel()]
