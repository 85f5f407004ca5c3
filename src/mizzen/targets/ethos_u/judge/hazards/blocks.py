"""Operations as the NPU does them: block after block, each with its part of inputs and output.

The blocks of an output follow each other along depth first, then width, then height. A
convolution does each of them in several jobs, one for each slab of input channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mizzen.targets.ethos_u.judge.hazards.footprint import NOTHING, Footprint
from mizzen.targets.ethos_u.judge.hazards.maps import Box, Map, bytes_of

Shape = tuple[int, int, int]


class Window(Protocol):
    """How the part of an input that an output block needs follows from the block."""

    def of(self, block: Box, shape: Shape) -> Box:
        """Return the box of an input of `shape` that `block` needs."""
        ...


@dataclass(frozen=True, slots=True)
class Axis:
    """A kernel along one axis: its step, its extent with dilation, and what it pads before.

    `upscale` is 2 where the input is doubled first.
    """

    stride: int
    extent: int
    pad: int
    upscale: int

    def range(self, start: int, stop: int, size: int) -> tuple[int, int]:
        """Return the input positions that outputs `start .. stop - 1` need."""
        low = start * self.stride - self.pad
        high = (stop - 1) * self.stride + self.extent - self.pad
        return max(0, low // self.upscale), min(size, -(-high // self.upscale))


@dataclass(frozen=True, slots=True)
class Sliding:
    """A kernel that slides; `every_channel` where each output channel needs all of the input's."""

    y: Axis
    x: Axis
    every_channel: bool

    def of(self, block: Box, shape: Shape) -> Box:
        """Return the box under the kernel."""
        top, bottom = self.y.range(block.start[0], block.stop[0], shape[0])
        left, right = self.x.range(block.start[1], block.stop[1], shape[1])
        low, high = (0, shape[2]) if self.every_channel else (block.start[2], block.stop[2])
        return Box((top, left, low), (bottom, right, high))


@dataclass(frozen=True, slots=True)
class Pointwise:
    """Element by element; an axis of extent 1 is broadcast."""

    def of(self, block: Box, shape: Shape) -> Box:
        """Return the block itself, or all of a broadcast axis."""
        spans = [
            (0, 1) if size == 1 else (low, min(high, size))
            for low, high, size in zip(block.start, block.stop, shape, strict=True)
        ]
        return _box(spans)


@dataclass(frozen=True, slots=True)
class Whole:
    """Every block needs all of it."""

    def of(self, block: Box, shape: Shape) -> Box:
        """Return the whole input."""
        return Box((0, 0, 0), shape)


@dataclass(frozen=True, slots=True)
class Samples:
    """Positions of RESIZE along one axis: output i lies at `(i * step + offset) / scale`."""

    scale: int
    step: int
    offset: int

    def range(self, start: int, stop: int, size: int) -> tuple[int, int]:
        """Return the input positions next to outputs `start .. stop - 1`, clamped to the map."""
        low = (start * self.step + self.offset) // self.scale
        high = ((stop - 1) * self.step + self.offset) // self.scale + 1
        return min(max(0, low), size - 1), min(max(0, high), size - 1) + 1


@dataclass(frozen=True, slots=True)
class Sampled:
    """RESIZE: the neighbours of each position."""

    y: Samples
    x: Samples

    def of(self, block: Box, shape: Shape) -> Box:
        """Return the box that holds all neighbours."""
        lines = self.y.range(block.start[0], block.stop[0], shape[0])
        columns = self.x.range(block.start[1], block.stop[1], shape[1])
        return _box([lines, columns, (block.start[2], block.stop[2])])


@dataclass(frozen=True, slots=True)
class Input:
    """A feature map that an operation reads; `what` is its name in the registers.

    `slab` is how many channels one job reads, None where it reads all that it needs.
    """

    what: str
    map: Map
    window: Window
    slab: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A feature map that an operation writes; `axes` and `reversed` say how it is turned."""

    map: Map
    axes: Shape = (0, 1, 2)
    reversed: int | None = None


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of an operation: `shape` is its result's before it is turned."""

    shape: Shape
    block: Shape
    inputs: tuple[Input, ...]
    result: Result | None

    @property
    def counts(self) -> Shape:
        """Blocks along each axis."""
        (tall, wide, deep), (height, width, depth) = self.block, self.shape
        return -(-height // tall), -(-width // wide), -(-depth // deep)

    @property
    def total(self) -> int:
        """Blocks in all."""
        lines, columns, slices = self.counts
        return lines * columns * slices

    def at(self, index: int) -> Box:
        """Return a block by its number; depth runs fastest, then width, then height."""
        _, columns, slices = self.counts
        (tall, wide, deep), (height, width, depth) = self.block, self.shape
        index, slice_ = divmod(index, slices)
        line, column = divmod(index, columns)
        y, x, c = line * tall, column * wide, slice_ * deep
        return Box((y, x, c), (min(height, y + tall), min(width, x + wide), min(depth, c + deep)))

    def first_jobs(self, number: int, item: Input) -> list[Box]:
        """Return the box that each of the first `number` jobs reads of an input, if it is there."""
        jobs: list[Box] = []
        for index in range(min(number, self.total)):
            block = self.at(index)
            boxes = [other.window.of(block, other.map.shape) for other in self.inputs]
            slabs = max(map(_slabs, self.inputs, boxes), default=1)
            mine = item.window.of(block, item.map.shape)
            jobs += [_slab(item, mine, slab) for slab in range(min(slabs, number - len(jobs)))]
        return jobs

    def last_written(self, number: int) -> list[Box]:
        """Return which boxes of the result the last blocks write, the very last first."""
        total = self.total
        return [self.turned(self.at(total - 1 - i)) for i in range(min(number, total))]

    def turned(self, block: Box) -> Box:
        """Return the box of the result that a block writes."""
        assert self.result is not None
        axes, axis = self.result.axes, self.result.reversed
        if axes == (0, 1, 2) and axis is None:
            return block
        spans = list(zip(block.start, block.stop, strict=True))
        if axis is not None:
            size = self.shape[axis]
            spans[axis] = (size - spans[axis][1], size - spans[axis][0])
        return _box([spans[axis] for axis in axes])

    def written(self, block: Box) -> Footprint:
        """Return the bytes that a block writes."""
        if self.result is None:
            return NOTHING
        return bytes_of(self.result.map, self.turned(block))


def _box(spans: list[tuple[int, int]]) -> Box:
    (top, bottom), (left, right), (low, high) = spans
    return Box((top, left, low), (bottom, right, high))


def _slabs(item: Input, box: Box) -> int:
    depth = box.stop[2] - box.start[2]
    return 1 if item.slab is None else max(1, -(-depth // item.slab))


def _slab(item: Input, box: Box, number: int) -> Box:
    """Return the part of a box that one job reads; what has no slabs is read by every job."""
    if item.slab is None:
        return box
    low = min(box.stop[2], box.start[2] + number * item.slab)
    high = min(box.stop[2], low + item.slab)
    return Box((*box.start[:2], low), (*box.stop[:2], high))
