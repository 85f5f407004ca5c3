"""Where the elements of feature maps lie: the bytes of any box of a map.

Written from the layout of the registers alone, apart from the simulator, which has its own.

Ref: Ethos-U55, U65 and U85 technical reference manuals, feature map formats and tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property

from mizzen.targets.ethos_u.judge.hazards.footprint import NOTHING, Footprint, Grid, footprint, grid

BRICK = 16
"""Channels in one brick of NHCWB16."""


class Kind(StrEnum):
    """Kinds of memory that operations touch."""

    REGION = "region"
    INTERNAL = "internal"
    CHAIN = "chain buffer"


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """A memory: a region by its number, the NPU's own by 0, a chain buffer by its number."""

    kind: Kind
    index: int = 0

    def __str__(self) -> str:
        if self.kind is Kind.INTERNAL:
            return "the NPU's internal memory"
        return f"{self.kind.value} {self.index}"


@cache
def region_block(index: int) -> MemoryBlock:
    """Return a region by its number, the same object every time."""
    return MemoryBlock(Kind.REGION, index)


INTERNAL = MemoryBlock(Kind.INTERNAL)
"""The shared buffer of U55 and U65, the table memory of U85."""


@dataclass(frozen=True, slots=True)
class Box:
    """Elements `start <= (y, x, c) < stop` of a map."""

    start: tuple[int, int, int]
    stop: tuple[int, int, int]

    @property
    def is_empty(self) -> bool:
        """Whether there is no element in it."""
        (top, left, low), (bottom, right, high) = self.start, self.stop
        return top >= bottom or left >= right or low >= high

    def meets(self, other: Box) -> bool:
        """Whether an element is in both."""
        (top, left, low), (bottom, right, high) = self.start, self.stop
        (above, before, under), (below, behind, over) = other.start, other.stop
        return (
            max(top, above) < min(bottom, below)
            and max(left, before) < min(right, behind)
            and max(low, under) < min(high, over)
        )


@dataclass(frozen=True, slots=True)
class Tile:
    """A rectangle of a map with a base of its own."""

    top: int
    left: int
    bottom: int
    right: int
    base: int


@dataclass(frozen=True)
class Map:
    """A feature map `[height, width, depth]`; strides and bases in bytes.

    bricks   whether the format is NHCWB16 instead of NHWC
    stacked  whether tiles lie one below the other (TILE3X1) instead of 2 x 2
    """

    place: MemoryBlock
    shape: tuple[int, int, int]
    element_bytes: int
    bases: tuple[int, int, int, int]
    height_0: int
    height_1: int
    width_0: int
    stride_y: int
    stride_x: int
    stride_c: int
    bricks: bool
    stacked: bool

    @property
    def box(self) -> Box:
        """All of it."""
        return Box((0, 0, 0), self.shape)

    @cached_property
    def bytes(self) -> Footprint:
        """The bytes of all elements."""
        return bytes_of(self, self.box)

    @property
    def is_one_tile(self) -> bool:
        """Whether all of it lies at the first base."""
        height, width, _ = self.shape
        return height <= self.height_0 and (self.stacked or width <= self.width_0)

    @property
    def tiles(self) -> Sequence[Tile]:
        """The tiles of the whole map; some may be empty."""
        height, width, _ = self.shape
        if self.is_one_tile:
            return (Tile(0, 0, height, width, self.bases[0]),)
        if self.stacked:
            first, second = min(self.height_0, height), min(self.height_1, height)
            third = max(first, second)
            last = self.bases[2] + (third - second) * self.stride_y
            return (
                Tile(0, 0, first, width, self.bases[0]),
                Tile(first, 0, second, width, self.bases[1]),
                Tile(third, 0, height, width, last),
            )
        split = min(self.width_0, width)
        upper, other = min(self.height_0, height), min(self.height_1, height)
        return (
            Tile(0, 0, upper, split, self.bases[0]),
            Tile(upper, 0, height, split, self.bases[2]),
            Tile(0, split, other, width, self.bases[1]),
            Tile(other, split, height, width, self.bases[3]),
        )


