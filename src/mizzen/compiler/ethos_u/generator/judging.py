"""What a program costs, and whether it may take another's place."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.report.code import StreamCost
from mizzen.targets.ethos_u.generator.operations import Schedule
from mizzen.targets.ethos_u.judge.timing import Timed, estimate
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A program, how long its operations take, and what it costs.

    schedule  that it was emitted from; None of Vela's
    """

    program: Program
    timed: list[Timed]
    cost: StreamCost
    schedule: Schedule | None = None


def judged(program: Program, configuration: EthosUConfiguration) -> Judged:
    """Return a program with what it costs in a system. Raises as the timing model does."""
    timed = estimate(program, configuration)
    sizes = program.region_bytes
    cost = StreamCost(
        cycles=round(sum(row.cycles for row in timed)),
        vela_cycles=sum(row.vela_cycles for row in timed),
        arena_bytes=sizes.get(RegionIndex.SCRATCH, 0),
        fast_bytes=sizes.get(RegionIndex.SCRATCH_FAST, 0),
        constant_bytes=sum(len(data) for data in program.constants.values()),
    )
    return Judged(program, timed, cost)


def worse(ours: StreamCost, theirs: StreamCost) -> str:
    """Say in what ours is worse; empty if it is in nothing that counts."""
    rows = (
        ("cycles", ours.cycles, theirs.cycles),
        ("cycles by Vela's formula", ours.vela_cycles, theirs.vela_cycles),
        ("bytes of the arena", ours.arena_bytes, theirs.arena_bytes),
        ("bytes of fast memory", ours.fast_bytes, theirs.fast_bytes),
    )
    return ", ".join(f"{mine} {what} for {other}" for what, mine, other in rows if mine > other)


def is_better(ours: StreamCost, theirs: StreamCost) -> bool:
    """Whether ours is worse in nothing, and better in something."""
    if worse(ours, theirs):
        return False
    return ours.cycles < theirs.cycles or _memory(ours) < _memory(theirs)


def _memory(cost: StreamCost) -> int:
    return cost.arena_bytes + cost.fast_bytes
