"""Whether a program is right: free of hazards, and computing what Vela's code computes."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.compiler.ethos_u.generator.equality import Array, Expected
from mizzen.compiler.ethos_u.generator.judging import Judged
from mizzen.diagnostics import MizzenError
from mizzen.report.code import Rejected, Verdict
from mizzen.targets.ethos_u.judge.hazards import alone, find_hazards
from mizzen.targets.ethos_u.machine.program import Program


class Faults:
    """Why programs in the place of Vela's are not right, each looked at once.

    inputs  that they are executed with; None if they may be any numbers
    """

    def __init__(self, theirs: Program, inputs: Sequence[Array] | None = None) -> None:
        self._expected = Expected(theirs, inputs)
        self._known: dict[tuple[Judged, frozenset[int]], Rejected | None] = {}

    def of(self, ours: Judged, kept: frozenset[int]) -> Rejected | None:
        """Return why a program is not right; None if it is. Inputs that are kept last behind it."""
        key = ours, kept
        if key not in self._known:
            self._known[key] = self._found(ours.program, kept)
        return self._known[key]

    def _found(self, ours: Program, kept: frozenset[int]) -> Rejected | None:
        found = find_hazards(ours, alone(ours, kept)).findings
        if found:
            return Rejected(Verdict.HAZARD, f"a hazard: {found[0].diagnostic.message}")
        try:
            different = self._expected.differing(ours)
        except MizzenError as error:
            return Rejected(Verdict.STOPS, error.diagnostic.message)
        return Rejected(Verdict.DIFFERS, different) if different else None
