"""The order in which options are tried, and where to look further.

SRAM does not fall evenly with the SRAM that the compiler may plan with: below the peak it may find
another schedule, or none. So a few sizes are tried all over, then others between the least that
was fast enough and the next below that was not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mizzen.analysis.tuning.measuring import Bench
from mizzen.compiler.levers import Levers
from mizzen.report.tuning import Candidate, Choice

SIZES = (1.0, 0.9, 0.75, 0.6, 0.45, 0.3)
"""Parts of the peak to plan with at first."""

PROBES = 3
ROUNDS = 3
"""Sizes between two others, and how often to look between."""

GRANULE_BYTES = 16
"""Addresses of feature maps are multiples of it."""

SLOWER = 1.01
"""Cycles over the base's up to which a candidate with less memory is looked for."""

BASES = 2
"""Combinations of other options for which sizes are searched, besides what was asked for."""

AS_ASKED = Choice()


def search(bench: Bench, levers: Levers) -> None:
    """Try what is promising; `bench` keeps what is found."""
    bench.planned = most(levers)
    (base,) = bench.ask([AS_ASKED])
    bench.ask(_firsts(base, levers))
    combined = _combined(bench, base, levers)
    bench.ask([replace(row, optimise=name) for row in combined for name in levers.optimise])
    for choice in [AS_ASKED, *combined][: 1 + BASES]:
        _search_sizes(bench, base, choice)


def most(levers: Levers) -> int:
    """Return how many compilations a search takes at most."""
    rewrites = sum(map(len, levers.rewrites))
    firsts = 1 + len(levers.optimise) + len(levers.disabled) + rewrites + len(SIZES)
    combined = len(levers.rewrites) + len(levers.disabled) + BASES * len(levers.optimise)
    return firsts + combined + BASES * len(SIZES) + (1 + BASES) * ROUNDS * PROBES


def _firsts(base: Candidate, levers: Levers) -> list[Choice]:
    """Return each option alone, the most promising first."""
    return [
        *(Choice(rewrites=(name,)) for group in levers.rewrites for name in group),
        *(Choice(optimise=name) for name in levers.optimise),
        *_sizes(AS_ASKED, base),
        *(Choice(disabled=(name,)) for name in levers.disabled),
    ]


def _sizes(choice: Choice, base: Candidate) -> list[Choice]:
    return [replace(choice, arena_cache_bytes=_granules(base.sram_bytes * part)) for part in SIZES]


def _granules(size_bytes: float) -> int:
    return max(int(size_bytes) // GRANULE_BYTES, 1) * GRANULE_BYTES


def _combined(bench: Bench, base: Candidate, levers: Levers) -> list[Choice]:
    """Add up what makes the network faster, as long as each makes it faster still.

    The last is the best; before it what takes the least SRAM, if that is another one.
    """
    best = base
    singles = [
        *(group for group in _alternatives(levers)),
        *((Choice(disabled=(name,)),) for name in levers.disabled),
    ]
    gains = sorted(
        (row for group in singles for row in _fastest(bench, group) if row.cycles < base.cycles),
        key=lambda row: row.cycles,
    )
    for row in gains:
        (joined, *_) = bench.ask([_joined(best.choice, row.choice, levers)]) or [best]
        if joined.cycles < best.cycles:
            best = joined
    found = [best.choice] if best is not base else []
    smaller = min(
        (row for row in bench.candidates.values() if _plain(row) and _fast(row, base)),
        key=lambda row: (row.sram_bytes, row.cycles),
    )
    if smaller.sram_bytes < best.sram_bytes and smaller.choice not in (AS_ASKED, *found):
        found.append(smaller.choice)
    return found


def _alternatives(levers: Levers) -> Iterable[tuple[Choice, ...]]:
    for group in levers.rewrites:
        yield tuple(Choice(rewrites=(name,)) for name in group)


def _fastest(bench: Bench, group: Sequence[Choice]) -> list[Candidate]:
    """Return the fastest of alternatives, if any compiled."""
    rows = [bench.candidates[row] for row in group if row in bench.candidates]
    return sorted(rows, key=lambda row: row.cycles)[:1]


def _joined(one: Choice, other: Choice, levers: Levers) -> Choice:
    """Join two choices; rewrites keep the order of their groups."""
    names = {*one.rewrites, *other.rewrites}
    ordered = tuple(name for group in levers.rewrites for name in group if name in names)
    disabled = tuple(dict.fromkeys((*one.disabled, *other.disabled)))
    return replace(one, disabled=disabled, rewrites=ordered)


def _plain(row: Candidate) -> bool:
    """Whether the SRAM to plan with is as asked for."""
    return row.choice.arena_cache_bytes is None


def _fast(row: Candidate, base: Candidate) -> bool:
    return row.cycles <= SLOWER * base.cycles


def _search_sizes(bench: Bench, base: Candidate, choice: Choice) -> None:
    """Look for the least SRAM at which the network is as fast as the base."""
    bench.ask(_sizes(choice, base))
    for _ in range(ROUNDS):
        rows = [
            row
            for row in bench.candidates.values()
            if replace(row.choice, arena_cache_bytes=None) == choice and not _plain(row)
        ]
        sizes = _between(rows, base)
        if not sizes or bench.late:
            return
        bench.ask([replace(choice, arena_cache_bytes=size) for size in sizes])


def _between(rows: Sequence[Candidate], base: Candidate) -> list[int]:
    """Return sizes between that of the least that is fast enough, and the next one below."""
    tried = {row.choice.arena_cache_bytes or 0: row for row in rows}
    fast = [row for row in rows if _fast(row, base)]
    if not fast:
        return []
    least = min(fast, key=lambda row: (row.sram_bytes, row.cycles))
    high = least.choice.arena_cache_bytes or 0
    low = max((size for size in tried if size < high), default=0)
    steps = (low + (high - low) * step / (PROBES + 1) for step in range(1, PROBES + 1))
    return [size for size in dict.fromkeys(map(_granules, steps)) if size not in tried]
