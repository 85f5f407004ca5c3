"""What the blocks along one axis need of a map along it: sums over a grid, for every block size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Axis:
    """A kernel along one axis of an operation's output.

    size, extent  of the output and of the input
    most          positions that are read at once where the kernel is done in parts; 0 if it is not
    """

    size: int
    extent: int
    stride: int
    span: int
    pad: int
    factor: int
    most: int


@dataclass(frozen=True, slots=True)
class Extents:
    """Of blocks of each size: all positions that they need together, the most that one does.

    Arrays have an entry for each size from 0 on.

    beats  all of them where each block's run is rounded up to whole beats, in bytes; with `unit`
    """

    total: Ints
    most: Ints


@lru_cache(maxsize=4096)
def along(axis: Axis, sizes: tuple[int, ...], unit_bytes: int, beat_bytes: int) -> Extents:
    """Return the extents for blocks of some sizes.

    unit_bytes  of a position, where runs are read in whole beats; 0 to count positions
    """
    size = np.array(sizes)
    counts = -(-axis.size // size)
    first = np.cumsum(counts) - counts
    each = np.repeat(size, counts)
    start = (np.arange(len(each)) - np.repeat(first, counts)) * each
    stop = np.minimum(start + each, axis.size)
    low = np.maximum(0, (start * axis.stride - axis.pad) // axis.factor)
    last = (stop - 1) * axis.stride + axis.span - axis.pad
    length = np.minimum(axis.extent, -(-last // axis.factor)) - low
    if axis.most:
        inside = ((each - 1) * axis.stride + axis.most) // axis.factor
        length = np.minimum(length, np.maximum(inside, 1))
    if unit_bytes:
        length = -(-length * unit_bytes // beat_bytes) * beat_bytes
    total = np.zeros(max(sizes) + 1, np.int64)
    most = np.zeros(max(sizes) + 1, np.int64)
    total[size] = np.add.reduceat(length, first)
    most[size] = np.maximum.reduceat(length, first)
    return Extents(total, most)
