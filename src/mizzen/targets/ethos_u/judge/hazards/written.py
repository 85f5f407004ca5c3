"""The bytes of one memory that have been written, as they come: runs and grids that grow together.

A network writes a tensor in slices, stripes and rolling rows, and reads it whole: neighbours are
joined when they are added, so that a question is mostly answered by one run or one grid. Where it
is not, all that lies in the questioned range is compared run by run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from mizzen.targets.ethos_u.judge.hazards.footprint import Footprint, Grid, expanded, grid, meet
from mizzen.targets.ethos_u.judge.hazards.intervals import EMPTY, Intervals


class Written:
    """A set of bytes: sorted runs that do not touch, and grids by their distances."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._grids: dict[tuple[int, int], list[Grid]] = {}

    @property
    def intervals(self) -> Intervals:
        """The whole set."""
        runs = zip(self._starts, self._ends, strict=True)
        every = [Grid(start, end - start, 1, 0, 1, 0) for start, end in runs]
        return expanded([*every, *(item for alike in self._grids.values() for item in alike)])

    def add(self, bytes_: Footprint) -> None:
        """Put an access's bytes into the set."""
        for item in bytes_.grids:
            self._add(item)

    def _add(self, item: Grid) -> None:
        if item.is_run:
            self._add_run(item.start, item.end)
        elif not self._in_run(item.start, item.end):
            self._add_grid(item)

    def _add_run(self, start: int, end: int) -> None:
        starts, ends = self._starts, self._ends
        low, high = bisect_left(ends, start), bisect_right(starts, end)
        if low < high:
            start, end = min(start, starts[low]), max(end, ends[high - 1])
        starts[low:high], ends[low:high] = [start], [end]

    def _add_grid(self, item: Grid) -> None:
        alike = self._grids.setdefault((item.step, item.stride), [])
        for place, other in enumerate(alike):
            joint = joined(item, other)
            if joint is other:
                return
            if joint is not None:
                del alike[place]
                self._add(joint)
                return
        alike.append(item)

    def missing(self, bytes_: Footprint) -> Intervals:
        """Return the bytes of an access that are not in the set."""
        missing = EMPTY
        for item in bytes_.grids:
            if not self._holds(item) and (rest := expanded((item,)) - self._near(item)):
                missing = missing | rest
        return missing

    def holds(self, bytes_: Footprint) -> bool:
        """Whether for each grid of an access one run or one grid of the set has all of it."""
        return all(self._holds(item) for item in bytes_.grids)

    def touches(self, bytes_: Footprint) -> bool:
        """Whether a byte of an access is in the set."""
        return any(self._touches(item) for item in bytes_.grids)

    def shared(self, bytes_: Footprint) -> Intervals:
        """Return the bytes of an access that are in the set."""
        shared = EMPTY
        for item in bytes_.grids:
            if self._touches(item):
                shared = shared | (expanded((item,)) & self._near(item))
        return shared

    def remove(self, runs: Iterable[tuple[int, int]]) -> None:
        """Take runs of bytes, each its first and one past its last, out of the set."""
        for start, end in runs:
            self._cut(start, end)
            hole = Grid(start, end - start, 1, 0, 1, 0)
            for alike in self._grids.values():
                for item in [item for item in alike if meet(item, hole)]:
                    alike.remove(item)
                    self._add_all(expanded((item,)) - expanded((hole,)))

    def _cut(self, start: int, end: int) -> None:
        starts, ends = self._starts, self._ends
        low, high = bisect_right(ends, start), bisect_left(starts, end)
        if low >= high:
            return
        kept = [(starts[low], start), (end, ends[high - 1])]
        kept = [(first, last) for first, last in kept if first < last]
        starts[low:high] = [first for first, _ in kept]
        ends[low:high] = [last for _, last in kept]

    def _add_all(self, bytes_: Intervals) -> None:
        for start, end in bytes_.runs:
            self._add_run(start, end)

    def _in_run(self, start: int, end: int) -> bool:
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and end <= self._ends[at]

    def _holds(self, item: Grid) -> bool:
        if self._in_run(item.start, item.end):
            return True
        alike = self._grids.get((item.step, item.stride), ())
        return any(joined(item, other) is other for other in alike)

    def _touches(self, item: Grid) -> bool:
        low, high = bisect_right(self._ends, item.start), bisect_left(self._starts, item.end)
        runs = zip(self._starts[low:high], self._ends[low:high], strict=True)
        if any(meet(item, Grid(start, end - start, 1, 0, 1, 0)) for start, end in runs):
            return True
        return any(meet(item, other) for alike in self._grids.values() for other in alike)

    def _near(self, item: Grid) -> Intervals:
        """Return the set between the ends of a grid, and what of its runs goes on beyond."""
        start, end = item.start, item.end
        low, high = bisect_right(self._ends, start), bisect_left(self._starts, end)
        runs = zip(self._starts[low:high], self._ends[low:high], strict=True)
        near = [Grid(first, last - first, 1, 0, 1, 0) for first, last in runs]
        for alike in self._grids.values():
            near += [other for other in alike if other.start < end and start < other.end]
        return expanded(near)


def joined(one: Grid, other: Grid) -> Grid | None:
    """Return the grid that has the bytes of both; None if they do not make one grid.

    Both have the same distances. Where one of them has all bytes of the other, it is the answer
    itself.
    """
    return _joined(one, other) if one.start < other.start else _joined(other, one)


def _joined(low: Grid, high: Grid) -> Grid | None:
    """Join a grid with one that starts not before it, by the place of the second in the first."""
    _, length, columns, step, lines, stride = low
    line, rest = divmod(high.start - low.start, stride) if stride else (0, high.start - low.start)
    column, at = divmod(rest, step)
    wide, tall = max(columns, column + high.columns), max(lines, line + high.rows)
    long = max(length, at + high.length)
    if (long, wide, tall) == (length, columns, lines):
        return low
    if not (line or column or at) and (long, wide, tall) == (high.length, high.columns, high.rows):
        return high
    same_length = at == 0 and length == high.length
    same_columns = column == 0 and columns == high.columns
    same_rows = line == 0 and lines == high.rows
    grows = (
        (same_length and same_columns and line <= lines)
        or (same_length and same_rows and column <= columns)
        or (same_columns and same_rows and at <= length)
    )
    return grid(low.start, long, (wide, step), (tall, stride)) if grows else None
