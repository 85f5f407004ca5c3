"""Exact search: is there a placement below a height, and if not, which height is the next to ask.

Rows are placed in the order of their offsets, each on top of what it meets. Pushing every row of
a placement down gives such an order, so nothing is missed. What is cut off: a row that leaves a
hole beneath it in which another one would fit (that one would come first), rows that are equal to
another that has not been placed, and states in which some step cannot hold what it still must.
Rows that find a place whatever the others do are left out and placed at the end.

Where a row may lie over another one and begin after its start, pushing the other one down can put
the row out of reach: placements are missed then, and nothing is proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.targets.ethos_u.generator.placement.blocks import ALIGNMENT_BYTES, in_lines
from mizzen.targets.ethos_u.generator.placement.orders import lowest
from mizzen.targets.ethos_u.generator.placement.rows import Bools, Int64s, Rows, forbidden

_FAR = 1 << 60


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to.

    offsets  of the rows, at most `height` high; None if none was found
    bound    the next height to ask where all was seen, else 0; without reaches there is no
             placement below it
    nodes    states that were looked at
    """

    offsets: list[int] | None
    bound: int
    nodes: int


@dataclass(slots=True)
class _Part:
    """Rows that meet no others of those still to be placed, and so can be placed by themselves.

    lows     where each of all rows would lie
    floor    offset of the row that was placed last, and `last` its index: the next is no lower
    creator  level of the stack at which the part came to be; -1 at the start
    """

    rows: Int64s
    lows: Int64s
    floor: int
    last: int
    creator: int


_Agenda = tuple[_Part, "_Agenda"] | None


@dataclass(slots=True)
class _State:
    """A part, the rows to try next (the best one last), and the parts that come after it."""

    part: _Part
    candidates: list[int]
    rest: _Agenda


