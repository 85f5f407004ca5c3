"""Where TensorFlow Lite Micro's planner puts buffers, for the lifetimes that it gives them.

Buffers with a place keep it. The others go by size, the largest first, each to the lowest place at
which nothing lies that is there at the same time.

Ref: tflite-micro 90b983c, greedy_memory_planner.cc.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer that the plan has.

    first, last   from which operator on, and to which, in the planner's count
    offset_bytes  where the compiler has put it; None if it has not
    """

    size_bytes: int
    first: int
    last: int
    offset_bytes: int | None = None

    def meets(self, other: Buffer) -> bool:
        """Whether both are there at the same time."""
        return self.first <= other.last and other.first <= self.last


def plan(buffers: Sequence[Buffer]) -> list[int]:
    """Return the byte offset of each buffer."""
    fixed = [index for index, buffer in enumerate(buffers) if buffer.offset_bytes is not None]
    free = [index for index, buffer in enumerate(buffers) if buffer.offset_bytes is None]
    free.sort(key=lambda index: (-buffers[index].size_bytes, -index))
    placed: list[tuple[int, int]] = []
    for index in (*fixed, *free):
        offset = buffers[index].offset_bytes
        if offset is None:
            offset = _gap(buffers, placed, index)
        at = bisect_right(placed, offset, key=lambda pair: pair[0])
        placed.insert(at, (offset, index))
    offsets = dict.fromkeys(range(len(buffers)), 0) | {index: at for at, index in placed}
    return list(offsets.values())


def _gap(buffers: Sequence[Buffer], placed: Sequence[tuple[int, int]], index: int) -> int:
    """Return the lowest offset that is free as long as a buffer needs it."""
    wanted, low = buffers[index], 0
    for offset, other in placed:
        if not wanted.meets(buffers[other]):
            continue
        if offset - low >= wanted.size_bytes:
            break
        low = max(low, offset + buffers[other].size_bytes)
    return low


def end_of(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """Return one past the last byte of a plan."""
    ends = (offset + buffer.size_bytes for buffer, offset in zip(buffers, offsets, strict=True))
    return max(ends, default=0)
