"""Blocks to be placed, what must hold of them, and below which peak nothing can go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.diagnostics import fail

ALIGNMENT_BYTES = 16
"""Of a base address that a map, a weight stream or a transfer may have."""


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes that are taken from the start of step `first` to the end of step `last`.

    alignment     in bytes, of the offset
    offset_bytes  where it must lie; None if anywhere
    partners      indices of blocks of the same size that end where it begins, and of which it may
                  take over the place of one: the inputs of an operation that works in place
    """

    size_bytes: int
    first: int
    last: int
    alignment: int = ALIGNMENT_BYTES
    offset_bytes: int | None = None
    partners: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """Offsets of blocks in bytes.

    peak_bytes   end of the highest block; sizes count with what alignment adds to them
    bound_bytes  a peak below which no placement goes: the largest live set, or more where the
                 search has proved that it cannot be reached
    """

    offsets_bytes: tuple[int, ...]
    peak_bytes: int
    bound_bytes: int

    @property
    def optimal(self) -> bool:
        """Whether no placement has a lower peak."""
        return self.peak_bytes == self.bound_bytes

    @property
    def gap(self) -> float:
        """Return by which part of the bound the peak may be too high."""
        return self.peak_bytes / self.bound_bytes - 1 if self.bound_bytes else 0.0


def check(blocks: Sequence[Block]) -> None:
    """Refuse blocks that contradict themselves or one another.

    Raises:
        MizzenError: E295 a block is not one, E296 a partner is not one, E297 two blocks must lie
            in the same bytes at the same time
    """
    for index, block in enumerate(blocks):
        _check_block(index, block)
        for partner in block.partners:
            other = blocks[partner]
            if other.size_bytes != block.size_bytes or other.last > block.first:
                raise fail(
                    "E296",
                    f"block {index} cannot take the place of block {partner}: {block}, {other}",
                    rule="a partner has the same size and ends no later than the other begins",
                )
    fixed = [row for row in enumerate(blocks) if row[1].offset_bytes is not None]
    for position, (index, block) in enumerate(fixed):
        for other, row in fixed[:position]:
            if _collide(block, row) and not _in_place(blocks, index, other):
                raise fail(
                    "E297",
                    f"blocks {other} and {index} lie in the same bytes: {row}, {block}",
                    rule="blocks that are taken at the same step have bytes of their own",
                )


def _check_block(index: int, block: Block) -> None:
    problem = (
        "its size is negative"
        if block.size_bytes < 0
        else "it ends before it begins"
        if block.last < block.first
        else "its alignment is not a power of two"
        if block.alignment < 1 or block.alignment & (block.alignment - 1)
        else "its offset is not aligned"
        if (block.offset_bytes or 0) % block.alignment or (block.offset_bytes or 0) < 0
        else None
    )
    if problem is not None:
        raise fail(
            "E295",
            f"block {index} is not one: {problem}: {block}",
            rule="size >= 0, last >= first, an alignment of a power of two, an aligned offset",
        )


def _in_place(blocks: Sequence[Block], index: int, other: int) -> bool:
    related = other in blocks[index].partners or index in blocks[other].partners
    return related and blocks[index].offset_bytes == blocks[other].offset_bytes


def _collide(one: Block, other: Block) -> bool:
    """Return whether two fixed blocks share bytes at a step."""
    if one.last < other.first or other.last < one.first:
        return False
    a, b = one.offset_bytes or 0, other.offset_bytes or 0
    return a < b + other.size_bytes and b < a + one.size_bytes


def largest_live_set(blocks: Sequence[Block]) -> int:
    """Return the bytes that must be there at one step, in-place blocks counted as they gain most.

    Every size counts up to the least alignment of all: no other block begins before that.
    """
    granule = min((row.alignment for row in blocks), default=1)
    sizes = [-(-row.size_bytes // granule) * granule for row in blocks]
    change: dict[int, int] = {}
    for block, size in zip(blocks, sizes, strict=True):
        late = any(blocks[row].last == block.first for row in block.partners)
        if late and block.last == block.first:
            continue
        change[block.first + late] = change.get(block.first + late, 0) + size
        change[block.last + 1] = change.get(block.last + 1, 0) - size
    most = live = 0
    for step in sorted(change):
        live += change[step]
        most = max(most, live)
    ends = [(row.offset_bytes or 0) + size for row, size in zip(blocks, sizes, strict=True)]
    return max([most, *ends])
