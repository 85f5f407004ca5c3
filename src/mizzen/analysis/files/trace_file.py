"""An inference as a trace: a thread for each unit, a counter for each area of memory."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.report.cost import CostReport, OperationCost, Span, Unit
from mizzen.report.memory import MemoryReport
from mizzen.report.trace import Event, counter, process, span, thread, trace_document
from mizzen.report.words import memory_name

MICRO = 1e6
INFERENCE = 1
"""The one process there is."""


def inference_trace(cost: CostReport, memory: MemoryReport | None = None) -> dict[str, object]:
    """Return the document; times are those that `cost` estimates, from the inference's start."""
    by_index = {operation.index: operation for operation in cost.operations}
    units = list(Unit)
    events = [process(INFERENCE, f"{cost.model} on {cost.configuration['accelerator']}")]
    events += [
        thread(INFERENCE, place, unit.value)
        for place, unit in enumerate(units)
        if any(each.unit is unit for each in cost.spans)
    ]
    events += [
        _span(each, units.index(each.unit), by_index[each.operation], cost.clock_hz)
        for each in cost.spans
    ]
    if memory is not None:
        events += _counters(memory, cost)
    return trace_document(events)


def _span(busy: Span, lane: int, operation: OperationCost, clock_hz: float) -> Event:
    origin = operation.origin
    facts: dict[str, object] = {
        "operation": operation.index,
        "start_cycles": busy.start_cycles,
        "end_cycles": busy.end_cycles,
        "bound": operation.bound.value if operation.causes else None,
        "macs": operation.macs,
        "shape": operation.shape,
        "detail": operation.detail,
    }
    name = operation.name
    if origin is not None and origin.operator is not None:
        facts |= {"operator": origin.operator, "output": origin.name}
        name = f"{origin.operator} {origin.kind}"
    start = busy.start_cycles * MICRO / clock_hz
    duration = (busy.end_cycles - busy.start_cycles) * MICRO / clock_hz
    return span(name, operation.device.value, (INFERENCE, lane), start, duration, facts)


def _counters(memory: MemoryReport, cost: CostReport) -> Iterator[Event]:
    """Return a counter of the bytes alive in each area, from the start of each operation on."""
    starts = {each.index: each.start_cycles for each in cost.operations}
    for area in memory.areas:
        name = f"{area.area} in {memory_name(area.memory)}"
        for operation, alive in enumerate(area.live_bytes):
            if operation in starts:
                at = starts[operation] * MICRO / cost.clock_hz
                yield counter(name, INFERENCE, at, {"bytes": alive})