def are_alike(one: Map, other: Map) -> bool:
    """Whether elements of two maps share bytes where, and only where, their coordinates are equal.

    False where that takes more than a comparison of bases and distances to tell.
    """
    if one.element_bytes != other.element_bytes or one.place != other.place:
        return False
    if one.bricks != other.bricks or one.bases[0] != other.bases[0]:
        return False
    if one.stride_y != other.stride_y or not (one.is_one_tile and other.is_one_tile):
        return False
    height, width, depth = map(max, one.shape, other.shape)
    down = height, one.stride_y
    if not one.bricks:
        pixels = width, one.stride_x
        return one.stride_x == other.stride_x and _nest(depth * one.element_bytes, pixels, down)
    bricks = -(-depth // BRICK), one.stride_c
    row_bytes = BRICK * one.element_bytes * width
    inner, outer = (bricks, down) if one.stride_c <= one.stride_y else (down, bricks)
    return one.stride_c == other.stride_c and _nest(row_bytes, inner, outer)


def overlaps_itself(fm: Map) -> bool:
    """Whether two elements of a map share bytes."""
    height, width, depth = fm.shape
    down = height, fm.stride_y
    if fm.bricks:
        unit = min(depth, BRICK)
        axes = (width, BRICK * fm.element_bytes), (-(-depth // BRICK), fm.stride_c), down
    else:
        unit = depth
        axes = (width, fm.stride_x), down
    by_distance = sorted(axes, key=lambda axis: axis[1])
    if fm.is_one_tile and _nest(unit * fm.element_bytes, *by_distance):
        return False
    return fm.bytes.intervals.size < height * width * depth * fm.element_bytes


def _nest(bytes_: int, *axes: tuple[int, int]) -> bool:
    """Whether no two places along axes, each a count and a distance, share one of so many bytes."""
    for count, distance in axes:
        if count > 1:
            if distance < bytes_:
                return False
            bytes_ += (count - 1) * distance
    return True


def bytes_of(fm: Map, box: Box) -> Footprint:
    """Return the bytes of the elements of `fm` that lie in `box`."""
    if box.is_empty:
        return NOTHING
    (top, left, low), (bottom, right, high) = box.start, box.stop
    part = _bricks if fm.bricks else _pixels
    grids: list[Grid | None] = []
    for tile in fm.tiles:
        first, last = max(tile.top, top), min(tile.bottom, bottom)
        start, stop = max(tile.left, left), min(tile.right, right)
        if first < last and start < stop:
            base = tile.base + (first - tile.top) * fm.stride_y
            grids += part(fm, base, start - tile.left, (last - first, stop - start), (low, high))
    return footprint(grids)


def _pixels(
    fm: Map, base: int, x: int, extent: tuple[int, int], channels: tuple[int, int]
) -> list[Grid | None]:
    """Return the bytes of channels `low .. high - 1` of rows and columns in NHWC."""
    (lines, columns), (low, high), size = extent, channels, fm.element_bytes
    start = base + x * fm.stride_x + low * size
    return [grid(start, (high - low) * size, (columns, fm.stride_x), (lines, fm.stride_y))]


def _bricks(
    fm: Map, base: int, x: int, extent: tuple[int, int], channels: tuple[int, int]
) -> list[Grid | None]:
    """Return the bytes of channels `low .. high - 1` of rows and columns in NHWCB16."""
    (lines, columns), (low, high), size = extent, channels, fm.element_bytes
    step, down = BRICK * size, (lines, fm.stride_y)
    start = base + x * step
    grids: list[Grid | None] = []
    whole_low, whole_high = -(-low // BRICK), high // BRICK
    if whole_low < whole_high:
        first = start + whole_low * fm.stride_c
        grids.append(grid(first, columns * step, (whole_high - whole_low, fm.stride_c), down))
    if whole_low > whole_high:  # within one brick
        parts = [(low, high)]
    else:
        parts = [(low, whole_low * BRICK), (whole_high * BRICK, high)]
    for first, end in parts:
        if first < end:
            at = start + first // BRICK * fm.stride_c + first % BRICK * size
            grids.append(grid(at, (end - first) * size, (columns, step), down))
    return grids