class Search:
    """A search among placements of rows, for one height after another."""

    def __init__(self, table: Rows) -> None:
        self._rows = table
        at, self._steps = _steps_that_tell(table)
        self._savings = (table.firsts == at[:, None]) * table.savings
        self._twins = _equal_rows(table)
        # How far above a row that is placed another one begins at least.
        self._above = np.where(table.meets, table.sizes[:, None], -_FAR)
        self._special = np.zeros(len(table.fixed), np.bool_)
        self._special[[each for pair in table.reaches for each in pair]] = True
        self._hard = np.zeros(len(table.fixed), np.bool_)
        self._over = _overlaps(table)
        self._lying_over = sorted({index for index, _ in self._over})
        for (index, other), reach in table.reaches.items():
            self._above[index, other] = min(-reach, int(table.sizes[index]))
        for index, other in self._over:
            self._above[other, index] = -_FAR

    def run(self, height: int, ranks: Sequence[int], nodes: int) -> Found:
        """Return a placement of at most `height` bytes, or what was proved.

        ranks  which of two rows that could lie equally low is tried first: the lesser
        """
        table = self._rows
        core, easy = _core(table, height)
        self._hard[:] = False
        self._hard[core] = True
        placed = list(table.fixed)
        lows = self._raised(np.zeros(len(table.fixed), np.int64), core, placed)
        need = self._need(core, lows, 0)
        if need > height:
            return Found(None, need, 1)
        bound, count = self._placed_core(core, lows, height, np.asarray(ranks), nodes, placed)
        if bound is not None:
            return Found(None, bound, count)
        return Found(lowest(table, easy, placed), height, count)

    def _placed_core(
        self,
        core: Int64s,
        lows: Int64s,
        height: int,
        rank: Int64s,
        nodes: int,
        placed: list[int | None],
    ) -> tuple[int | None, int]:
        """Fill in offsets, and return None, or the bound of `Found`; and the states seen.

        Parts are independent: where one cannot be placed, what was tried in another is no reason,
        and the search goes back to the row that set them apart.
        """
        stack: list[_State] = []
        above, count = _FAR, 0
        agenda = self._agenda(core, lows, 0, -1, -1, None)
        while agenda is not None:
            part, rest = agenda
            stack.append(_State(part, self._candidates(part, rank), rest))
            agenda = None
            while agenda is None:
                while not stack[-1].candidates:
                    creator = stack[-1].part.creator
                    if creator < 0:
                        return above, count
                    del stack[creator + 1 :]
                if count >= nodes:
                    return 0, count
                count += 1
                state = stack[-1]
                index = state.candidates.pop()
                part = state.part
                at = int(part.lows[index])
                placed[index] = at
                left = part.rows[part.rows != index]
                lows = self._raised(np.maximum(part.lows, at + self._above[index]), left, placed)
                need = self._need(left, lows, at)
                if need > height:
                    above = min(above, need)
                    continue
                agenda = self._agenda(left, lows, at, index, len(stack) - 1, state.rest)
                if agenda is None:
                    return None, count
        return None, count

    def _agenda(
        self, left: Int64s, lows: Int64s, floor: int, last: int, creator: int, rest: _Agenda
    ) -> _Agenda:
        """Return the parts that rows fall into, before the rest."""
        order = left[np.argsort(self._rows.firsts[left], kind="stable")]
        ends = np.maximum.accumulate(self._rows.lasts[order])
        cuts = np.flatnonzero(self._rows.firsts[order[1:]] > ends[:-1]) + 1
        for members in np.split(order, cuts):
            if members.size:
                rest = (_Part(np.sort(members), lows, floor, last, creator), rest)
        return rest

    def _raised(self, lows: Int64s, left: Int64s, placed: Sequence[int | None]) -> Int64s:
        """Return offsets that are aligned and clear of what lies higher than the last row."""
        lows = -(-lows // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        if not self._lying_over:
            return lows
        free = set(left.tolist())
        for index in self._lying_over:
            if index not in free:
                continue
            at = int(lows[index])
            for low, high in sorted(self._gaps_above(index, free, placed)):
                if low < at < high:
                    at = in_lines(high)
            lows[index] = at
        return lows

    def _gaps_above(
        self, index: int, free: set[int], placed: Sequence[int | None]
    ) -> Iterator[tuple[int, int]]:
        """Yield where a row must not begin because of placed rows that it may lie over."""
        for other in self._rows.neighbours[index]:
            start = placed[other]
            over = (index, other) in self._over
            if over and self._hard[other] and other not in free and start is not None:
                yield from forbidden(self._rows, index, other, start)

    def _need(self, left: Int64s, lows: Int64s, floor: int) -> int:
        """Return a height that what is left takes at least."""
        if not left.size:
            return 0
        low = np.maximum(lows[left], floor)
        sizes = self._rows.sizes[left]
        live = self._steps[:, left]
        least = np.where(live, low, _FAR).min(axis=1)
        rest = live @ sizes - self._savings[:, left].sum(axis=1)
        need = int(np.where(rest > 0, least + rest, 0).max(initial=0))
        return max(need, int((low + sizes).max()))

    def _candidates(self, part: _Part, rank: Int64s) -> list[int]:
        """Return the rows of a part that may be placed next, the best one last."""
        left = part.rows
        low = part.lows[left]
        allowed = (low > part.floor) | ((low == part.floor) & (left > part.last))
        allowed |= (low == part.floor) & self._special[left]
        allowed &= low < (low + self._rows.sizes[left]).min()
        allowed &= ~np.isin(self._twins[left], left)
        chosen = np.flatnonzero(allowed)
        order = np.lexsort((rank[left[chosen]], low[chosen]))[::-1]
        return left[chosen[order]].tolist()


def _core(table: Rows, height: int) -> tuple[Int64s, list[int]]:
    """Return rows that are hard to place, and the others in an order in which each finds a place.

    A row finds one whatever those before it do, if all that they could keep it from is less than
    the offsets that it could have.
    """
    left = {each for each, offset in enumerate(table.fixed) if offset is None}
    sizes = table.sizes.tolist()
    special = {each for pair in table.reaches for each in pair}
    easy: list[int] = []
    waiting = sorted(left)
    while waiting:
        index = waiting.pop()
        if index not in left:
            continue
        near = [other for other in table.neighbours[index] if other in left]
        if index in special:
            gaps = (gap for other in near for gap in forbidden(table, index, other, 0))
            kept = sum(max(0, high - low - ALIGNMENT_BYTES) for low, high in gaps)
        else:
            kept = sum(sizes[other] + sizes[index] - ALIGNMENT_BYTES for other in near)
        if kept <= height - sizes[index]:
            left.remove(index)
            easy.append(index)
            waiting.extend(other for other in near if other in left)
    return np.array(sorted(left), np.int64), easy[::-1]


def _steps_that_tell(table: Rows) -> tuple[Int64s, Bools]:
    """Return steps at which something begins, and which rows are taken then: [S, rows]."""
    steps = np.unique(table.firsts)
    live = (table.firsts <= steps[:, None]) & (steps[:, None] <= table.lasts)
    kept: list[int] = []
    # A step whose rows are all there at a neighbour too says nothing that the neighbour does not.
    for index in range(len(steps)):
        beside = [other for other in (index - 1, index + 1) if 0 <= other < len(steps)]
        if not any(not (live[index] & ~live[other]).any() for other in beside):
            kept.append(index)
    return (steps[kept], live[kept]) if kept else (steps, live)


def _equal_rows(table: Rows) -> Int64s:
    """Return for each row the one before it that it cannot be told from, or -1."""
    seen: dict[tuple[int, int, int], int] = {}
    twins = np.full(len(table.fixed), -1, np.int64)
    special = {each for pair in table.reaches for each in pair}
    keys = zip(table.sizes.tolist(), table.firsts.tolist(), table.lasts.tolist(), strict=True)
    for index, key in enumerate(keys):
        if table.fixed[index] is None and index not in special:
            twins[index] = seen.get(key, -1)
            seen[key] = index
    return twins


def _overlaps(table: Rows) -> frozenset[tuple[int, int]]:
    """Return rows that may begin where another one ends not yet, though it lies lower."""
    behind = {pair for pair, reach in table.reaches.items() if reach >= 0}
    return frozenset(behind.union(table.exact, ((other, index) for index, other in table.exact)))
