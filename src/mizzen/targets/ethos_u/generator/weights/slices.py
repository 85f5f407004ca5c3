"""Choose sections and slices: the cheapest way through a stream, cell by cell.

The stream is cut into cells. A state is a mapping, a coding of symbols and a divisor of zero runs;
each cell has its price in each state, a change of state the price of a header. Dynamic programming
finds the cheapest states; prices leave out what the last chunks of a slice waste, but for a mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.weights.coding import (
    CODES,
    CODINGS,
    LARGEST_SLICE,
    RUN_DIVISORS,
    SLICE_BITS,
    Mapping,
    Section,
    Slice,
    bits_of,
    codes_of,
)
from mizzen.targets.ethos_u.generator.weights.mappings import suited

WASTED_BITS = 6
"""Mean of what the last chunk of a slice leaves unused; raw symbols leave nothing."""
CELL_WEIGHTS = 8
"""Least weights of a cell: the outputs, or inputs, of a microblock."""
LONG_RUN = 24
"""Zeros in a row that may get cells of their own: padding mostly."""

PART_PRODUCTS = 1 << 18
"""Up to so many products OpenBLAS makes with one thread."""

Prices = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _State:
    """One of what a cell can be written in."""

    mapping: int
    coding: int
    run_divisor: int


@dataclass(frozen=True, slots=True)
class _Run:
    """Cells from `start` on, up to the next run's, in one state."""

    start: int
    state: _State


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried.

    cells      that a stream is cut into at equal distances, at most
    long_runs  whether long runs of zeros get cells of their own
    mappings   of each kind that are tried
    rounds     how often mappings are suited anew to the sections found
    """

    cells: int
    long_runs: bool
    mappings: int
    rounds: int


def choose(values: npt.NDArray[np.int16], effort: Effort) -> list[Section]:
    """Return sections for weights (one at least), cheap though not the cheapest there are."""
    stream = _Stream(codes_of(values), effort)
    candidates = _first_candidates(stream.counts.sum(0), effort.mappings)
    runs = _Search(stream, candidates).cheapest()
    for _ in range(effort.rounds):
        candidates = _suited_anew(stream, candidates, runs)
        runs = _Search(stream, candidates).cheapest()
    return _sections(stream, candidates, runs)


class _Stream:
    """Codes in cells, and how often each occurs in each.

    borders  first code of each cell, and the end
    symbols  places of codes that are not zero
    leading  zeros from the first code of each cell on
    """

    def __init__(self, codes: npt.NDArray[np.int16], effort: Effort) -> None:
        self.codes = codes
        self.symbols = np.flatnonzero(codes)
        ends = np.append(self.symbols, len(codes))
        runs = np.diff(ends) - 1
        self.borders = self._cut(effort, runs)
        self.cells = len(self.borders) - 1
        cell = np.repeat(np.arange(self.cells), np.diff(self.borders))
        self.counts = np.bincount(cell * CODES + codes, minlength=self.cells * CODES).reshape(
            self.cells, CODES
        )
        self.run_prices = np.stack(
            [
                np.bincount(cell[self.symbols], _run_bits(runs, divisor), self.cells)
                for divisor in RUN_DIVISORS
            ],
            axis=1,
        ).astype(np.float32)
        following = ends[np.searchsorted(self.symbols, self.borders[:-1])]
        self.leading = following - self.borders[:-1]

    def _cut(self, effort: Effort, runs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the borders of cells: at equal distances, and around long runs of zeros."""
        size = CELL_WEIGHTS
        while size * effort.cells < len(self.codes):
            size *= 2
        even = np.arange(0, len(self.codes), size)
        if not effort.long_runs:
            return np.append(even, len(self.codes))
        before = self.symbols[runs >= LONG_RUN] + 1
        behind = self.symbols[1:][runs[:-1] >= LONG_RUN]
        borders = np.sort(np.concatenate((even, before, behind, [len(self.codes)])))
        return borders[np.diff(borders, prepend=-1) > 0]


