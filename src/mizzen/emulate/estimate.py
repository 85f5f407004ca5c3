"""How long the NPU would be busy, and how long this machine is.

A timing model is any function from a program to `Cycles`. The one here is the model that times
artifacts, in the system that an artifact was compiled for, or the accelerator's default: a board's
memories are not in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.sim.operations import (
    Convolution,
    Dma,
    Elementwise,
    MatrixProduct,
    Operation,
    Pooling,
)
from mizzen.targets.ethos_u.judge.timing import estimate, events_of
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.counters import CYCLE, MAC_ACTIVE
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of
from mizzen.targets.ethos_u.machine.system_config import resolve


@dataclass(frozen=True, slots=True)
class Cycles:
    """What an invocation takes.

    total   cycles of the NPU
    events  what each event of the performance counters counts of it, by the event's number; one
            that an estimate knows nothing of is left out
    """

    total: int = 0
    events: Mapping[int, int] = field(default_factory=dict[int, int])

    @property
    def mac_active(self) -> int:
        """Cycles in which the array multiplies."""
        return self.events.get(MAC_ACTIVE, 0)


NO_CYCLES = Cycles()

TimingModel = Callable[[Program], Cycles]
"""Says how long the NPU is busy with a program."""

BRANCHES = "E677"
"""The code of a stream with branches, whose way nothing knows before it runs."""


def stream_estimate(program: Program) -> Cycles:
    """Return the cycles of a program in its accelerator's default system."""
    return cycles_in(resolve(accelerator_of(program.hardware).name), program)


def cycles_in(system: EthosUConfiguration, program: Program) -> Cycles:
    """Return the cycles of a program by the timing model; none of a stream with branches."""
    try:
        timed = estimate(program, system)
    except MizzenError as error:
        if error.diagnostic.code == BRANCHES:
            return NO_CYCLES
        raise
    events = events_of(timed, system.accelerator.traits.axi_bytes_per_cycle)
    return Cycles(events[CYCLE], events)


HOST_MULTIPLIES_PER_SECOND = 5e9
HOST_ELEMENTS_PER_SECOND = 2e8
"""Round figures for the simulator on one core; what they are for needs no more."""


def elements(operation: Operation) -> int:
    """Return the elements of the largest feature map or transfer of an operation."""
    if isinstance(operation, Dma):
        return operation.length * operation.rows * operation.planes
    maps = operation.maps if isinstance(operation, Elementwise) else [operation.ifm]
    return max(math.prod(fm.shape) for fm in (*maps, operation.output.fm))


def host_seconds(operation: Operation) -> float:
    """Return about how long the simulator takes for an operation."""
    products = multiplies(operation) / HOST_MULTIPLIES_PER_SECOND
    return products + elements(operation) / HOST_ELEMENTS_PER_SECOND


def multiplies(operation: Operation) -> int:
    """Return how many products an operation adds up; pooling has one for each element read."""
    match operation:
        case Convolution() | MatrixProduct() | Pooling():
            height, width, depth = operation.output.shape
            window = operation.kernel.height * operation.kernel.width
            deep = isinstance(operation, MatrixProduct) or (
                isinstance(operation, Convolution) and not operation.depthwise
            )
            return height * width * depth * window * (operation.ifm.depth if deep else 1)
        case _:
            return 0
