"""How passes use the SRAM: stripes, tiles, where they lie, and what stays there between passes.

A stripe is the part of a tensor that is worked on at a time; a tile is the SRAM for one or more
stripes of a tensor. An offset is the same in every bank: what is divided is one bank, and sizes are
those of a bank's share. Placement is first fit, from the beginning or from the end. What does not
stay goes to DRAM, perhaps compressed in cells, each with the room of an incompressible one.

Ref: Ethos-N driver stack 23.02, the Support Library's SRAM allocation; `g_FcafDeepCellShape`,
`g_FcafWideCellShape`, `g_FcafCellSizeBytes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from mizzen.targets.ethos_n.commands_values import Format, Strategy
from mizzen.targets.ethos_n.config import BRICK_GROUP_SHAPE, BlockConfig
from mizzen.targets.ethos_n.tensors import Shape

BRICK_HEIGHT, BRICK_WIDTH, BRICK_CHANNELS = BRICK_GROUP_SHAPE[1:]
"""Of a brick group."""


def divide_up(number: int, divisor: int) -> int:
    """Return the quotient rounded up."""
    return -(-number // divisor)


def round_up(number: int, multiple: int) -> int:
    """Return the next multiple."""
    return -(-number // multiple) * multiple


def volume(shape: Shape) -> int:
    """Return the number of elements, which is that of bytes."""
    return shape[0] * shape[1] * shape[2] * shape[3]


def brick_bytes(shape: Shape) -> int:
    """Return the size of a map in whole brick groups."""
    planes = round_up(shape[1], BRICK_HEIGHT) * round_up(shape[2], BRICK_WIDTH)
    return shape[0] * planes * round_up(shape[3], BRICK_CHANNELS)


@dataclass(frozen=True, slots=True)
class Tile:
    """The SRAM of one tensor in a pass.

    bytes   over all banks
    stripes that fit in it
    offset_bytes within each bank
    """

    stripe: Shape
    bytes: int
    stripes: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class McePlan:
    """How a pass of the compute engines cuts its tensors and where they lie.

    ple_offset_bytes  of the kernel of the programmable layer engine, within each bank
    """

    strategy: Strategy
    block: BlockConfig
    input: Tile
    weights: Tile
    output: Tile
    ple_offset_bytes: int


@dataclass(frozen=True, slots=True)
class PlePlan:
    """How a pass of the programmable layer engine alone cuts its tensors and where they lie."""

    inputs: tuple[Tile, ...]
    output: Tile
    ple_offset_bytes: int


CELLS = {Format.FCAF_DEEP: (8, 8, 32), Format.FCAF_WIDE: (8, 16, 16)}
"""Height, width and channels of a cell; the formats in the order of preference."""
CELL_BYTES = 2112


def consists_of_cells(format: Format, extents: tuple[int, ...]) -> bool:
    """Say whether height, width and channels are whole cells."""
    return all(extent % side == 0 for extent, side in zip(extents, CELLS[format], strict=True))


def cell_bytes(shape: Shape, format: Format) -> int:
    """Return the size of a compressed map."""
    cells = 1
    for extent, side in zip(shape[1:], CELLS[format], strict=True):
        cells *= divide_up(extent, side)
    return CELL_BYTES * cells


Hole = tuple[int, int]
"""Begin and end of a free part, bytes within a bank."""
Holes = tuple[Hole, ...]
"""All free parts in order, none beside another."""

Owner = TypeVar("Owner")


class Side(Enum):
    """From which side a place is looked for."""

    BEGIN = "begin"
    END = "end"

    @property
    def other(self) -> Side:
        """The opposite side."""
        return Side.END if self is Side.BEGIN else Side.BEGIN


def take(holes: Holes, size: int, side: Side) -> tuple[Holes, int] | None:
    """Take `size` bytes of the first hole that has them; return the rest, and where they are."""
    places = range(len(holes)) if side is Side.BEGIN else range(len(holes) - 1, -1, -1)
    for place in places:
        begin, end = holes[place]
        if size <= end - begin:
            offset = begin if side is Side.BEGIN else end - size
            return _without(holes, place, offset, size), offset
    return None


def _without(holes: Holes, place: int, offset: int, size: int) -> Holes:
    begin, end = holes[place]
    parts = ((begin, offset), (offset + size, end))
    return holes[:place] + tuple(part for part in parts if part[0] < part[1]) + holes[place + 1 :]


def _take_at(holes: Holes, offset: int, size: int) -> Holes:
    for place, (begin, end) in enumerate(holes):
        if begin <= offset and offset + size <= end:
            return _without(holes, place, offset, size)
    raise AssertionError("what is kept was free before")


def _give_back(holes: Holes, offset: int, size: int) -> Holes:
    merged: list[Hole] = []
    for begin, end in sorted((*holes, (offset, offset + size))):
        if merged and merged[-1][1] == begin:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return tuple(merged)


@dataclass(slots=True)
class _Resident(Generic[Owner]):
    size: int
    owners: list[Owner]


@dataclass(slots=True)
class Sram(Generic[Owner]):
    """The feature maps that stay in SRAM from one pass to others, each with those who need it."""

    holes: Holes
    residents: dict[int, _Resident[Owner]] = field(default_factory=dict[int, "_Resident[Owner]"])

    def keep(self, offset: int, size: int, owner: Owner) -> None:
        """Leave a map where a pass has put it."""
        self.holes = _take_at(self.holes, offset, size)
        self.residents[offset] = _Resident(size, [owner])

    def share(self, offset: int, owner: Owner) -> None:
        """Count one more who needs the map."""
        self.residents[offset].owners.append(owner)

    def release(self, offset: int, owner: Owner) -> None:
        """Count one less; with the last, the map's place is free."""
        resident = self.residents[offset]
        resident.owners.remove(owner)
        if not resident.owners:
            del self.residents[offset]
            self.holes = _give_back(self.holes, offset, resident.size)