def _run_bits(runs: npt.NDArray[np.int64], divisor: int) -> npt.NDArray[np.int64]:
    """Return the bits of runs of zeros."""
    return (runs >> divisor) + 1 + divisor


def _first_candidates(counts: npt.NDArray[np.int64], mappings: int) -> list[Mapping]:
    """Return mappings for a whole stream: for all of it, and for it without its zeros."""
    candidates: dict[Mapping, None] = {}
    for zero_runs in (False, True):
        candidates |= dict.fromkeys(suited(counts, zero_runs, mappings))
    rare_zeros = counts.copy()
    rare_zeros[0] = min(counts[0], 1)
    candidates |= dict.fromkeys(suited(rare_zeros, False, 1))
    return list(candidates)


class _Search:
    """The states of all cells of a stream, and their prices in bits.

    mapping, header, change  of each state: its mapping, what the header that makes it costs, what
                             it costs to enter it from another state of its mapping
    first                    first state of each mapping
    leading                  zeros before the first symbol, if a cell begins a section: [cells, 5],
                             by divisor, and 0 where zeros are symbols
    """

    def __init__(self, stream: _Stream, candidates: Sequence[Mapping]) -> None:
        self.states = [
            _State(index, coding, divisor)
            for index, mapping in enumerate(candidates)
            for coding in range(len(CODINGS))
            for divisor in (RUN_DIVISORS if mapping.zero_runs else (0,))
        ]
        self.prices = _prices(stream, candidates)
        self.mapping = np.array([state.mapping for state in self.states])
        self.first = np.flatnonzero(np.diff(self.mapping, prepend=-1))
        runs = np.array([each.zero_runs for each in candidates])[self.mapping]
        raw = np.array([CODINGS[state.coding].raw for state in self.states])
        waste = WASTED_BITS * (runs.astype(float) + ~raw)
        self.header = np.array([each.header_bits for each in candidates])[self.mapping] + waste
        self.change = SLICE_BITS + waste
        divisors = np.array([state.run_divisor for state in self.states])
        self.leading_column = np.where(runs, divisors, len(RUN_DIVISORS))
        of_divisors = [_run_bits(stream.leading, divisor) for divisor in RUN_DIVISORS]
        leading = np.stack([*of_divisors, np.zeros(stream.cells, np.int64)], axis=1)
        self.leading = leading.astype(np.float64)

    def begins(self) -> npt.NDArray[np.float64]:
        """Return the price of entering each state in each cell from another mapping."""
        return self.leading[:, self.leading_column] + self.header

    def cheapest(self) -> list[_Run]:
        """Return the states that are cheapest in sum."""
        begins = self.begins()
        sums, enters = np.empty(self.prices.shape), np.empty(self.prices.shape)
        sums[0] = before = begins[0] + self.prices[0]
        first, mapping, change = self.first, self.mapping, self.change
        least, add, smaller = np.minimum.reduceat, np.add, np.minimum
        for prices, begin, enter, total in zip(
            self.prices[1:], begins[1:], enters[1:], sums[1:], strict=True
        ):
            of_mappings = least(before, first)
            add(begin, of_mappings.min(), out=enter)
            smaller(enter, of_mappings[mapping] + change, out=enter)
            smaller(enter, before, out=total)
            add(total, prices, out=total)
            before = total
        came = np.zeros(self.prices.shape, bool)
        np.less(enters[1:], sums[:-1], out=came[1:])
        return self._traced(sums, came, begins)

    def _traced(
        self,
        sums: npt.NDArray[np.float64],
        came: npt.NDArray[np.bool_],
        begins: npt.NDArray[np.float64],
    ) -> list[_Run]:
        state = int(sums[-1].argmin())
        stop = len(sums)
        runs: list[_Run] = []
        while True:
            entries = np.flatnonzero(came[:stop, state])
            cell = int(entries[-1]) if len(entries) else 0
            runs.append(_Run(cell, self.states[state]))
            if not cell:
                return runs[::-1]
            price = np.full(len(self.states), begins[cell, state])
            price[self.mapping == self.mapping[state]] = self.change[state]
            state = int((sums[cell - 1] + price).argmin())
            stop = cell


