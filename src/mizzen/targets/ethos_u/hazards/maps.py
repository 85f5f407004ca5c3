"""Where the elements of feature maps lie: the bytes of any box of a map.

Written from the layout of the registers alone, apart from the simulator, which has its own.

Ref: Ethos-U55, U65 and U85 technical reference manuals, feature map formats and tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from mizzen.targets.ethos_u.hazards.intervals import EMPTY, Intervals, grid

BRICK = 16
"""Channels in one brick of NHCWB16."""


class Kind(Enum):
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
        return any(low >= high for low, high in zip(self.start, self.stop, strict=True))


@dataclass(frozen=True, slots=True)
class Tile:
    """A rectangle of a map with a base of its own."""

    top: int
    left: int
    bottom: int
    right: int
    base: int


@dataclass(frozen=True, slots=True)
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

    @property
    def bytes(self) -> Intervals:
        """The bytes of all elements."""
        return bytes_of(self, self.box)

    def tiles(self) -> Iterator[Tile]:
        """Return the tiles of the whole map; some may be empty."""
        height, width, _ = self.shape
        if self.stacked:
            first, second = min(self.height_0, height), min(self.height_1, height)
            third = max(first, second)
            yield Tile(0, 0, first, width, self.bases[0])
            yield Tile(first, 0, second, width, self.bases[1])
            yield Tile(third, 0, height, width, self.bases[2] + (third - second) * self.stride_y)
            return
        split = min(self.width_0, width)
        for column, (left, right, rows) in enumerate(
            ((0, split, self.height_0), (split, width, self.height_1))
        ):
            middle = min(rows, height)
            yield Tile(0, left, middle, right, self.bases[column])
            yield Tile(middle, left, height, right, self.bases[column + 2])


@lru_cache(maxsize=4096)
def bytes_of(fm: Map, box: Box) -> Intervals:
    """Return the bytes of the elements of `fm` that lie in `box`."""
    if box.is_empty:
        return EMPTY
    found = EMPTY
    for tile in fm.tiles():
        top, bottom = max(tile.top, box.start[0]), min(tile.bottom, box.stop[0])
        left, right = max(tile.left, box.start[1]), min(tile.right, box.stop[1])
        if top >= bottom or left >= right:
            continue
        base = tile.base + (top - tile.top) * fm.stride_y
        rows, columns = bottom - top, right - left
        for start, length, steps in _runs(fm, left - tile.left, box.start[2], box.stop[2]):
            found = found | grid(
                base + start, length, ((columns, steps[0]), (rows, fm.stride_y), *steps[1])
            )
    return found


Steps = tuple[int, tuple[tuple[int, int], ...]]


def _runs(fm: Map, x: int, low: int, high: int) -> Iterator[tuple[int, int, Steps]]:
    """Return runs of channels `low .. high - 1`: start, length, step along x, other steps."""
    size = fm.element_bytes
    if not fm.bricks:
        yield x * fm.stride_x + low * size, (high - low) * size, (fm.stride_x, ())
        return
    step = BRICK * size
    whole_low, whole_high = -(-low // BRICK), high // BRICK
    if whole_low < whole_high:
        bricks = ((whole_high - whole_low, fm.stride_c),)
        yield x * step + whole_low * fm.stride_c, step, (step, bricks)
    if whole_low > whole_high:  # within one brick
        parts = [(low, high)]
    else:
        parts = [(low, whole_low * BRICK), (whole_high * BRICK, high)]
    for start, end in parts:
        if start < end:
            offset = x * step + start // BRICK * fm.stride_c + start % BRICK * size
            yield offset, (end - start) * size, (step, ())
