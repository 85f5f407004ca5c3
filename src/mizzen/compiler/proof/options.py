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

INPUTS_OF_SMALL = {**INPUTS, Effort.QUICK: 16}
"""Likewise where they take no more than `SMALL_VALUES_BYTES`: an error has fewer places to show."""

SMALL_VALUES_BYTES = 1 << 16
"""Of all tensors of one input."""

INPUTS_OF_LARGE = {**INPUTS, Effort.QUICK: 2}
"""Likewise where values take more than `LARGE_VALUES_BYTES`: a feature map of many elements already
meets many numbers, and a proof must not take longer than what it proves. Any integers and small
ones come first (`stimuli`)."""

LARGE_VALUES_BYTES = 1 << 19
"""Of all tensors of one input: more than networks for keywords, anomalies or a person take."""

LARGEST_VALUES_BYTES = 1 << 30
"""Of all tensors of all inputs; networks that need more execute fewer inputs, at least one."""

SEED = 20


@dataclass(frozen=True, slots=True)
class ProofOptions:
    """What to prove, and whether operators that are known to be inexact stay on the NPU."""

    effort: Effort = Effort.QUICK
    allow_inexact: bool = False
    seed: int = SEED

    @property
    def inputs(self) -> int:
        """Inferences that each NPU operator executes, but of large networks."""
        return INPUTS[self.effort]

    def inputs_for(self, values_bytes: int) -> int:
        """Return how many inferences to execute of a graph whose values take so much for one."""
        table = INPUTS if values_bytes <= LARGE_VALUES_BYTES else INPUTS_OF_LARGE
        if values_bytes <= SMALL_VALUES_BYTES:
            table = INPUTS_OF_SMALL
        return min(table[self.effort], max(1, LARGEST_VALUES_BYTES // max(1, values_bytes)))


DEFAULT = ProofOptions()
"""What is proved unless the user says otherwise."""

OFF = ProofOptions(Effort.OFF)
"""Nothing is proved; what is known to be wrong goes to the CPU all the same."""


def effort_of(word: str) -> Effort:
    """Return the effort that a user's word means. E228 for another word."""
    try:
        return Effort(word)
    except ValueError:
        names = ", ".join(effort.value for effort in Effort)
        raise fail("E228", f"what to prove must be one of {names}, not {word!r}") from None
