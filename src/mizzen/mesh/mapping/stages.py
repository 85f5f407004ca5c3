"""Stages: which layers share elements, how many elements each stage has, and how layers are split.

A stage is one layer, or a run of layers on the same elements, which compute them one after the
other for each image. The period is the time of the slowest stage. For a period, dynamic programming
over the layers finds the stages that need the fewest elements; the least period for which they
suffice is found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from mizzen.mesh.machine.machine import ElementKind, Machine
from mizzen.mesh.mapping.depths import Buffering, depths_of, input_slots
from mizzen.mesh.mapping.options import SumSplit
from mizzen.mesh.mapping.splits import Choices, Ints, Limits, Split, choices_of, fewer
from mizzen.mesh.network.network import Network

MOST_SHARING = 4
"""Layers for each element up to which stages of several layers are worth looking for."""
PRECISION = 1.002
"""Ratio of two periods that are told apart."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers from `first` up to `last`, on `elements` elements of a kind; a split for each."""

    first: int
    last: int
    kind: int
    elements: int
    splits: tuple[Split, ...]


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a replica, in order, and the time of the slowest."""

    stages: tuple[Stage, ...]
    period_s: float

    @property
    def elements(self) -> int:
        """How many elements they have together."""
        return sum(stage.elements for stage in self.stages)


@dataclass(frozen=True, eq=False)
class Problem:
    """A network to be laid onto so many elements of each kind; the choices of each layer."""

    network: Network
    kinds: tuple[ElementKind, ...]
    elements: tuple[int, ...]
    buffering: Buffering
    choices: tuple[Choices, ...]

    def on(self, elements: tuple[int, ...]) -> Problem:
        """Return the same for fewer elements."""
        choices = tuple(fewer(one, max(elements)) for one in self.choices)
        return replace(self, elements=elements, choices=choices)

    @property
    def may_fit(self) -> bool:
        """Whether all memories together hold what the layers need at least."""
        if not all(len(choices.tiles) for choices in self.choices):
            return False
        needed = sum(
            int((choices.tiles * np.minimum(choices.held, choices.alone)).min())
            for choices in self.choices
        )
        sizes = zip(self.elements, self.kinds, strict=True)
        return needed <= sum(count * kind.data_bytes for count, kind in sizes)

    @cached_property
    def shares(self) -> bool:
        """Whether there are so few elements that layers may have to share them."""
        return sum(self.elements) < MOST_SHARING * len(self.network.layers)


def problem_of(
    network: Network,
    machine: Machine,
    elements: tuple[int, ...],
    buffering: Buffering,
    sums: SumSplit,
) -> Problem:
    """Return a network and its choices for so many elements of each kind of a machine."""
    depths = depths_of(network)
    limits = Limits(max(elements), sums, machine.port_bytes_per_s)
    choices = tuple(
        choices_of(
            network,
            layer,
            machine.kinds,
            input_slots(network, layer, depths[index], depths, buffering),
            buffering,
            limits,
        )
        for index, layer in enumerate(network.layers)
    )
    return Problem(network, machine.kinds, elements, buffering, choices)


class Periodic(Protocol):
    """What has a period."""

    @property
    def period_s(self) -> float:
        """Seconds between two images."""
        ...


Found = TypeVar("Found", bound=Periodic)


def bisect(
    solve: Callable[[float], Found | None], low: float, high: float, precision: float = PRECISION
) -> Found | None:
    """Return the result of `solve` for the least period that it finds anything for."""
    best = solve(high)
    if best is None:
        return None
    while high / low > precision:
        middle = (low * high) ** 0.5
        result = solve(middle)
        if result is None:
            low = middle
        else:
            best, high = result, min(middle, result.period_s)
            low = min(low, high)
    return best


def period_range(problem: Problem) -> tuple[float, float]:
    """Return a period below which no layer fits, and the time of all layers on one element."""
    least = max(float(choices.seconds.min()) for choices in problem.choices)
    return least, sum(float(choices.seconds.max()) for choices in problem.choices)


def usable_choices(choices: Choices, kind: ElementKind, at: int, period_s: float) -> Ints:
    """Return the splits whose tiles fit an element's memory, and its time in a period."""
    fits = (choices.held <= kind.data_bytes) & (choices.seconds[at] <= period_s)
    return np.flatnonzero(fits)


def apart(problem: Problem, period_s: float) -> Stages | None:
    """Return a stage for each layer with the fewest elements; None where there are too few."""
    stages: list[Stage] = []
    slowest, used = 0.0, 0
    for index, choices in enumerate(problem.choices):
        usable = usable_choices(choices, problem.kinds[0], 0, period_s)
        if not len(usable):
            return None
        best = usable[np.lexsort((choices.traffic[usable], choices.tiles[usable]))[0]]
        stages.append(stage_of(choices, index, int(best)))
        slowest = max(slowest, float(choices.seconds[0, best]))
        used += int(choices.tiles[best])
    return Stages(tuple(stages), slowest) if used <= problem.elements[0] else None


def stage_of(choices: Choices, layer: int, at: int) -> Stage:
    """Return a stage of one layer with an element for each tile."""
    return Stage(layer, layer + 1, 0, int(choices.tiles[at]), (choices.splits[at],))
