"""Sets of bytes as sorted intervals, in NumPy: the arithmetic of overlaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail

Offsets = npt.NDArray[np.int64]

LARGEST_RUNS = 1 << 22
LARGEST_RUN_BYTES = 1 << 40
"""An access larger than the largest address space, or in millions of pieces, is damage."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Bytes `starts[i] .. ends[i] - 1` for every i: sorted, disjoint and not touching."""

    starts: Offsets
    ends: Offsets

    def __bool__(self) -> bool:
        return len(self.starts) > 0

    @property
    def first(self) -> int:
        """The lowest byte; the set must not be empty."""
        return int(self.starts[0])

    @property
    def end(self) -> int:
        """One past the highest byte; the set must not be empty."""
        return int(self.ends[-1])

    @property
    def runs(self) -> Iterator[tuple[int, int]]:
        """The first byte, and one past the last, of each interval."""
        return zip(self.starts.tolist(), self.ends.tolist(), strict=True)

    @cached_property
    def size(self) -> int:
        """How many bytes there are."""
        return int((self.ends - self.starts).sum())

    @cached_property
    def _before(self) -> Offsets:
        """How many bytes lie in the intervals before each one, and in all."""
        return np.concatenate(([0], np.cumsum(self.ends - self.starts)))

    def _below(self, offsets: Offsets) -> Offsets:
        """How many bytes of the set lie below each offset."""
        at = np.searchsorted(self.starts, offsets, "right") - 1
        index = np.maximum(at, 0)
        into = np.minimum(offsets, self.ends[index]) - self.starts[index]
        return np.where(at < 0, 0, self._before[index] + into)

    def touches(self, other: Intervals) -> bool:
        """Whether a byte is in both sets."""
        if not self or not other or self.first >= other.end or other.first >= self.end:
            return False
        fewer, more = (self, other) if len(self.starts) < len(other.starts) else (other, self)
        return bool((more._below(fewer.ends) > more._below(fewer.starts)).any())

    def __and__(self, other: Intervals) -> Intervals:
        """The bytes in both sets."""
        if not self or not other:
            return EMPTY
        edges = np.unique(np.concatenate((self.starts, self.ends, other.starts, other.ends)))
        lows, highs = edges[:-1], edges[1:]
        both = (self._below(highs) > self._below(lows)) & (other._below(highs) > other._below(lows))
        return merged(lows[both], highs[both])

    def __or__(self, other: Intervals) -> Intervals:
        """The bytes in either set."""
        if not self or not other:
            return self or other
        starts = np.concatenate((self.starts, other.starts))
        return merged(starts, np.concatenate((self.ends, other.ends)))

    def __sub__(self, other: Intervals) -> Intervals:
        """The bytes of this set that the other has not."""
        if not self or not other:
            return self
        low, high = self.first, self.end
        gaps = np.concatenate(([low], other.ends)), np.concatenate((other.starts, [high]))
        kept = gaps[1] > gaps[0]
        return self & merged(gaps[0][kept], gaps[1][kept])

    def moved(self, distance: int) -> Intervals:
        """The same bytes so much further up."""
        return Intervals(self.starts + distance, self.ends + distance)


def merged(starts: Offsets, ends: Offsets) -> Intervals:
    """Make a set of intervals in any order, which may overlap or be empty."""
    kept = ends > starts
    if not kept.all():
        starts, ends = starts[kept], ends[kept]
    if len(starts) == 0:
        return EMPTY
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    opens = np.concatenate(([True], starts[1:] > reach[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return Intervals(starts[opens], reach[closes])


def of_runs(runs: Iterable[tuple[int, int]]) -> Intervals:
    """Make a set of first bytes and ends."""
    edges = np.array(list(runs), np.int64).reshape(-1, 2)
    return merged(edges[:, 0], edges[:, 1])


def require_sense(runs: int, length: int) -> None:
    """Check that an access is one that some stream may have. E613 if not."""
    if runs > LARGEST_RUNS or length > LARGEST_RUN_BYTES:
        raise fail(
            "E613",
            f"an access must be at most {LARGEST_RUNS} runs of at most {LARGEST_RUN_BYTES} bytes, "
            f"not {runs} of {length}",
            help="the command stream is damaged; compile it again",
        )


EMPTY = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))
"""No bytes."""
