"""Placements by an order: each row in turn as low as it fits among those before it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from mizzen.targets.ethos_u.generator.placement.blocks import in_lines
from mizzen.targets.ethos_u.generator.placement.rows import Rows, forbidden


def lowest(table: Rows, order: Iterable[int], placed: Sequence[int | None]) -> list[int]:
    """Return offsets of rows: those of `placed`, and each other one in turn as low as it fits."""
    offsets = [-1 if offset is None else offset for offset in placed]
    sizes = table.sizes.tolist()
    special = {each for pair in table.reaches for each in pair}
    for index in order:
        if offsets[index] >= 0:
            continue
        size = sizes[index]
        if index in special:
            gaps = sorted(
                gap
                for other in table.neighbours[index]
                if offsets[other] >= 0
                for gap in forbidden(table, index, other, offsets[other])
            )
        else:
            gaps = sorted(
                (offsets[other] - size, offsets[other] + sizes[other])
                for other in table.neighbours[index]
                if offsets[other] >= 0
            )
        at = 0
        for low, high in gaps:
            if at <= low:
                break
            if at < high:
                at = in_lines(high)
        offsets[index] = at
    return offsets


def simple_orders(table: Rows) -> Iterator[list[int]]:
    """Yield the orders that usually reach the bound."""
    spans = table.lasts - table.firsts + 1
    load = np.where(table.meets, table.sizes, 0).sum(axis=1) + table.sizes
    keys = (
        (-table.sizes, -spans),
        (-table.sizes * spans, -table.sizes),
        (-spans, -table.sizes),
        (-load, -table.sizes),
        (table.firsts, -table.sizes),
        (-table.lasts, -table.sizes),
    )
    for most, next_ in keys:
        yield np.lexsort((table.firsts, next_, most)).tolist()
    if table.reaches:
        yield from _chains_first(table)


def _chains_first(table: Rows) -> Iterator[list[int]]:
    """Yield orders in which rows that lie over others come first, the latest lowest.

    A chain of maps, each over the one before, goes down in memory as time goes on; what is in the
    way of one of them moves all of them.
    """
    alone = np.ones(len(table.fixed), np.bool_)
    for part in (0.0, 0.5, 0.8):
        least = part * int(table.sizes.max(initial=0))
        pairs = (pair for pair in table.reaches if table.sizes[list(pair)].min() >= least)
        alone[:] = True
        alone[[index for pair in pairs for index in pair]] = False
        late = np.where(alone, 0, -table.lasts)
        yield np.lexsort((table.firsts, -table.sizes, late, alone)).tolist()


def climb(table: Rows, order: Sequence[int], goal: int, tries: int) -> list[int]:
    """Return the best offsets of a walk over orders that moves rows at the peak to the front."""
    chance = random.Random(0)
    current = list(order)
    best = now = lowest(table, current, table.fixed)
    least = peak = table.peak(now)
    for _ in range(tries):
        if least <= goal:
            break
        trial = _moved(table, current, now, peak, chance)
        offsets = lowest(table, trial, table.fixed)
        height = table.peak(offsets)
        if height <= peak:
            current, now, peak = trial, offsets, height
        if height < least:
            best, least = offsets, height
    return best


def _moved(
    table: Rows, order: list[int], offsets: list[int], peak: int, chance: random.Random
) -> list[int]:
    """Return an order in which a row at the peak, or one that it meets, comes earlier."""
    at_peak = [index for index in order if offsets[index] + int(table.sizes[index]) == peak]
    picked = chance.choice(at_peak)
    if table.neighbours[picked] and chance.random() < 0.5:
        picked = chance.choice(table.neighbours[picked])
    position = order.index(picked)
    moved = order[:position] + order[position + 1 :]
    moved.insert(chance.randrange(position + 1), picked)
    return moved
