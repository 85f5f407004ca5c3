"""Placements by an order: each row in turn as low as it fits among those before it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from mizzen.targets.ethos_u.generator.placement.rows import Rows, forbidden


def lowest(rows: Rows, order: Iterable[int], placed: Sequence[int | None]) -> list[int]:
    """Return offsets of rows: those of `placed`, and each other one in turn as low as it fits."""
    offsets = [-1 if row is None else row for row in placed]
    sizes = rows.sizes.tolist()
    alignments = rows.alignments.tolist()
    special = {row for pair in rows.reaches for row in pair}
    for row in order:
        if offsets[row] >= 0:
            continue
        size, alignment = sizes[row], alignments[row]
        if row in special:
            gaps = sorted(
                gap
                for other in rows.neighbours[row]
                if offsets[other] >= 0
                for gap in forbidden(rows, row, other, offsets[other])
            )
        else:
            gaps = sorted(
                (offsets[other] - size, offsets[other] + sizes[other])
                for other in rows.neighbours[row]
                if offsets[other] >= 0
            )
        at = 0
        for low, high in gaps:
            if at <= low:
                break
            if at < high:
                at = -(-high // alignment) * alignment
        offsets[row] = at
    return offsets


def simple_orders(rows: Rows) -> Iterator[list[int]]:
    """Yield the orders that usually reach the bound."""
    spans = rows.lasts - rows.firsts + 1
    load = np.where(rows.meets, rows.sizes, 0).sum(axis=1) + rows.sizes
    keys = (
        (-rows.sizes, -spans),
        (-rows.sizes * spans, -rows.sizes),
        (-spans, -rows.sizes),
        (-load, -rows.sizes),
        (rows.firsts, -rows.sizes),
        (-rows.lasts, -rows.sizes),
    )
    for most, next_ in keys:
        yield np.lexsort((rows.firsts, next_, most)).tolist()
    if rows.reaches:
        yield from _chains_first(rows)


def _chains_first(rows: Rows) -> Iterator[list[int]]:
    """Yield orders in which rows that lie over others come first, the latest lowest.

    A chain of maps, each over the one before, goes down in memory as time goes on; what is in the
    way of one of them moves all of them.
    """
    alone = np.ones(len(rows.fixed), np.bool_)
    for part in (0.0, 0.5, 0.8):
        least = part * int(rows.sizes.max(initial=0))
        pairs = (pair for pair in rows.reaches if rows.sizes[list(pair)].min() >= least)
        alone[:] = True
        alone[[row for pair in pairs for row in pair]] = False
        late = np.where(alone, 0, -rows.lasts)
        yield np.lexsort((rows.firsts, -rows.sizes, late, alone)).tolist()


def climb(rows: Rows, order: Sequence[int], goal: int, tries: int, seed: int) -> list[int]:
    """Return the best offsets of a walk over orders that moves rows at the peak to the front."""
    chance = random.Random(seed)
    current = list(order)
    best = now = lowest(rows, current, rows.fixed)
    least = peak = rows.peak(now)
    for _ in range(tries):
        if least <= goal:
            break
        trial = _moved(rows, current, now, peak, chance)
        found = lowest(rows, trial, rows.fixed)
        height = rows.peak(found)
        if height <= peak:
            current, now, peak = trial, found, height
        if height < least:
            best, least = found, height
    return best


def _moved(
    rows: Rows, order: list[int], offsets: list[int], peak: int, chance: random.Random
) -> list[int]:
    """Return an order in which a row at the peak, or one that it meets, comes earlier."""
    at_peak = [row for row in order if offsets[row] + int(rows.sizes[row]) == peak]
    row = chance.choice(at_peak)
    if rows.neighbours[row] and chance.random() < 0.5:
        row = chance.choice(rows.neighbours[row])
    position = order.index(row)
    moved = order[:position] + order[position + 1 :]
    moved.insert(chance.randrange(position + 1), row)
    return moved
