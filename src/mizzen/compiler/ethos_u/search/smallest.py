"""Find the program that takes the least memory, of those that are not much slower than the fastest.

Each sequence is first scheduled in as little as its maps take by themselves, nothing staged beyond
that; where that is too slow, in the half of what is between that and the least that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mizzen.compiler.ethos_u.search.candidates import (
    CACHE_SHARES,
    IN_ARENA,
    Budget,
    arranged,
    work_of,
)
from mizzen.compiler.ethos_u.search.judging import Judged, judged
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.generator.cascade import Cascade, cascades, reordered, within
from mizzen.targets.ethos_u.generator.operations import Sequence
from mizzen.targets.ethos_u.generator.schedule import Effort, Limits, schedule
from mizzen.targets.ethos_u.judge.hazards import find_hazards
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

WORK = 1500.0
"""Of all that is scheduled, and `ALWAYS` times that of the first sequence at the least."""
ALWAYS = 4
HALVINGS = 3
NEAR = 0.02
"""Shares of memory that differ by less than this are not told apart."""
CASCADES_FAILING = 2
"""Of chains in stripes one after the other, until no more are tried."""
SLOWER = 1.35
"""Cycles over those of the fastest program, up to which less memory is worth them.

The fastest takes 0.74 of the cycles of Vela's fastest, so that this is about as fast."""


def smallest(sequence: Sequence, configuration: EthosUConfiguration, fastest: Judged) -> Judged:
    """Return the program in least memory that was found; the fastest where none takes less."""
    arrangements = arranged(sequence, configuration)
    work = max(WORK, ALWAYS * work_of(arrangements[0]))
    search = _Search(configuration, fastest, Budget(work, granted=True))
    best = search.best_of(arrangements) or arrangements[0]
    ordered = reordered(best)
    if ordered is not best and search.descend(ordered):
        best = ordered
    failing = 0
    for cascade in _cascades(best, arrangements[-1], configuration):
        if failing < CASCADES_FAILING and cascade.live_bytes < search.memory_bytes:
            failing = 0 if search.descend(cascade.sequence) else failing + 1
    return search.least


def _cascades(
    best: Sequence, plain: Sequence, configuration: EthosUConfiguration
) -> Iterator[Cascade]:
    """Yield chains of the best sequence, and of one that has no views that forbid them."""
    for sequence in dict.fromkeys((best, plain)):
        if configuration.mode.spills:
            cache = configuration.arena_cache_size_bytes
            yield from within(sequence, [int(share * cache) for share in CACHE_SHARES], IN_ARENA)
        else:
            yield from cascades(sequence)


@dataclass(eq=False)
class _Search:
    """The program in least memory so far.

    fastest  that others are measured by
    """

    configuration: EthosUConfiguration
    fastest: Judged
    budget: Budget
    least: Judged = field(init=False)

    def __post_init__(self) -> None:
        self.least = self.fastest

    @property
    def memory_bytes(self) -> int:
        """What the program in least memory writes to."""
        return self.least.cost.memory_bytes

    def best_of(self, sequences: Iterable[Sequence]) -> Sequence | None:
        """Return the sequence of several that needs least; None if none needs less than before."""
        best = None
        for sequence in sequences:
            best = sequence if self.descend(sequence) else best
        return best

    def descend(self, sequence: Sequence) -> bool:
        """Try a sequence in less and less memory, and return whether it needs less than others."""
        before, whole = self.memory_bytes, max(1, self.fastest.cost.memory_bytes)
        low_bytes = self._tried(sequence, 0.0)
        if low_bytes is None or low_bytes >= before:
            return self.memory_bytes < before
        low, high = low_bytes / whole, before / whole
        if self.configuration.mode.spills:
            low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            if self.memory_bytes <= low_bytes or high - low < NEAR:
                break
            share, known = (low + high) / 2, self.memory_bytes
            self._tried(sequence, share)
            low, high = (low, share) if self.memory_bytes < known else (share, high)
        return self.memory_bytes < before

    def _tried(self, sequence: Sequence, share: float) -> int | None:
        """Return the memory of a program within a share of the fastest's; None if there is none."""
        if not self.budget.grants(sequence):
            return None
        cost = self.fastest.cost
        limits = Limits(int(share * cost.arena_bytes), int(share * cost.fast_bytes))
        try:
            program = judged(
                schedule(sequence, self.configuration, limits, Effort.QUICK), self.configuration
            )
        except MizzenError:  # registers cannot say what it became
            return None
        if self._is_less(program) and not find_hazards(program.program).findings:
            self.least = program
        return program.cost.memory_bytes

    def _is_less(self, program: Judged) -> bool:
        cost, fastest = program.cost, self.fastest.cost
        return (
            cost.memory_bytes < self.memory_bytes
            and cost.cycles <= SLOWER * fastest.cycles
            and cost.vela_cycles <= SLOWER * fastest.vela_cycles
        )
