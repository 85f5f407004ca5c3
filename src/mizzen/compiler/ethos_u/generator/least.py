"""Find the code that needs the least memory of what takes no more time than Vela's.

Each sequence is first scheduled in as little as its maps take by themselves, nothing staged beyond
that; where that is too slow, in the half of what is between that and the least that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mizzen.compiler.ethos_u.generator.candidates import (
    CACHE_SHARES,
    IN_ARENA,
    Budget,
    arranged,
    work_of,
)
from mizzen.compiler.ethos_u.generator.faults import Faults
from mizzen.compiler.ethos_u.generator.judging import Judged, judged, worse
from mizzen.compiler.ethos_u.generator.search import (
    Found,
    decided,
    made,
    maps_bytes,
    of_sources,
)
from mizzen.compiler.ethos_u.generator.sequences import Made, Source
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.generator.cascade import Cascade, cascades, reordered, within
from mizzen.targets.ethos_u.generator.operations import Sequence
from mizzen.targets.ethos_u.generator.schedule import UNLIMITED, Effort, Limits
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import Program

WORK = 1500.0
"""Of all that is scheduled, and `ALWAYS` times that of the first sequence at the least."""
ALWAYS = 4
HALVINGS = 3
NEAR = 0.02
"""Shares of memory that differ by less than this are not told apart."""
CASCADES_FAILING = 2
"""Of chains in stripes one after the other, until no more are tried."""


def least(program: Program, source: Source, configuration: EthosUConfiguration) -> Found:
    """Look for a program that does what Vela's does in less memory and no more time."""
    theirs, faults = judged(program, configuration), Faults(program, source.inputs)

    def find(begun: Made, granted: bool) -> Found:
        assert granted, "Vela's words are tried where nothing else may be taken"
        tried = _tried(begun, program, theirs, configuration)
        return decided(faults, theirs, begun, tried, configuration, maps_bytes)

    return of_sources(program, source, theirs, find, maps_bytes, both=False)


def _tried(
    begun: Made, program: Program, theirs: Judged, configuration: EthosUConfiguration
) -> list[Judged]:
    """Return programs that are no worse than Vela's; one that may be where there are none."""
    rows = arranged(begun.sequence, configuration)
    search = _Search(program, theirs, configuration, work_of(rows[0]), begun.places)
    best = search.best_of(rows) or rows[0]
    ordered = reordered(best)
    if ordered is not best and search.descend(ordered):
        best = ordered
    failing = 0
    for cascade in _cascades(best, rows[-1], configuration):
        if failing < CASCADES_FAILING and cascade.live_bytes < search.memory_bytes:
            failing = 0 if search.descend(cascade.sequence) else failing + 1
    return search.found or [made(begun.sequence, program, configuration, begun.places)]


def _cascades(
    best: Sequence, plain: Sequence, configuration: EthosUConfiguration
) -> Iterator[Cascade]:
    """Yield chains of the best sequence, and of one that has no views that forbid them."""
    for sequence in dict.fromkeys((best, plain)):
        if configuration.mode.spills:
            cache = configuration.arena_cache_size_bytes
            yield from within(sequence, [int(row * cache) for row in CACHE_SHARES], IN_ARENA)
        else:
            yield from cascades(sequence)


class _Search:
    """Programs that are no worse than Vela's, and the least memory of one of them.

    work    of the first sequence
    places  of what must lie somewhere
    """

    def __init__(
        self,
        program: Program,
        theirs: Judged,
        configuration: EthosUConfiguration,
        work: float,
        places: Limits = UNLIMITED,
    ) -> None:
        self._program = program
        self._configuration = configuration
        self._theirs = theirs
        self._budget = Budget(max(WORK, ALWAYS * work), granted=True)
        self._places = places
        self._whole_bytes = max(1, maps_bytes(theirs.cost))
        self.found: list[Judged] = []
        self.memory_bytes = maps_bytes(theirs.cost)

    def best_of(self, rows: Iterable[Sequence]) -> Sequence | None:
        """Return the sequence of several that needs least; None if none needs less than Vela's."""
        best = None
        for row in rows:
            best = row if self.descend(row) else best
        return best

    def descend(self, sequence: Sequence) -> bool:
        """Try a sequence in less and less memory, and return whether it needs less than others."""
        before = self.memory_bytes
        low_bytes = self._tried(sequence, 0.0)
        if low_bytes is None or low_bytes >= before:
            return self.memory_bytes < before
        low, high = low_bytes / self._whole_bytes, before / self._whole_bytes
        if self._configuration.mode.spills:
            low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            if self.memory_bytes <= low_bytes or high - low < NEAR:
                break
            share, known = (low + high) / 2, self.memory_bytes
            self._tried(sequence, share)
            low, high = (low, share) if self.memory_bytes < known else (share, high)
        return self.memory_bytes < before

    def _tried(self, sequence: Sequence, share: float) -> int | None:
        """Return the memory of a program within a share of Vela's; None if there may be none."""
        if not self._budget.grants(sequence):
            return None
        given = self._program, self._configuration, self._places, Effort.QUICK, share
        try:
            ours = made(sequence, *given)
        except MizzenError:  # what must lie somewhere is alive for longer than it can be there
            return None
        taken = maps_bytes(ours.cost)
        if not worse(ours.cost, self._theirs.cost):
            self.found.append(ours)
            self.memory_bytes = min(self.memory_bytes, taken)
        return taken
