"""Where the time goes: what is waited for, what is at work when, every operation."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.analysis.findings import Findings
from mizzen.analysis.page import anchors
from mizzen.analysis.page.colours import BOUNDS, bounds_legend, colour_of
from mizzen.analysis.page.columns import without_empty_columns
from mizzen.report.cost import CostReport, OperationCost, Span, Traffic, Unit
from mizzen.report.page import (
    Bar,
    Cell,
    Lane,
    Link,
    Note,
    Part,
    Section,
    Shares,
    Table,
    Timeline,
)
from mizzen.report.words import memory_name, share

MISSING = "What operations cost is not known of this artifact."


def time(findings: Findings) -> Section:
    """Return the section: bounds, the timeline, bytes by memory, the operations."""
    cost = findings.cost
    if cost is None:
        return Section("Time", (Note(MISSING),))
    traffic = (_traffic(cost),) if cost.traffic else ()
    return Section("Time", (_bounds(cost), _timeline(cost), *traffic, _operations(findings, cost)))


def _bounds(cost: CostReport) -> Shares:
    parts = tuple(
        Part(cause.value, cycles, BOUNDS[cause], f"{cycles:,} cycles, {share(cycles, cost.cycles)}")
        for cause, cycles in sorted(cost.causes.items(), key=lambda pair: -pair[1])
        if cycles
    )
    text = f"{cost.cycles:,} cycles of an inference, by cause. {cost.meaning}"
    return Shares("What bounds the time", text.rstrip(), parts)


def _timeline(cost: CostReport) -> Timeline:
    spans: dict[Unit, list[Span]] = {}
    for span in cost.spans:
        spans.setdefault(span.unit, []).append(span)
    by_index = {operation.index: operation for operation in cost.operations}
    lanes = tuple(
        Lane(unit.value, tuple(_bar(span, by_index[span.operation]) for span in spans[unit]))
        for unit in Unit
        if unit in spans
    )
    text = "When each unit works, in cycles of the NPU's clock. The colour shows what bounds the "
    text += "operation. The table of operations has the start and end of each."
    legend = bounds_legend(cost.operations)
    return Timeline("Units over time", text, "cycles", lanes, legend)


def _bar(span: Span, operation: OperationCost) -> Bar:
    when = f"{span.start_cycles:,} to {span.end_cycles:,}"
    why = f"bound by {operation.bound.value}" if operation.causes else "which add no time"
    title = f"{span.unit.value}, {name_of(operation)}: cycles {when}, {why}."
    start, stop = float(span.start_cycles), float(span.end_cycles)
    return Bar(start, stop, colour_of(operation), title, anchors.of_operation(operation.index))


def name_of(operation: OperationCost) -> str:
    """Say which operation it is, and of which operator of the model."""
    if operation.origin is None or operation.origin.operator is None:
        return f"operation {operation.index} {operation.name}"
    kind = f" {operation.origin.kind}" if operation.origin.kind else ""
    return (
        f"operation {operation.index} {operation.name} of operator "
        f"{operation.origin.operator}{kind}"
    )


def _traffic(cost: CostReport) -> Table:
    crossings = sorted(
        cost.traffic, key=lambda traffic: -(traffic.read_bytes + traffic.written_bytes)
    )
    return Table(
        "Bytes that cross each bus in an inference",
        ("memory", "port", "what", "read", "written"),
        tuple(_crossing(traffic) for traffic in crossings),
    )


def _crossing(traffic: Traffic) -> tuple[Cell, ...]:
    return (
        memory_name(traffic.memory), traffic.port or None, traffic.purpose.value,
        traffic.read_bytes,
        traffic.written_bytes,
    )  # fmt: skip


def _operations(findings: Findings, cost: CostReport) -> Table:
    report = findings.compilation
    layers = frozenset(
        () if report is None else (placement.index for placement in report.placements)
    )
    return without_empty_columns(Table(
        "Operations, in the order of execution",
        (
            "#", "operation", "layer", "start", "end", "cycles", "of the time", "bound by",
            "MACs", "utilisation", "bytes", "shape", "detail",
        ),
        tuple(tuple(_cells(operation, cost.cycles, layers)) for operation in cost.operations),
        frozenset({6, 9}),
        tuple(anchors.of_operation(operation.index) for operation in cost.operations),
    ))  # fmt: skip


def _cells(operation: OperationCost, whole: int, layers: frozenset[int]) -> Iterator[Cell]:
    origin = operation.origin
    yield operation.index
    if origin is None or origin.command is None:
        yield operation.name
    else:
        yield Link(operation.name, anchors.of_commands(operation.step, origin.command))
    if origin is None or origin.operator is None:
        yield None
    elif origin.operator in layers:
        yield Link(f"{origin.operator} {origin.kind or ''}", anchors.of_layer(origin.operator))
    else:
        yield f"{origin.operator} {origin.kind or ''}"
    yield from (
        operation.start_cycles,
        operation.end_cycles,
        operation.cycles,
        operation.cycles / max(whole, 1),
    )
    yield operation.bound.value if operation.causes else None
    yield operation.macs or None
    yield operation.utilisation or None
    yield sum(part.read_bytes + part.written_bytes for part in operation.traffic) or None
    yield operation.shape or None
    yield operation.detail or None
