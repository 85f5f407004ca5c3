"""The estimate of a stream: every operation with its time, causes, bytes and spans."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.targets.ethos_u.judge.timing.machine import machine_of
from mizzen.targets.ethos_u.judge.timing.timeline import Timed, Timeline
from mizzen.targets.ethos_u.judge.timing.vela_formula import vela_cycles
from mizzen.targets.ethos_u.judge.timing.work import Step, work_of
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of


def estimate(program: Program, configuration: EthosUConfiguration) -> list[Timed]:
    """Time a program in a system; the accelerator is the one that its payload names.

    Raises E604 and E605 for a payload that names no accelerator, E5xx and E61x for a stream that
    cannot be read, E677 for one with branches.
    """
    machine = machine_of(configuration)
    steps = steps_of(program)
    timeline = Timeline(machine)
    timeline.run(steps)
    for operation, cycles in zip(timeline.operations, vela_cycles(steps, machine), strict=True):
        operation.vela_cycles, operation.vela_npu_cycles = cycles.total, cycles.npu
    return timeline.operations


def steps_of(program: Program) -> Sequence[Step]:
    """Read a program once, to time it in many systems. Raises as `estimate`."""
    return list(work_of(program, accelerator_of(program.hardware)))


def cycles_of(steps: Sequence[Step], configuration: EthosUConfiguration) -> float:
    """Return the cycles that a program takes in a system."""
    timeline = Timeline(machine_of(configuration))
    timeline.run(steps)
    return sum(operation.cycles for operation in timeline.operations)
