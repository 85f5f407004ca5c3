"""The best block of an operation for where its maps and constants lie, and the second best.

What counts is the sum of both models' cycles: a block that is best by one alone gains little, and
the models' errors differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.operations import Blocking, Shape
from mizzen.targets.ethos_u.generator.schedule.blocks import (
    Blocks,
    Candidates,
    possible,
    traversals,
)
from mizzen.targets.ethos_u.generator.schedule.cost import Traffic, events, formula
from mizzen.targets.ethos_u.generator.schedule.facts import Facts
from mizzen.targets.ethos_u.generator.shared_buffer import AnyDemand
from mizzen.targets.ethos_u.generator.tuned import (
    EXPOSED_FILLING,
    HIDDEN_TRAFFIC_WEIGHT,
    SIMULATED_BLOCKS,
)
from mizzen.targets.ethos_u.judge.timing.machine import Machine
from mizzen.targets.ethos_u.machine.config import Port


@dataclass(frozen=True, slots=True)
class Choice:
    """A block with its cycles.

    own, memory   by Vela's formula: of the operation, of the busiest memory
    units, ports  by events: of array and output unit, for which each bus is needed
    fetch, drain  until the first input is there, until the last output is
    """

    blocking: Blocking
    own: float
    memory: float
    units: float
    ports: tuple[tuple[Port, float], ...]
    fetch: float
    drain: float

    @property
    def by_formula(self) -> float:
        """Cycles by Vela's formula, no transfer being waited for."""
        return max(float(int(self.own)), self.memory)

    @property
    def by_events(self) -> float:
        """Cycles that the timeline gets longer by, about."""
        main = max([self.units, *(cycles for _, cycles in self.ports)])
        return main + EXPOSED_FILLING * (self.fetch + self.drain)

    @property
    def cycles(self) -> float:
        """What is to be as small as can be."""
        moved = sum(cycles for _, cycles in self.ports)
        return self.by_formula + self.by_events + HIDDEN_TRAFFIC_WEIGHT * moved

    def port(self, port: Port) -> float:
        """Return the cycles for which a bus is needed."""
        return dict(self.ports).get(port, 0.0)


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best choice, and the best of those with another block or traversal that is not as good.

    considered  how many blocks there were
    """

    best: Choice
    second: Choice | None
    considered: int


@lru_cache(maxsize=1 << 14)
def ranked(
    facts: Facts,
    demand: AnyDemand,
    traffics: tuple[Traffic, ...],
    machine: Machine,
    row_cycles: float = 0.0,
) -> Ranked:
    """Return the best choice of all legal blocks.

    traffics    for each traversal that the operation may have, because the constants differ
    row_cycles  that each row is worth by which writing is ahead of reading (`rows_ahead`)
    """
    choices: list[Choice] = []
    considered = 0
    for part_kernel, traffic in zip(traversals(facts, demand), traffics, strict=True):
        blocks = possible(facts, demand, part_kernel, machine.accelerator)
        considered += len(blocks)
        traversed = Candidates(part_kernel, blocks, traffic.fast)
        price = row_cycles * rows_ahead(facts.shape, blocks)
        choices += _choices(facts, traversed, traffic, machine, price)

    def order(choice: Choice) -> tuple[float, Shape, bool]:
        blocking = choice.blocking
        ahead = rows_ahead(facts.shape, np.array([blocking.block]))[0] if row_cycles else 0.0
        return choice.cycles + row_cycles * float(ahead), blocking.block, blocking.part_kernel

    choices.sort(key=order)
    return Ranked(choices[0], choices[1] if len(choices) > 1 else None, considered)


def rows_ahead(shape: Shape, blocks: Blocks) -> npt.NDArray[np.float64]:
    """Return how many rows of the output are written of which inputs are still to be read.

    Blocks beside each other, or one after another in depth, read the same rows of the input.
    """
    at_once = (blocks[:, 1] >= shape[1]) & (blocks[:, 2] >= shape[2])
    return np.where(at_once, 0.0, np.minimum(blocks[:, 0], shape[0]).astype(np.float64))


def priced(facts: Facts, blocking: Blocking, traffic: Traffic, machine: Machine) -> Choice:
    """Return what a block costs, legal or not."""
    block = np.array([blocking.block], np.int64)
    alone = Candidates(blocking.part_kernel, block, traffic.fast)
    return _choices(facts, alone, traffic, machine, np.zeros(1))[0]


def _choices(
    facts: Facts,
    candidates: Candidates,
    traffic: Traffic,
    machine: Machine,
    price: npt.NDArray[np.float64],
) -> list[Choice]:
    """Return the best blocks of a traversal, in no order; `price` is added to their cycles."""
    whole = formula(facts, candidates.blocks, candidates.part_kernel, traffic, machine)
    memory = _largest(list(whole.memory.values()))
    total = np.maximum(np.floor(whole.own), np.floor(memory))
    order = np.argsort(total + HIDDEN_TRAFFIC_WEIGHT * memory + price, kind="stable")[
        :SIMULATED_BLOCKS
    ]
    timeline = events(facts, candidates.blocks[order], candidates.part_kernel, traffic, machine)
    ports = list(timeline.ports.items())
    main = np.maximum(timeline.units, _largest([cycles for _, cycles in ports]))
    cost = total[order] + main + EXPOSED_FILLING * (timeline.fetch + timeline.drain)
    cost = cost + HIDDEN_TRAFFIC_WEIGHT * sum(cycles for _, cycles in ports) + price[order]
    return [
        Choice(
            blocking=candidates.blocking(int(order[place])),
            own=float(whole.own[order[place]]),
            memory=float(np.floor(memory[order[place]])),
            units=float(timeline.units[place]),
            ports=tuple((port, float(cycles[place])) for port, cycles in ports),
            fetch=float(timeline.fetch[place]),
            drain=float(timeline.drain[place]),
        )
        for place in np.argsort(cost, kind="stable")[:2].tolist()
    ]


def _largest(cycles: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    most = cycles[0]
    for more in cycles[1:]:
        most = np.maximum(most, more)
    return most
