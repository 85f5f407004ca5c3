"""How long the NPU would be busy, and how long this machine is: estimates from a stream's work.

A timing model is any function from a plan to `Cycles`. The one here counts work only: multiplies
over the multipliers, bytes over the port's width, and whichever is longer for each operation. Real
hardware overlaps, stalls and waits for memory, so the figure is an order of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mizzen.targets.ethos_u.config import Accelerator
from mizzen.targets.ethos_u.sim.operations import (
    Convolution,
    Dma,
    Elementwise,
    MatrixProduct,
    Operation,
    Pooling,
    Resize,
)
from mizzen.targets.ethos_u.sim.plan import Plan


@dataclass(frozen=True, slots=True)
class Cycles:
    """What an invocation takes, in cycles of the NPU; `mac_active` of them multiply."""

    total: int = 0
    mac_active: int = 0


NO_CYCLES = Cycles()

TimingModel = Callable[[Plan, Accelerator], Cycles]
"""Says how long the NPU is busy with a plan."""

ELEMENTS_PER_CYCLE = 4
"""Results of elementwise operations, as a round figure for every product."""


def work_estimate(plan: Plan, accelerator: Accelerator) -> Cycles:
    """Return the cycles that the plan's work takes at least, rounded up for each operation."""
    costs = [_cost(step.operation, accelerator) for step in plan.steps]
    return Cycles(sum(max(cost) for cost in costs), sum(cost[0] for cost in costs))


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


def _cost(operation: Operation, accelerator: Accelerator) -> tuple[int, int]:
    """Return cycles of the multipliers, and of everything else."""
    width = accelerator.traits.axi_bytes_per_cycle
    match operation:
        case Dma():
            return 0, math.ceil(operation.length * operation.rows * operation.planes / width)
        case Elementwise() | Resize():
            return 0, math.ceil(math.prod(operation.output.shape) / ELEMENTS_PER_CYCLE)
        case _:
            written = math.prod(operation.output.shape) * operation.output.fm.dtype.itemsize
            macs = math.ceil(multiplies(operation) / accelerator.macs)
            return macs, math.ceil(written / width)
