"""What the proof of a compiled network showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mizzen.compiler.proof.difference import Difference
from mizzen.diagnostics import MizzenError
from mizzen.report.proof import Proof


@dataclass(frozen=True, slots=True)
class Findings:
    """What executing a compiled network showed.

    wrong     operators by index whose results differ, and how; the first of each NPU operator
    faults    operators at which the stream cannot be executed, and why
    suspects  operators that may be the cause of outputs that differ where nothing says whose
              they are, those that compute the outputs first; each NPU operator's apart
    """

    proof: Proof
    wrong: Mapping[int, Difference] = field(default_factory=dict[int, Difference])
    faults: Mapping[int, MizzenError] = field(default_factory=dict[int, MizzenError])
    suspects: tuple[tuple[tuple[int, ...], Difference], ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return not (self.wrong or self.faults or self.suspects)

    @property
    def decides(self) -> bool:
        """Whether all outputs were compared, and are the reference's bit for bit."""
        proof = self.proof
        return self.holds and proof.inputs > 0 and not (proof.unproved or proof.bounded)
