"""What a program costs."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.report.code import StreamCost
from mizzen.targets.ethos_u.generator.emit import emit
from mizzen.targets.ethos_u.generator.operations import Schedule
from mizzen.targets.ethos_u.judge.timing import Timed, estimate
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A schedule, the program that was emitted from it, and what that costs.

    timed  how long each operation takes
    """

    schedule: Schedule
    program: Program
    timed: list[Timed]
    cost: StreamCost


def judged(schedule: Schedule, configuration: EthosUConfiguration) -> Judged:
    """Emit a schedule, and return it with what it costs in a system.

    Raises as emitting and the timing model do.
    """
    program = emit(schedule, configuration.accelerator)
    timed = estimate(program, configuration)
    return Judged(schedule, program, timed, cost_of(program, timed))


def cost_of(program: Program, timed: list[Timed]) -> StreamCost:
    """Return what a program costs whose operations take so long."""
    sizes = program.region_bytes
    return StreamCost(
        cycles=round(sum(each.cycles for each in timed)),
        vela_cycles=sum(each.vela_cycles for each in timed),
        arena_bytes=sizes.get(RegionIndex.SCRATCH, 0),
        fast_bytes=sizes.get(RegionIndex.SCRATCH_FAST, 0),
        constant_bytes=sum(len(data) for data in program.constants.values()),
    )
