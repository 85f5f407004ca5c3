"""The passes of an Ethos-N program as rows of a cost report: Arm's estimate, as its library has it.

Units run beside one another, and the one that takes longest is what a pass waits for; what the DMA
moves before and after the work is waited for besides.
"""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.analysis.cost.rounding import whole_parts, whole_steps
from mizzen.diagnostics import Device, Origin
from mizzen.report.cost import Bound, OperationCost, Purpose, Span, Traffic, Unit
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.program import Program
from mizzen.targets.ethos_n.timing import (
    Pass,
    PassCycles,
    Statistics,
    estimate,
    pass_units,
    passes_of,
)

DRAM = "Dram"


def ethos_n_operations(program: Program) -> tuple[list[OperationCost], list[Span]]:
    """Return the passes of a program. Raises E98x for passes that cannot be estimated."""
    capabilities = program.capabilities
    estimated = estimate(passes_of(program), capabilities)
    units = [pass_units(each, statistics, capabilities) for each, statistics in estimated]
    cycles = whole_steps(each.total for each in units)
    operations: list[OperationCost] = []
    spans: list[Span] = []
    now = 0
    for index, ((pass_, figures), at_work, count) in enumerate(
        zip(estimated, units, cycles, strict=True)
    ):
        operations.append(_row((pass_, figures), at_work, index, (now, now + count), capabilities))
        spans += _spans(at_work, index, now, now + count)
        now += count
    return operations, spans


def _row(
    estimated: tuple[Pass, Statistics],
    units: PassCycles,
    index: int,
    time: tuple[int, int],
    capabilities: Capabilities,
) -> OperationCost:
    pass_, figures = estimated
    macs = figures.mce.operations // 2
    macs_per_cycle = capabilities.igs * capabilities.ogs * capabilities.mac_units_per_og
    start, end = time
    return OperationCost(
        step=0,
        index=index,
        name=type(pass_.command).__name__,
        device=Device.NPU,
        origin=Origin(),
        start_cycles=start,
        end_cycles=end,
        cycles=end - start,
        causes=whole_parts(_causes(units, macs / macs_per_cycle), end - start),
        macs=macs,
        macs_per_cycle=macs_per_cycle,
        traffic=tuple(_traffic(figures)),
    )


def _causes(units: PassCycles, ideal: float) -> dict[Bound, float]:
    """Return the cycles of a pass by the unit that takes longest; products may beat the array's
    rate by Winograd's algorithm."""
    beside = units.total - units.apart
    causes = {Bound.DRAM: units.apart}
    if beside <= max(units.read, units.written):
        causes[Bound.DRAM] += beside
    elif beside <= units.mce:
        causes[Bound.MAC] = min(ideal, beside)
        causes[Bound.ROUNDING] = beside - causes[Bound.MAC]
    else:
        causes[Bound.OUTPUT] = beside
    return {cause: cycles for cause, cycles in causes.items() if cycles}


def _traffic(figures: Statistics) -> Iterator[Traffic]:
    maps, weights = (figures.input, figures.output), figures.weights.traffic
    read, written, constants = (
        traffic.dram_parallel_bytes + traffic.dram_non_parallel_bytes
        for traffic in (*maps, weights)
    )
    if read or written:
        yield Traffic(DRAM, "", Purpose.FEATURE_MAP, read, written)
    if constants:
        yield Traffic(DRAM, "", Purpose.WEIGHTS, constants, 0)


def _spans(units: PassCycles, index: int, start: int, end: int) -> Iterator[Span]:
    moved = units.apart + max(units.read, units.written)
    for unit, busy in ((Unit.DMA, moved), (Unit.MAC, units.mce), (Unit.OUTPUT, units.ple)):
        if busy:
            yield Span(unit, index, start, min(end, start + max(1, round(busy))))
