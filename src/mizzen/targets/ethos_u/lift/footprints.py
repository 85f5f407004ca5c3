"""Which bytes of a region a map takes: a few grids of runs of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations import BRICK, Bytes, Map
from mizzen.targets.ethos_u.machine.commands_values import Layout


@dataclass(frozen=True, slots=True)
class Grid:
    """Runs of `length` bytes; axes of `counts` runs that lie `strides` bytes apart."""

    start: int
    length: int
    counts: tuple[int, int, int]
    strides: tuple[int, int, int]

    @property
    def extent(self) -> tuple[int, int]:
        """First byte, and the one behind the last."""
        spans = [(n - 1) * stride for n, stride in zip(self.counts, self.strides, strict=True)]
        low = self.start + sum(span for span in spans if span < 0)
        return low, self.start + sum(span for span in spans if span > 0) + self.length

    def within(self, memory: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the bytes, or what is kept for each of them, as a view `[*counts, length]`."""
        size = memory.itemsize
        return np.ndarray(
            (*self.counts, self.length),
            memory.dtype,
            memory,
            self.start * size,
            (*(stride * size for stride in self.strides), size),
        )


def view_of(map_: Map) -> Bytes:
    """Return the view of a map over a region: always bytes."""
    assert isinstance(map_.view, Bytes)
    return map_.view


def untiled(view: Bytes) -> Iterator[tuple[slice, slice, Bytes]]:
    """Return the tiles of a view: rows, columns, and the part, which has no tiles itself."""
    height, width, depth = view.shape
    tiles = view.tiles
    if tiles is None:
        yield slice(0, height), slice(0, width), view
        return
    split = min(tiles.width_0, width)
    right, below, both = tiles.offsets_bytes
    for left, end, rows, bases in (
        (0, split, tiles.height_0, (view.offset_bytes, below)),
        (split, width, tiles.height_1, (right, both)),
    ):
        first = min(rows, height)
        for (top, bottom), base in zip(((0, first), (first, height)), bases, strict=True):
            if left < end and top < bottom:
                shape = bottom - top, end - left, depth
                part = replace(view, shape=shape, offset_bytes=base, tiles=None)
                yield slice(top, bottom), slice(left, end), part


def grids(view: Bytes, itemsize: int) -> list[Grid]:
    """Return the bytes of all elements of a view whose elements have `itemsize` bytes."""
    return [grid for _, _, part in untiled(view) for grid in _of_tile(part, itemsize)]


def _of_tile(view: Bytes, size: int) -> Iterator[Grid]:
    (height, width, depth), (down, across, brick) = view.shape, view.strides_bytes
    start = view.offset_bytes
    if view.layout is Layout.NHWC:
        counts, strides = (height, width, 1), (down, across, 0)
        yield _joined(Grid(start, depth * size, counts, strides))
        return
    whole, rest = divmod(depth, BRICK)
    pixel = BRICK * size
    if whole:
        yield _joined(Grid(start, pixel, (height, whole, width), (down, brick, pixel)))
    if rest:
        at = start + whole * brick
        yield _joined(Grid(at, rest * size, (height, 1, width), (down, brick, pixel)))


def _joined(grid: Grid) -> Grid:
    """Return the same bytes in longer runs, where runs of the last axes follow each other."""
    length, counts, strides = grid.length, list(grid.counts), list(grid.strides)
    for axis in (2, 1, 0):
        if counts[axis] > 1:
            if strides[axis] != length:
                break
            length *= counts[axis]
        counts[axis], strides[axis] = 1, 0
    return Grid(
        grid.start, length, (counts[0], counts[1], counts[2]), (strides[0], strides[1], strides[2])
    )


def elements(
    view: Bytes, dtype: np.dtype[np.integer[Any]], memory: npt.NDArray[np.uint8]
) -> npt.NDArray[Any]:
    """Return the elements `[height, width, depth]` of a view of `memory`."""
    found = np.zeros(view.shape, dtype)
    for rows, columns, part in untiled(view):
        depth = view.shape[2]
        step = BRICK if view.layout is Layout.NHCWB16 else depth
        for low in range(0, depth, step):
            high = min(depth, low + step)
            found[rows, columns, low:high] = _channels(part, dtype, memory, low, high)
    return found


def _channels(
    view: Bytes,
    dtype: np.dtype[np.integer[Any]],
    memory: npt.NDArray[np.uint8],
    low: int,
    high: int,
) -> npt.NDArray[Any]:
    (height, width, _), (down, across, brick) = view.shape, view.strides_bytes
    start = view.offset_bytes
    if view.layout is Layout.NHCWB16:
        start, across = start + low // BRICK * brick, BRICK * dtype.itemsize
    runs = Grid(start, (high - low) * dtype.itemsize, (height, width, 1), (down, across, 0))
    return np.ascontiguousarray(runs.within(memory))[:, :, 0].view(dtype)
