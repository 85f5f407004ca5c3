"""The order in which options are tried, and where to look further.

Rewrites come first, since they bring most: group by group, each on top of the best so far, once
whatever memory that takes and once where no memory may grow. Then features to leave, then SRAM to
plan with. SRAM does not fall evenly with the latter: below the peak the compiler may find another
schedule, or none. So a few sizes are tried all over, then others between the least that was fast
enough and the next below that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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

FIRST_RUNGS = (0, 2)
"""Of a ladder of rewrites, those that are tried to choose one."""

PATIENCE = 2
"""Rungs of the chosen ladder without a gain before no other is tried."""

AS_ASKED = Choice()

Fits = Callable[[Candidate], bool]
"""Whether a candidate may be built upon."""


def search(bench: Bench, levers: Levers) -> None:
    """Try what is promising from what was asked for; `bench` keeps what is found."""
    base = bench.candidates[AS_ASKED]
    bench.ask([Choice(optimise=name) for name in levers.optimise])
    tracks: tuple[Fits, ...] = (
        lambda candidate: _no_larger(candidate, base),
        lambda candidate: True,
    )
    bests = [_built_up(bench, base, levers, fits) for fits in tracks]
    bases = dict.fromkeys([bests[0].choice, _smallest(bench, base).choice, bests[1].choice])
    for choice in bases:
        bench.ask([replace(choice, optimise=name) for name in levers.optimise])
        _search_sizes(bench, base, choice)


def most(levers: Levers) -> int:
    """Return how many compilations a search takes at most."""
    rungs = sum(len(ladder) for group in levers.rewrites for ladder in group)
    sizes = 3 * (len(SIZES) + ROUNDS * PROBES)
    return 1 + 4 * len(levers.optimise) + 2 * (rungs + len(levers.disabled)) + sizes


def _built_up(bench: Bench, base: Candidate, levers: Levers, fits: Fits) -> Candidate:
    """Return the fastest that adding one option after the other gives."""
    best = base
    for group in levers.rewrites:
        best = _climbed(bench, best, group, fits)
    alone = [_with(best.choice, disabled=name) for name in levers.disabled]
    gains = [each for each in bench.ask(alone) if fits(each) and each.cycles < best.cycles]
    for candidate in sorted(gains, key=lambda each: each.cycles):
        joined = _with(best.choice, disabled=candidate.choice.disabled[-1])
        best = _fastest([best, *bench.ask([joined])], fits)
    return best


def _climbed(
    bench: Bench, best: Candidate, group: Sequence[Sequence[str]], fits: Fits
) -> Candidate:
    """Return the fastest with one of a group of rewrites, or none of it."""
    before = best.choice

    def ask(names: Iterable[str]) -> list[Candidate]:
        return bench.ask([_with(before, rewrite=name) for name in names])

    first = [[ladder[rung] for rung in FIRST_RUNGS if rung < len(ladder)] for ladder in group]
    ask(name for names in first for name in names)
    tried = [_fastest(ask(names) or [best], fits, best) for names in first]
    place = min(range(len(tried)), key=lambda place: tried[place].cycles)
    fastest = _fastest([best, *tried], fits)
    idle = 0
    for name in group[place]:
        if name in first[place]:
            continue
        better = _fastest([fastest, *ask([name])], fits)
        idle = idle + 1 if better is fastest else 0
        fastest = better
        if idle == PATIENCE or bench.late:
            break
    return fastest


def _fastest(
    candidates: Sequence[Candidate], fits: Fits, otherwise: Candidate | None = None
) -> Candidate:
    """Return the fastest of those that fit, the first of equals."""
    fitting = [candidate for candidate in candidates if fits(candidate)] or (
        [otherwise] if otherwise else list(candidates[:1])
    )
    return min(fitting, key=lambda candidate: (candidate.cycles, candidate.sram_bytes))


def _with(choice: Choice, *, rewrite: str = "", disabled: str = "") -> Choice:
    rewrites = (*choice.rewrites, rewrite) if rewrite else choice.rewrites
    left = dict.fromkeys((*choice.disabled, disabled) if disabled else choice.disabled)
    return replace(choice, rewrites=rewrites, disabled=tuple(left))


def _no_larger(candidate: Candidate, base: Candidate) -> bool:
    pairs = zip(candidate.memories, base.memories, strict=True)
    return all(ours <= theirs for ours, theirs in pairs)


def _smallest(bench: Bench, base: Candidate) -> Candidate:
    """Return the one that takes the least SRAM of those that are fast enough."""
    candidates = (
        candidate
        for candidate in bench.candidates.values()
        if _fast(candidate, base) and _plain(candidate)
    )
    return min(candidates, key=lambda candidate: (candidate.sram_bytes, candidate.cycles))


def _plain(candidate: Candidate) -> bool:
    """Whether the SRAM to plan with, and what to try for, are as asked for."""
    return candidate.choice.arena_cache_bytes is None and candidate.choice.optimise is None


def _fast(candidate: Candidate, base: Candidate) -> bool:
    return candidate.cycles <= SLOWER * base.cycles


def _search_sizes(bench: Bench, base: Candidate, choice: Choice) -> None:
    """Look for the least SRAM at which the network is as fast as the base."""
    peak = bench.candidates[choice].sram_bytes
    tried = [_granules(peak * part) for part in SIZES]
    for _ in range(1 + ROUNDS):
        bench.ask([replace(choice, arena_cache_bytes=size) for size in dict.fromkeys(tried)])
        if bench.late:
            return
        sized = [
            candidate
            for candidate in bench.candidates.values()
            if candidate.choice
            == replace(choice, arena_cache_bytes=candidate.choice.arena_cache_bytes)
            and not _plain(candidate)
        ]
        tried = _between(sized, base)
        if not tried:
            return


def _granules(size_bytes: float) -> int:
    return max(int(size_bytes) // GRANULE_BYTES, 1) * GRANULE_BYTES


def _between(candidates: Sequence[Candidate], base: Candidate) -> list[int]:
    """Return sizes between that of the least that is fast enough, and the next one below."""
    tried = {candidate.choice.arena_cache_bytes or 0: candidate for candidate in candidates}
    fast = [candidate for candidate in candidates if _fast(candidate, base)]
    if not fast:
        return []
    least = min(fast, key=lambda candidate: (candidate.sram_bytes, candidate.cycles))
    high = least.choice.arena_cache_bytes or 0
    low = max((size for size in tried if size < high), default=0)
    steps = (low + (high - low) * step / (PROBES + 1) for step in range(1, PROBES + 1))
    return [size for size in dict.fromkeys(map(_granules, steps)) if size not in tried]
