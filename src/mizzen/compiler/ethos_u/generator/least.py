"""Find the code that needs the least memory of what takes no more time than Vela's."""

from __future__ import annotations

from mizzen.compiler.ethos_u.generator.candidates import arranged
from mizzen.compiler.ethos_u.generator.judging import Judged, judged, worse
from mizzen.compiler.ethos_u.generator.search import (
    Found,
    decided,
    made,
    maps_bytes,
    refused,
)
from mizzen.compiler.ethos_u.generator.sequences import Source
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.cascade import cascades, reordered
from mizzen.targets.ethos_u.config import EthosUConfiguration
from mizzen.targets.ethos_u.operations import Sequence
from mizzen.targets.ethos_u.program import Program
from mizzen.targets.ethos_u.schedule import UNLIMITED

STEP = 0.93
"""From the memory that was enough to what is tried next."""
FURTHER = 0.85
"""From what was not enough to what is tried next: less room can come to a better plan."""
MISSES = 2


def least(program: Program, source: Source, configuration: EthosUConfiguration) -> Found:
    """Look for a program that does what Vela's does in less memory and no more time."""
    search = _Search(program, configuration)
    try:
        begun = source.made(program)
        search.places = begun.places
        rows = arranged(begun.sequence, configuration)
        best = rows[0]
        for row in rows:
            best = row if search.descend(row) else best
        ordered = reordered(best)
        if ordered is not best and search.descend(ordered):
            best = ordered
        for cascade in cascades(best):
            if cascade.live_bytes < search.memory_bytes:
                search.descend(cascade.sequence)
    except MizzenError as error:
        return refused(program, search.theirs, error)
    return decided(program, search.theirs, begun, search.candidates, configuration, maps_bytes)


class _Search:
    """Programs that were tried, and the least memory of those that take no more time."""

    def __init__(self, program: Program, configuration: EthosUConfiguration) -> None:
        self._program = program
        self._configuration = configuration
        self.theirs = judged(program, configuration)
        self.candidates: list[Judged] = []
        self.places = UNLIMITED
        self.memory_bytes = maps_bytes(self.theirs.cost)

    def descend(self, sequence: Sequence) -> bool:
        """Try a sequence in less and less memory, and return whether it needs less than others."""
        whole = max(1, maps_bytes(self.theirs.cost))
        found, misses = False, 0
        share = STEP * self.memory_bytes / whole if self.candidates else 1.0
        while misses < MISSES:
            taken = self._taken(sequence, share)
            if taken is not None and taken < self.memory_bytes:
                self.memory_bytes = taken
                found, share, misses = True, STEP * taken / whole, 0
            else:
                share, misses = FURTHER * share, misses + 1
        return found

    def _taken(self, sequence: Sequence, share: float) -> int | None:
        """Return the memory of a program within a share of Vela's; None where it is worse."""
        ours = made(sequence, self._program, self._configuration, share, self.places)
        self.candidates.append(ours)
        return None if worse(ours.cost, self.theirs.cost) else maps_bytes(ours.cost)
