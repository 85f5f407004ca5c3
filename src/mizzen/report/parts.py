"""The parts of an instrumented artifact: what each measures, and what the cutting costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from mizzen.diagnostics import Origin


@dataclass(frozen=True, slots=True)
class PartCost:
    """A part, which the NPU is started for by itself. Cycles are estimates.

    number           among all starts of an inference, from 1
    operator         place of the NPU operator that was cut, among those of the artifact
    layers           of the network that the part computes; where nothing names them, commands
    operations       of the NPU, transfers left out
    cycles           of the part by itself: what its counters will count
    in_whole_cycles  what its operations add to the artifact that was not cut
    start_cycles     of `cycles`, until its own first operation is at work: commands are fetched,
                     lookup tables loaded again
    """

    number: int
    operator: int
    layers: tuple[Origin, ...]
    operations: int
    cycles: int
    in_whole_cycles: int
    start_cycles: int

    @property
    def added_cycles(self) -> int:
        """What the cutting adds: the start, and work that ran beside the part before or after."""
        return self.cycles - self.in_whole_cycles

    def as_dict(self) -> dict[str, Any]:
        """Return the part as JSON-ready data."""
        return {
            "part": self.number,
            "operator": self.operator,
            "layers": [asdict(layer) for layer in self.layers],
            "operations": self.operations,
            "cycles": self.cycles,
            "in_whole_cycles": self.in_whole_cycles,
            "added_cycles": self.added_cycles,
            "start_cycles": self.start_cycles,
        }
