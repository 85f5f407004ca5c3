"""Blocks as a search sees them: those in one place are one row, and each row knows what it meets.

Sizes are rounded up to the least alignment of all, so that nothing is lost by it; rows that work
in place on one another are one row from the first step of the first to the last of the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.targets.ethos_u.placement.blocks import Block

Int64s = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is placed.

    row_of       row of each block
    meets        rows that are taken at the same step as another: [rows, rows], not themselves
    neighbours   the same as lists
    fixed        offset of a row that has one; 0 of one without bytes
    """

    row_of: tuple[int, ...]
    sizes: Int64s
    firsts: Int64s
    lasts: Int64s
    alignments: Int64s
    fixed: tuple[int | None, ...]
    meets: Bools
    neighbours: tuple[tuple[int, ...], ...]

    def offsets_of_blocks(self, offsets: Sequence[int]) -> tuple[int, ...]:
        """Return the offset of each block."""
        return tuple(int(offsets[row]) for row in self.row_of)

    def peak(self, offsets: Sequence[int]) -> int:
        """Return the end of the highest row."""
        return int((np.asarray(offsets, np.int64) + self.sizes).max(initial=0))


def join(blocks: Sequence[Block], *, apart: frozenset[int]) -> Rows:
    """Return the rows of blocks, each in the place of a partner if one is left.

    apart  blocks that take no partner's place
    """
    row_of = _rows_of(blocks, apart)
    granule = min((block.alignment for block in blocks), default=1)
    parts: list[list[Block]] = [[] for _ in range(max(row_of, default=-1) + 1)]
    for block, row in zip(blocks, row_of, strict=True):
        parts[row].append(block)
    sizes = [-(-part[0].size_bytes // granule) * granule for part in parts]
    firsts = np.array([min(row.first for row in part) for part in parts], np.int64)
    lasts = np.array([max(row.last for row in part) for part in parts], np.int64)
    meets = (firsts[:, None] <= lasts) & (firsts <= lasts[:, None])
    np.fill_diagonal(meets, val=False)
    fixed = [
        next((b.offset_bytes for b in part if b.offset_bytes is not None), None if size else 0)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return Rows(
        tuple(row_of),
        np.array(sizes, np.int64),
        firsts,
        lasts,
        np.array([max(row.alignment for row in part) for part in parts], np.int64),
        tuple(fixed),
        meets,
        tuple(tuple(np.flatnonzero(row).tolist()) for row in meets),
    )


def _rows_of(blocks: Sequence[Block], apart: frozenset[int]) -> list[int]:
    """Return the row of each block; a place is taken over by one block only."""
    heir_of: dict[int, int] = {}
    source_of: dict[int, int] = {}
    for index in sorted(range(len(blocks)), key=lambda row: (blocks[row].first, row)):
        if index in apart:
            continue
        for partner in blocks[index].partners:
            if partner not in heir_of and _may_share(blocks[index], blocks[partner]):
                heir_of[partner] = index
                source_of[index] = partner
                break
    heads: dict[int, int] = {}
    row_of: list[int] = []
    for index in range(len(blocks)):
        head = index
        while head in source_of:
            head = source_of[head]
        row_of.append(heads.setdefault(head, len(heads)))
    return row_of


def _may_share(block: Block, partner: Block) -> bool:
    """Return whether a block can lie where its partner does, and gains by it."""
    ends_here = partner.last == block.first
    return ends_here and (block.offset_bytes is None and partner.offset_bytes is None)
