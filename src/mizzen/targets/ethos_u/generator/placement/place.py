"""Placement of blocks: simple orders, an exact search, a walk over orders, until one is best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.targets.ethos_u.generator.placement.blocks import Block, Placed, check, largest_live_set
from mizzen.targets.ethos_u.generator.placement.orders import climb, lowest, simple_orders
from mizzen.targets.ethos_u.generator.placement.rows import Rows, rows_of
from mizzen.targets.ethos_u.generator.placement.search import Search

STATES = 3_000
"""Of the exact search, where the caller does not say; some 0.1 s for 100 blocks."""
_STATES_A_WALK = 30
"""A try of the walk takes the time of about so many states of the search."""


def place(
    blocks: Sequence[Block],
    *,
    limit_bytes: int | None = None,
    states: int = STATES,
) -> Placed:
    """Return where blocks lie, the same for the same arguments.

    limit_bytes  a peak that is low enough: nothing lower is looked for
    states       of the exact search, at most; what is not proved then is told as a gap

    Raises:
        MizzenError: E295 a block is not one, E296 a partner is not one
    """
    check(blocks)
    table = rows_of(blocks)
    bound = largest_live_set(blocks)
    goal = max(bound, limit_bytes or 0)
    best: list[int] = []
    order: list[int] = []
    peak = -1
    for trial in simple_orders(table):
        offsets = lowest(table, trial, table.fixed)
        height = table.peak(offsets)
        if peak < 0 or height < peak:
            best, order, peak = offsets, trial, height
        if peak <= goal:
            break
    if peak > goal and states:
        best, bound = _searched(table, best, bound, goal, states)
    if table.peak(best) > max(goal, bound) and states:
        walked = climb(table, order, max(goal, bound), states // _STATES_A_WALK)
        best = min(best, walked, key=table.peak)
    pairs = zip(best, blocks, strict=True)
    ends = (offset + block.size_bytes for offset, block in pairs if block.size_bytes)
    return Placed(tuple(best), table.peak(best), bound, max(ends, default=0))


def _searched(
    table: Rows, best: list[int], bound: int, goal: int, states: int
) -> tuple[list[int], int]:
    """Return offsets and bound after the exact search, for one height after another."""
    search = Search(table)
    ranks = [np.argsort(order).tolist() for order in simple_orders(table)][:3]
    left, height = states, max(goal, bound)
    while left > 0 and height < table.peak(best):
        for rank in ranks:
            answer = search.run(height, rank, max(left // len(ranks), 1))
            left -= answer.nodes
            if answer.offsets is not None or answer.bound:
                break
        else:
            break
        if answer.offsets is not None:
            return answer.offsets, bound
        height = answer.bound
        if not table.reaches:
            bound = min(height, table.peak(best))
    return best, bound
