"""How far results of an NPU may be from those of a reference, as a documented bound says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """How far outputs may differ.

    steps  the largest difference, in integers of the output
    part   of the outputs, or of the different values among them, that differ at most: twice as many
           as were ever met, or more
    """

    steps: int
    part: float
