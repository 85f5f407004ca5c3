"""Blocks as a search sees them: aligned sizes, and for each which others it meets and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.targets.ethos_u.generator.placement.blocks import (
    ALIGNMENT_BYTES,
    Block,
    in_lines,
    saved_bytes,
)

Int64s = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is placed; a row is a block.

    sizes        in whole lines, so that nothing is lost by alignment
    fixed        0 of a row without bytes, which is in nothing's way; None of others
    meets        rows that are taken at the same step as another: [rows, rows], not themselves
    neighbours   the same as lists
    reaches      of a row, and another that it may lie over: how far after its start it may begin
    exact        of those, the one place after its start at which it may begin besides
    savings      of a row, the bytes that it shares at most at its first step
    """

    sizes: Int64s
    firsts: Int64s
    lasts: Int64s
    fixed: tuple[int | None, ...]
    meets: Bools
    neighbours: tuple[tuple[int, ...], ...]
    reaches: dict[tuple[int, int], int]
    exact: dict[tuple[int, int], int]
    savings: Int64s

    def peak(self, offsets: Sequence[int]) -> int:
        """Return the end of the highest row."""
        return int((np.asarray(offsets, np.int64) + self.sizes).max(initial=0))


def rows_of(blocks: Sequence[Block]) -> Rows:
    """Return blocks as rows, in their order."""
    sizes = [in_lines(block.size_bytes) for block in blocks]
    firsts = np.array([block.first for block in blocks], np.int64)
    lasts = np.array([block.last for block in blocks], np.int64)
    meets = (firsts[:, None] <= lasts) & (firsts <= lasts[:, None])
    np.fill_diagonal(meets, val=False)
    reaches: dict[tuple[int, int], int] = {}
    exact: dict[tuple[int, int], int] = {}
    savings = np.zeros(len(blocks), np.int64)
    for index, block in enumerate(blocks):
        for partner in block.partners:
            other = partner.block
            reach = partner.reach_bytes // ALIGNMENT_BYTES * ALIGNMENT_BYTES
            if meets[index, other] and (saved := saved_bytes(sizes[index], sizes[other], partner)):
                reaches[index, other] = max(reach, reaches.get((index, other), reach))
                savings[index] += saved
                if partner.exact_bytes is not None:
                    exact[index, other] = partner.exact_bytes
        savings[index] = min(int(savings[index]), sizes[index])
    return Rows(
        np.array(sizes, np.int64),
        firsts,
        lasts,
        tuple(None if size else 0 for size in sizes),
        meets,
        tuple(tuple(np.flatnonzero(meeting).tolist()) for meeting in meets),
        reaches,
        exact,
        savings,
    )


def forbidden(table: Rows, index: int, other: int, start: int) -> list[tuple[int, int]]:
    """Return between which offsets a row must not begin while another one begins at `start`."""
    low, high = start - int(table.sizes[index]), start + int(table.sizes[other])
    if (index, other) in table.reaches:
        low = max(low, start + table.reaches[index, other])
    if (other, index) in table.reaches:
        high = min(high, start - table.reaches[other, index])
    point = None
    if (index, other) in table.exact:
        point = start + table.exact[index, other]
    elif (other, index) in table.exact:
        point = start - table.exact[other, index]
    if point is not None:
        gaps = [(low, min(high, point)), (max(low, point), high)]
        return [gap for gap in gaps if gap[0] < gap[1]]
    return [(low, high)] if low < high else []
