"""The estimate of a stream: every operation with its time, causes, bytes and spans."""

from __future__ import annotations

from mizzen.targets.ethos_u.judge.timing.machine import machine_of
from mizzen.targets.ethos_u.judge.timing.timeline import Timed, Timeline
from mizzen.targets.ethos_u.judge.timing.vela_formula import vela_cycles
from mizzen.targets.ethos_u.judge.timing.work import work_of
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of


def estimate(program: Program, configuration: EthosUConfiguration) -> list[Timed]:
    """Time a program in a system; the accelerator is the one that its payload names.

    Raises E604 and E605 for a payload that names no accelerator, E5xx and E61x for a stream that
    cannot be read, E677 for one with branches.
    """
    machine = machine_of(configuration)
    steps = list(work_of(program, accelerator_of(program.hardware)))
    timeline = Timeline(machine)
    timeline.run(steps)
    for operation, cycles in zip(timeline.operations, vela_cycles(steps, machine), strict=True):
        operation.vela_cycles, operation.vela_npu_cycles = cycles.total, cycles.npu
    return timeline.operations
