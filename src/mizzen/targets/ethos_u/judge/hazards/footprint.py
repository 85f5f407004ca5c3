"""The bytes that an access touches, as few grids of runs: their arithmetic costs no memory.

A grid is `rows` x `columns` runs of bytes at two distances. Any box of a feature map is a few of
them, whatever its size. Whether two grids share a byte is answered from their numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mizzen.targets.ethos_u.judge.hazards.intervals import EMPTY, Intervals, merged, require_sense

CANDIDATES = 4096
"""Pairs of runs that are looked at one by one before NumPy compares all runs at once."""


class Grid(NamedTuple):
    """Runs of `length` bytes at `start + i * step + j * stride`, i < columns, j < rows.

    Made by `grid`: `step <= stride`, and runs neither touch nor overlap along `step`. Where runs
    have grown together along an axis, that axis has one element and a distance of 0.
    """

    start: int
    length: int
    columns: int
    step: int
    rows: int
    stride: int

    @property
    def end(self) -> int:
        """One past the highest byte."""
        along = (self.columns - 1) * self.step + (self.rows - 1) * self.stride
        return self.start + along + self.length

    @property
    def is_run(self) -> bool:
        """Whether it is one run of bytes."""
        return self.columns == 1 and self.rows == 1


Axis = tuple[int, int]
"""How many, and the distance between two neighbours in bytes."""


def grid(start: int, length: int, one: Axis = (1, 0), other: Axis = (1, 0)) -> Grid | None:
    """Return the grid of runs along two axes, one at least; None if it has no bytes.

    Raises E613 for more runs or longer ones than any stream that makes sense has.
    """
    if length <= 0:
        return None
    (columns, step), (lines, stride) = one, other
    columns, lines = max(1, columns), max(1, lines)
    if step < 0:
        start, step = start + (columns - 1) * step, -step
    if stride < 0:
        start, stride = start + (lines - 1) * stride, -stride
    if step > stride:
        columns, step, lines, stride = lines, stride, columns, step
    for _ in range(2):
        if step <= length:
            length += (columns - 1) * step
            columns, step, lines, stride = lines, stride, 1, 0
    require_sense(columns * lines, length)
    return Grid(start, length, columns, step, lines, stride)


@dataclass(frozen=True, slots=True)
class Footprint:
    """The bytes of some grids, which may share some: the lowest, and one past the highest.

    Both are 0 where there are no bytes.
    """

    grids: tuple[Grid, ...]
    first: int
    end: int

    def __bool__(self) -> bool:
        return bool(self.grids)

    def touches(self, other: Footprint) -> bool:
        """Whether a byte is in both."""
        if self.first >= other.end or other.first >= self.end:
            return False
        for one in self.grids:
            for another in other.grids:
                if meet(one, another):
                    return True
        return False

    @property
    def intervals(self) -> Intervals:
        """Every run, sorted; as much memory as there are runs."""
        return expanded(self.grids)


def footprint(grids: Iterable[Grid | None]) -> Footprint:
    """Put grids together."""
    present = tuple([item for item in grids if item is not None])
    if not present:
        return NOTHING
    first, end = present[0].start, present[0].end
    for item in present[1:]:
        first, end = min(first, item.start), max(end, item.end)
    return Footprint(present, first, end)


def run(start: int, length: int) -> Footprint:
    """Return `length` bytes from `start`."""
    one = grid(start, length)
    return NOTHING if one is None else Footprint((one,), one.start, one.end)


NOTHING = Footprint((), 0, 0)


def expanded(grids: Iterable[Grid]) -> Intervals:
    """Return every run of some grids, sorted."""
    starts: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    ends: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    for item in grids:
        columns = np.arange(item.columns, dtype=np.int64) * item.step
        lines = np.arange(item.rows, dtype=np.int64) * item.stride
        starts.append((item.start + lines[:, None] + columns).ravel())
        ends.append(starts[-1] + item.length)
    return merged(np.concatenate(starts), np.concatenate(ends)) if starts else EMPTY


def meet(one: Grid, other: Grid) -> bool:
    """Whether a byte is in both grids.

    They meet where `-other.length < between + sum(d * distance) < one.length` for some d of each
    axis, whose bounds are those of the differences of two indices. The longest distances go first:
    what the shorter ones can still make up leaves few d to try.
    """
    if one.start >= other.end or other.start >= one.end:
        return False
    if one.is_run and other.is_run:
        return True
    low, high = 1 - other.length, one.length - 1
    offsets = [other.start - one.start]
    axes = _axes(one, other)
    for place, (distance, least, most) in enumerate(axes):
        rest = axes[place + 1 :]
        below = low - sum([way * end for way, _, end in rest])
        above = high - sum([way * end for way, end, _ in rest])
        following: list[int] = []
        for at in offsets:
            first = max(least, -((at - below) // distance))
            last = min(most, (above - at) // distance)
            if last - first + len(following) > CANDIDATES:
                return expanded((one,)).touches(expanded((other,)))
            following += [at + d * distance for d in range(first, last + 1)]
        offsets = following
    return bool(offsets)


def _axes(one: Grid, other: Grid) -> list[tuple[int, int, int]]:
    """Return distance, least and greatest difference of indices of each axis, longest first."""
    least: dict[int, int] = {}
    most: dict[int, int] = {}
    for count, distance in ((one.columns, one.step), (one.rows, one.stride)):
        if count > 1:
            least[distance] = least.get(distance, 0) + 1 - count
    for count, distance in ((other.columns, other.step), (other.rows, other.stride)):
        if count > 1:
            most[distance] = most.get(distance, 0) + count - 1
    distances = sorted({*least, *most}, reverse=True)
    return [(way, least.get(way, 0), most.get(way, 0)) for way in distances]
