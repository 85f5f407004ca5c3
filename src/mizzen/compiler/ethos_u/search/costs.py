"""What the programs of a network need, in the form of a report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from mizzen.compiler.codegen import Costs
from mizzen.compiler.ethos_u.search.judging import Judged
from mizzen.report import Area, Measure
from mizzen.report.code import CodeChoice
from mizzen.targets.ethos_u.judge.timing import Held, KernelWork, Timed
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Memory

PURPOSES = {Held.FEATURE_MAP: "FeatureMap", Held.WEIGHTS: "Weights", Held.SCALES: "Scales"}
"""Vela's words for what memory holds; transfers are of weights, and tables are constants too."""


def costs_of(
    programs: Sequence[Judged],
    choices: Sequence[CodeChoice],
    configuration: EthosUConfiguration,
    arena_bytes: int | None = None,
) -> Costs:
    """Return what programs need that run one after the other.

    arena_bytes  of the network's arena; None for that of the programs
    """
    timed = [each for program in programs for each in program.timed]
    costs = [program.cost for program in programs]
    constants = sum(cost.constant_bytes for cost in costs)
    if arena_bytes is None:
        arena_bytes = max((cost.arena_bytes for cost in costs), default=0)
    mode = configuration.mode
    areas = [
        Area("constants", configuration.memory(mode.constants).value, constants),
        Area("arena", configuration.memory(mode.arena).value, arena_bytes),
    ]
    if mode.spills:
        fast = max((cost.fast_bytes for cost in costs), default=0)
        areas.append(Area("cache", configuration.memory(mode.cache).value, fast))
    return Costs(
        tuple(areas),
        tuple(_memories(areas, timed)),
        {
            "npuOps": sum(isinstance(each.work, KernelWork) for each in timed),
            "readOnlyPeakUsage": constants,
        },
        code=tuple(choices),
    )


def _memories(areas: Iterable[Area], timed: Iterable[Timed]) -> Iterator[Measure]:
    """Yield what each memory holds at most, and how it is accessed."""
    accesses: dict[Memory, dict[str, tuple[int, int]]] = {}
    cycles: defaultdict[Memory, float] = defaultdict(float)
    for use in (use for each in timed for use in each.uses):
        purpose = PURPOSES.get(use.held, "Weights")
        of_memory = accesses.setdefault(use.bus.memory, {})
        read, written = of_memory.get(purpose, (0, 0))
        of_memory[purpose] = read + use.read_bytes, written + use.written_bytes
        cycles[use.bus.memory] += use.cycles
    used: defaultdict[str, int] = defaultdict(int)
    for area in areas:
        used[area.memory] += area.used_bytes
    for name in sorted({*used, *(memory.value for memory in accesses)}):
        memory = Memory(name)
        yield Measure(name, used.get(name, 0), round(cycles[memory]), accesses.get(memory, {}))