def _prices(stream: _Stream, candidates: Sequence[Mapping]) -> Prices:
    """Return the bits of each cell in each state."""
    used = np.flatnonzero(stream.counts.any(0))
    counts = stream.counts[:, used].astype(np.float32)
    rows = np.concatenate([bits_of(each, used) for each in candidates])
    of_symbols = _product(counts, rows).reshape(stream.cells, len(candidates), len(CODINGS))
    prices: list[Prices] = []
    for index, mapping in enumerate(candidates):
        mine = of_symbols[:, index]
        if mapping.zero_runs:
            mine = (mine[:, :, None] + stream.run_prices[:, None, :]).reshape(stream.cells, -1)
        prices.append(mine)
    return np.concatenate(prices, axis=1)


def _product(counts: Prices, rows: Prices) -> Prices:
    """Return `counts @ rows.T`, in parts so small that BLAS starts no threads, which would wait."""
    step = max(1, PART_PRODUCTS // rows.size)
    return np.concatenate([counts[at : at + step] @ rows.T for at in range(0, len(counts), step)])


def _suited_anew(
    stream: _Stream, candidates: Sequence[Mapping], runs: Sequence[_Run]
) -> list[Mapping]:
    """Return the mappings in use, and for the cells of each the one that suits them best."""
    used = sorted({run.state.mapping for run in runs})
    of_cell = np.repeat(
        [run.state.mapping for run in runs],
        np.diff([*(run.start for run in runs), stream.cells]),
    )
    whole = stream.counts.sum(0)
    suitable = {candidates[index]: None for index in used}
    for index in used:
        counts = stream.counts[of_cell == index].sum(0)
        for zero_runs in (False, True):
            suitable |= dict.fromkeys(suited(counts, zero_runs, 1))
    for zero_runs in (False, True):
        suitable |= dict.fromkeys(suited(whole, zero_runs, 1))
    return list(suitable)


def _sections(
    stream: _Stream, candidates: Sequence[Mapping], runs: Sequence[_Run]
) -> list[Section]:
    starts = [run.start for run in runs]
    mappings = [run.state.mapping for run in runs]
    begins = [
        index for index in range(len(runs)) if not index or mappings[index] != mappings[index - 1]
    ]
    sections: list[Section] = []
    for begin, end in zip(begins, [*begins[1:], len(runs)], strict=True):
        borders = [*starts[begin:end], starts[end] if end < len(runs) else stream.cells]
        places = stream.borders[borders]
        states = [run.state for run in runs[begin:end]]
        sections.append(_section(stream, candidates[mappings[begin]], places, states))
    return sections


def _section(
    stream: _Stream, mapping: Mapping, places: npt.NDArray[np.int64], states: Sequence[_State]
) -> Section:
    """Return one section whose slices begin at, and end before, places of weights."""
    weights = int(places[-1] - places[0])
    borders = np.searchsorted(stream.symbols, places) if mapping.zero_runs else places
    slices: list[Slice] = []
    for symbols, state in zip(np.diff(borders).tolist(), states, strict=True):
        for start in range(0, symbols, LARGEST_SLICE):
            part = min(LARGEST_SLICE, symbols - start)
            slices.append(Slice(part, CODINGS[state.coding], state.run_divisor))
    if not slices:
        return Section(weights, ZEROS, (Slice(1, CODINGS[0], RUN_DIVISORS[-1]),))
    return Section(weights, mapping, tuple(slices))


ZEROS = Mapping((), 0, 2, zero_runs=True)
"""For weights that are all zero: the first is a symbol."""
