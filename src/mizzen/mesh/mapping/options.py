"""What a mapper is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

Progress = Callable[[str], None]
"""Called with what is being done."""


class Placement(Enum):
    """How tiles come to chips and elements.

    SEARCHED  cut at the same places of every layer, or by METIS if that loads links less; put onto
              chips, and refined for the busiest link
    METIS     cut by METIS
    HILBERT   in the order of layers along a Hilbert curve over the chips, for comparison
    RANDOM    anywhere, for comparison
    """

    SEARCHED = "searched"
    METIS = "metis"
    HILBERT = "hilbert"
    RANDOM = "random"


class Solver(Enum):
    """Which solver takes one choice of splits a layer."""

    DYNAMIC = "dynamic"
    CP_SAT = "cp-sat"


class Multicast(Enum):
    """Whether a box that several elements need is one message, or one for each of them."""

    TREE = "tree"
    NONE = "none"


class SumSplit(Enum):
    """Whether convolutions may be split over input channels."""

    ALLOWED = "allowed"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """How a network is mapped.

    replicas     copies of the network; None to search for their number
    placement    how tiles come to chips and elements
    solver       what takes the splits
    seed         of everything that draws lots: the same seed gives the same mapping
    multicast    whether messages have several targets
    sum_split    whether input channels are split
    refinements  rounds of moving tiles away from the busiest links
    """

    replicas: int | None = None
    placement: Placement = Placement.SEARCHED
    solver: Solver = Solver.DYNAMIC
    seed: int = 0
    multicast: Multicast = Multicast.TREE
    sum_split: SumSplit = SumSplit.ALLOWED
    refinements: int = 4
