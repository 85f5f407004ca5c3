"""Who has which part of the SRAM between the passes, and where a pass still finds room.

An offset is the same in every bank: what is divided is one bank, and sizes are those of a bank's
share. Placement is first fit, from the beginning or from the end.

Ref: Ethos-N driver stack 23.02, the Support Library's SRAM allocation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

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
    """Take `size` bytes of the first hole that has them; give what is left, and where they are."""
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
