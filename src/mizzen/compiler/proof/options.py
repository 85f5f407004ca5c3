"""How much is proved of what is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import fail


class Effort(Enum):
    """How much to prove; the value is the user's word."""

    OFF = "off"
    QUICK = "quick"
    THOROUGH = "thorough"


INPUTS = {Effort.OFF: 0, Effort.QUICK: 4, Effort.THOROUGH: 64}
"""Inferences that each NPU operator executes."""

SEED = 20


@dataclass(frozen=True, slots=True)
class ProofOptions:
    """What to prove, and whether operators that are known to be inexact stay on the NPU."""

    effort: Effort = Effort.QUICK
    allow_inexact: bool = False
    seed: int = SEED

    @property
    def inputs(self) -> int:
        """Inferences that each NPU operator executes."""
        return INPUTS[self.effort]


DEFAULT = ProofOptions()
"""What is proved unless the user says otherwise."""

OFF = ProofOptions(Effort.OFF)
"""Nothing is proved; what is known to be wrong goes to the CPU all the same."""


def effort_of(word: str) -> Effort:
    """Return what a user's word for it means. E228 for another word."""
    try:
        return Effort(word)
    except ValueError:
        names = ", ".join(row.value for row in Effort)
        raise fail("E228", f"what to prove must be one of {names}, not {word!r}") from None
