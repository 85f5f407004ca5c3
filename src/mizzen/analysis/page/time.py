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
        for cause, cycles in sorted(cost.causes.items(), key=lambda row: -row[1])
        if cycles
    )
    text = f"{cost.cycles:,} cycles of an inference, by what they are waited for."
    if cost.compiler_cycles is not None:
        text += f" The compiler's own estimate of the NPU's part: {cost.compiler_cycles:,} cycles."
    return Shares("What bounds the time", text, parts)


def _timeline(cost: CostReport) -> Timeline:
    rows: dict[Unit, list[Span]] = {}
    for span in cost.spans:
        rows.setdefault(span.unit, []).append(span)
    by_index = {row.index: row for row in cost.operations}
    lanes = tuple(
        Lane(unit.value, tuple(_bar(span, by_index[span.operation]) for span in rows[unit]))
        for unit in Unit
        if unit in rows
    )
    text = "When each unit is at work, in cycles of the NPU's clock. A colour is what the "
    text += "operation is bound by; start and end of each stand in the table of operations."
    legend = bounds_legend(cost.operations)
    return Timeline("Units over time", text, "cycles", lanes, legend)


def _bar(span: Span, row: OperationCost) -> Bar:
    when = f"{span.start_cycles:,} to {span.end_cycles:,}"
    why = f"bound by {row.bound.value}" if row.causes else "which add no time"
    title = f"{span.unit.value}, {name_of(row)}: cycles {when}, {why}."
    start, stop = float(span.start_cycles), float(span.end_cycles)
    return Bar(start, stop, colour_of(row), title, anchors.of_operation(row.index))


def name_of(row: OperationCost) -> str:
    """Say which operation it is, and of which operator of the model."""
    if row.origin is None or row.origin.operator is None:
        return f"operation {row.index} {row.name}"
    kind = f" {row.origin.kind}" if row.origin.kind else ""
    return f"operation {row.index} {row.name} of operator {row.origin.operator}{kind}"


def _traffic(cost: CostReport) -> Table:
    rows = sorted(cost.traffic, key=lambda row: -(row.read_bytes + row.written_bytes))
    return Table(
        "Bytes that cross each bus in an inference",
        ("memory", "port", "what", "read", "written"),
        tuple(_crossing(row) for row in rows),
    )


def _crossing(row: Traffic) -> tuple[Cell, ...]:
    return (
        memory_name(row.memory), row.port or None, row.purpose.value, row.read_bytes,
        row.written_bytes,
    )  # fmt: skip


def _operations(findings: Findings, cost: CostReport) -> Table:
    report = findings.compilation
    layers = frozenset(() if report is None else (row.index for row in report.placements))
    return without_empty_columns(Table(
        "Operations, in the order of execution",
        (
            "#", "operation", "layer", "start", "end", "cycles", "of the time", "bound by",
            "MACs", "utilisation", "bytes", "compiler's cycles", "shape", "detail",
        ),
        tuple(tuple(_cells(row, cost.cycles, layers)) for row in cost.operations),
        frozenset({6, 9}),
        tuple(anchors.of_operation(row.index) for row in cost.operations),
    ))  # fmt: skip


def _cells(row: OperationCost, whole: int, layers: frozenset[int]) -> Iterator[Cell]:
    origin = row.origin
    yield row.index
    if origin is None or origin.command is None:
        yield row.name
    else:
        yield Link(row.name, anchors.of_commands(row.step, origin.command))
    if origin is None or origin.operator is None:
        yield None
    elif origin.operator in layers:
        yield Link(f"{origin.operator} {origin.kind or ''}", anchors.of_layer(origin.operator))
    else:
        yield f"{origin.operator} {origin.kind or ''}"
    yield from (row.start_cycles, row.end_cycles, row.cycles, row.cycles / max(whole, 1))
    yield row.bound.value if row.causes else None
    yield row.macs or None
    yield row.utilisation or None
    yield sum(part.read_bytes + part.written_bytes for part in row.traffic) or None
    yield row.compiler_cycles
    yield row.shape or None
    yield row.detail or None
