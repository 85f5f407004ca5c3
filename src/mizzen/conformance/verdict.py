"""What became of one network on one accelerator."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """What became of a network; the value is the word for it."""

    EXACT = "exact"
    OFF = "off"
    CPU = "on the CPU"
    REFUSED = "refused"
    CRASHED = "crashed"
    FAULTY = "faulty"
    NOT_RUN = "not run"
    NOT_COMPARED = "not compared"


HOLDING = frozenset({Verdict.EXACT, Verdict.CPU})
"""Verdicts that need no excuse."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far outputs are from the kernels'.

    steps      the largest difference, in steps of the output's integers
    differing  outputs that differ, of `outputs`
    """

    steps: int
    differing: int
    outputs: int

    @property
    def share(self) -> float:
        """The part of the outputs that differs."""
        return self.differing / self.outputs


@dataclass(frozen=True, slots=True)
class Row:
    """One network on one accelerator.

    detail      why: the CPU's reason, or what the compiler, simulator or kernels say
    difference  how far off, where the verdict is OFF
    oracle      whose kernels it was compared with
    exception   the documented exception that explains the verdict, by its title
    """

    case: str
    operator: str
    dtype: str
    accelerator: str
    verdict: Verdict
    detail: str = ""
    difference: Difference | None = None
    oracle: str | None = None
    exception: str | None = None

    @property
    def holds(self) -> bool:
        """Whether this is as it must be, or as the documentation says."""
        return self.verdict in HOLDING or self.exception is not None

    def as_dict(self) -> dict[str, object]:
        """Return the row for JSON."""
        difference = self.difference
        return {
            "network": self.case,
            "operator": self.operator,
            "type": self.dtype,
            "accelerator": self.accelerator,
            "verdict": self.verdict.value,
            "detail": self.detail,
            "steps": difference.steps if difference else None,
            "differing": difference.differing if difference else None,
            "outputs": difference.outputs if difference else None,
            "oracle": self.oracle,
            "exception": self.exception,
            "holds": self.holds,
        }
