"""Sets of bytes that accesses touch: whether two share one, exactly.

A set is some nests of runs: a run of bytes, repeated along axes at a distance each. Dense maps are
one run. Where hulls overlap and some set is no run, runs are compared in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.emit.located import Located
from mizzen.targets.ethos_u.generator.operations import BRICK
from mizzen.targets.ethos_u.machine.commands_values import Layout

Offsets = npt.NDArray[np.int64]
Axis = tuple[int, int]
"""How many, and the distance between two in bytes."""
Span = tuple[int, int]
"""The first of something, and one past the last."""
Part = tuple[Span, Span, Span]
"""Rows, columns and channels of a map."""
Nest = tuple[int, int, tuple[Axis, ...]]
"""The lowest byte, the length of a run, and the axes along which it is repeated."""

NO_OFFSETS: Offsets = np.empty(0, np.int64)


class ByteSet:
    """Bytes of one region, from `first` to before `end`, not necessarily all between."""

    def __init__(self, nests: Iterable[Nest]) -> None:
        self.nests = tuple(nests)
        self.first = min((start for start, _, _ in self.nests), default=0)
        self.end = max(map(_end, self.nests), default=0)

    @cached_property
    def is_run(self) -> bool:
        """Whether all between is in the set too."""
        return len(self.nests) == 1 and not self.nests[0][2]

    @cached_property
    def _runs(self) -> tuple[Offsets, Offsets]:
        """The runs in order, none touching the next: where they start, and one past their ends."""
        if not self.nests:
            return NO_OFFSETS, NO_OFFSETS
        runs = [_expanded(nest) for nest in self.nests]
        starts = np.concatenate([begins for begins, _ in runs])
        ends = np.concatenate([begins + length for begins, length in runs])
        order = np.argsort(starts, kind="stable")
        starts, reach = starts[order], np.maximum.accumulate(ends[order])
        opens = np.concatenate(([True], starts[1:] > reach[:-1]))
        closes = np.concatenate((opens[1:], [True]))
        return starts[opens], reach[closes]

    def touches(self, other: ByteSet) -> bool:
        """Whether a byte is in both sets."""
        if self.first >= other.end or other.first >= self.end:
            return False
        if self.is_run and other.is_run:
            return True
        starts, ends = self._runs
        first, stop = other._runs
        # The last of our runs that starts before one of theirs ends reaches furthest.
        at = np.searchsorted(starts, stop, "left") - 1
        return bool(((at >= 0) & (ends[np.maximum(at, 0)] > first)).any())

    def within(self, first: int, end: int, marks: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return the marks of those bytes of the set that lie in `first` to before `end`."""
        starts, ends = self._runs
        pairs = zip(np.maximum(starts, first).tolist(), np.minimum(ends, end).tolist(), strict=True)
        inside = [marks[low - first : high - first] for low, high in pairs if low < high]
        return np.concatenate(inside) if inside else marks[:0]

    def mark(self, first: int, marks: npt.NDArray[np.bool_]) -> None:
        """Set the marks, which begin at byte `first`, of all bytes of the set."""
        for low, high in zip(*(edges.tolist() for edges in self._runs), strict=True):
            marks[low - first : high - first] = True


def run(start: int, length: int) -> ByteSet:
    """Return `length` bytes from `start`."""
    return ByteSet([(start, length, ())] if length > 0 else [])


@lru_cache(maxsize=4096)
def whole(map_: Located) -> ByteSet:
    """Return the bytes of all elements of a map."""
    height, width, depth = map_.shape
    return part(map_, ((0, height), (0, width), (0, depth)))


def part(map_: Located, box: Part) -> ByteSet:
    """Return the bytes of some elements of a map."""
    (top, bottom), (left, right), channels = box
    nests: list[Nest] = []
    split_x = min(map_.width_0, map_.shape[1])
    for tile, (low, high) in ((0, (0, split_x)), (1, (split_x, map_.shape[1]))):
        wide = max(left, low), min(right, high)
        split_y = min(map_.height_0 if tile == 0 else map_.height_1, map_.shape[0])
        for below, (above, under) in ((0, (0, split_y)), (2, (split_y, map_.shape[0]))):
            tall = max(top, above), min(bottom, under)
            if tall[0] < tall[1] and wide[0] < wide[1]:
                base = map_.bases[tile + below]
                inside = (
                    (tall[0] - above, tall[1] - above),
                    (wide[0] - low, wide[1] - low),
                    channels,
                )
                nests += (
                    _bricks(map_, base, inside) if _is_brick(map_) else _pixels(map_, base, inside)
                )
    return ByteSet(nests)


def _is_brick(map_: Located) -> bool:
    return map_.layout is Layout.NHCWB16


def _pixels(map_: Located, base: int, box: Part) -> list[Nest]:
    (top, bottom), (left, right), (low, high) = box
    size = map_.element_bytes
    start = base + top * map_.stride_y + left * map_.stride_x + low * size
    return _nest(
        start, (high - low) * size, ((bottom - top, map_.stride_y), (right - left, map_.stride_x))
    )


def _bricks(map_: Located, base: int, box: Part) -> list[Nest]:
    (top, bottom), (left, right), (low, high) = box
    size = map_.element_bytes
    step = BRICK * size
    start = base + top * map_.stride_y + left * step
    down, across = (bottom - top, map_.stride_y), (right - left, step)
    nests: list[Nest] = []
    first, last = low // BRICK, -(-high // BRICK)
    if low % BRICK == 0 and high // BRICK > first:
        count = high // BRICK - first
        nests += _nest(start + first * map_.stride_c, step, (down, (count, map_.stride_c), across))
        first += count
    for brick in range(first, last):
        begin, stop = max(low, brick * BRICK), min(high, (brick + 1) * BRICK)
        at = start + brick * map_.stride_c + begin % BRICK * size
        nests += _nest(at, (stop - begin) * size, (down, across))
    return nests


def _nest(start: int, length: int, axes: tuple[Axis, ...]) -> list[Nest]:
    """Return a nest in its shortest form: runs that touch or overlap have grown together."""
    if length <= 0 or any(count <= 0 for count, _ in axes):
        return []
    kept: list[Axis] = []
    for count, step in sorted(axes, key=lambda axis: abs(axis[1])):
        if count == 1:
            continue
        distance = abs(step)
        if step < 0:
            start += (count - 1) * step
        if distance <= length and not kept:
            length += (count - 1) * distance
        else:
            kept.append((count, distance))
    return [(start, length, tuple(kept))]


def _end(nest: Nest) -> int:
    start, length, axes = nest
    return start + length + sum((count - 1) * step for count, step in axes)


def _expanded(nest: Nest) -> tuple[Offsets, int]:
    start, length, axes = nest
    starts = np.array([start], np.int64)
    for count, step in axes:
        starts = (np.arange(count, dtype=np.int64)[:, None] * step + starts).ravel()
    return starts, length
