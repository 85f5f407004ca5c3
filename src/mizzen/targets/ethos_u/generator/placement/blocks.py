"""Blocks to be placed, what must hold of them, and below which peak nothing can go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.diagnostics import fail

ALIGNMENT_BYTES = 16
"""Of a base address that a map, a weight stream or a transfer may have."""

NOWHERE_BYTES = -(1 << 40)
"""A reach that is further than any block is long."""


@dataclass(frozen=True, slots=True)
class Partner:
    """A block that is read while another one is written, and that nothing reads afterwards.

    block        its index
    reach_bytes  how far after its start the other may begin at most, all lower places included:
                 less than 0 where the writing would overtake the reading, more where it falls
                 behind
    exact_bytes  a place after its start at which the other may begin whatever the reach, less than
                 0 for one before it: 0 where each part is written where it has just been read
    """

    block: int
    reach_bytes: int = NOWHERE_BYTES
    exact_bytes: int | None = 0


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes that are taken from the start of step `first` to the end of step `last`.

    partners  blocks that end at the step at which it begins, and over which it may lie
    """

    size_bytes: int
    first: int
    last: int
    partners: tuple[Partner, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """Offsets of blocks in bytes.

    peak_bytes   end of the highest block; sizes count in whole lines
    bound_bytes  a peak below which no placement goes: the largest live set, or more where the
                 search has proved that it cannot be reached
    end_bytes    end of the highest block, which may be within a line
    """

    offsets_bytes: tuple[int, ...]
    peak_bytes: int
    bound_bytes: int
    end_bytes: int


def in_lines(size_bytes: int) -> int:
    """Return a size in whole lines of memory, as blocks take it; the last may end within its."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def check(blocks: Sequence[Block]) -> None:
    """Refuse blocks that contradict themselves or one another.

    Raises:
        MizzenError: E295 a block is not one, E296 a partner is not one
    """
    for index, block in enumerate(blocks):
        _check_block(index, block)
        for partner in block.partners:
            other = blocks[partner.block]
            if other.last > block.first or partner.block == index:
                raise fail(
                    "E296",
                    f"block {index} cannot lie over block {partner.block}: {block}, {other}",
                    rule="a partner ends no later than the other begins",
                )


def _check_block(index: int, block: Block) -> None:
    problem = (
        "its size is negative"
        if block.size_bytes < 0
        else "it ends before it begins"
        if block.last < block.first
        else None
    )
    if problem is not None:
        raise fail(
            "E295",
            f"block {index} is not one: {problem}: {block}",
            rule="size >= 0, last >= first",
        )


def saved_bytes(size: int, other: int, partner: Partner) -> int:
    """Return how many bytes are shared at most by a block and a partner of `other` bytes."""
    reach = partner.reach_bytes
    if partner.exact_bytes is not None:
        reach = max(reach, partner.exact_bytes)
    return max(0, size + other - max(size, other + max(0, -reach)))


def largest_live_set(blocks: Sequence[Block]) -> int:
    """Return the bytes that must be there at one step, blocks over others as they gain most."""
    sizes = [in_lines(block.size_bytes) for block in blocks]
    change: dict[int, int] = {}
    saved: dict[int, int] = {}
    for block, size in zip(blocks, sizes, strict=True):
        change[block.first] = change.get(block.first, 0) + size
        change[block.last + 1] = change.get(block.last + 1, 0) - size
        shared = sum(
            saved_bytes(size, sizes[partner.block], partner)
            for partner in block.partners
            if blocks[partner.block].last == block.first
        )
        saved[block.first] = saved.get(block.first, 0) + min(size, shared)
    live = 0
    most = 0
    for step in sorted(change):
        live += change[step]
        most = max(most, live - saved.get(step, 0))
    return most
