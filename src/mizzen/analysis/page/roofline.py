"""The roofline: what each operation computes a byte against what it computes a cycle."""

from __future__ import annotations

from mizzen.analysis.findings import Findings
from mizzen.analysis.page import anchors
from mizzen.analysis.page.colours import bounds_legend, colour_of
from mizzen.analysis.page.time import name_of
from mizzen.report.cost import OperationCost
from mizzen.report.page import Cell, Limit, Link, Note, Point, Points, Section, Table
from mizzen.report.words import memory_name


def roofline(findings: Findings) -> Section:
    """Return the section: a point for each operation with MACs, and the lines of the machine."""
    cost = findings.cost
    shown = (
        [] if cost is None else [operation for operation in cost.operations if _is_shown(operation)]
    )
    if not shown:
        text = "No operation is known that has both MACs and bytes that it moves."
        return Section("Roofline", (Note(text),))
    peak = max(operation.macs_per_cycle for operation in shown)
    touched = {part.memory for operation in shown for part in operation.traffic}
    limits = [Limit(f"{peak:,} MACs a cycle: the whole array", 0.0, peak)]
    limits += [
        Limit(f"{memory_name(memory)}, {rate:g} byte{'s' * (rate != 1)} a cycle", rate, peak)
        for memory, rate in findings.bytes_a_cycle.items()
        if memory in touched
    ]
    text = "A point is an operation. No point is above the MAC array; one left of a memory's line "
    text += "would be limited by that memory if all its bytes came from there."
    if len(limits) == 1:
        text += " How fast the memories are is not known of this artifact."
    chart = Points(
        "MACs a byte against MACs a cycle",
        text,
        "MACs a byte that crosses a bus",
        "MACs a cycle",
        tuple(_point(operation) for operation in shown),
        tuple(limits),
        bounds_legend(shown),
    )
    return Section("Roofline", (chart, _table(shown)))


def _is_shown(operation: OperationCost) -> bool:
    return bool(operation.macs and operation.macs_per_cycle and _bytes(operation))


def _bytes(operation: OperationCost) -> int:
    return sum(part.read_bytes + part.written_bytes for part in operation.traffic)


def _speed(operation: OperationCost) -> float:
    return operation.macs / max(operation.end_cycles - operation.start_cycles, 1)


def _point(operation: OperationCost) -> Point:
    intensity, speed = operation.macs / _bytes(operation), _speed(operation)
    title = f"{name_of(operation)}: {intensity:,.3g} MACs a byte, {speed:,.4g} MACs a cycle, "
    title += f"{100 * operation.utilisation:.1f} % of the array, bound by {operation.bound.value}."
    title = title[:1].upper() + title[1:]
    return Point(
        intensity, speed, colour_of(operation), title, anchors.of_operation(operation.index)
    )


def _table(operations: list[OperationCost]) -> Table:
    return Table(
        "Operations of the roofline",
        (
            "#",
            "operation",
            "MACs",
            "bytes",
            "MACs a byte",
            "MACs a cycle",
            "utilisation",
            "bound by",
        ),
        tuple(_cells(operation) for operation in operations),
        frozenset({6}),
    )


def _cells(operation: OperationCost) -> tuple[Cell, ...]:
    return (
        operation.index, Link(name_of(operation), anchors.of_operation(operation.index)),
        operation.macs, _bytes(operation),
        operation.macs / _bytes(operation), _speed(operation), operation.utilisation,
        operation.bound.value,
    )  # fmt: skip
