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
    rows = [] if cost is None else [row for row in cost.operations if _is_shown(row)]
    if not rows:
        text = "No operation is known that has both MACs and bytes that it moves."
        return Section("Roofline", (Note(text),))
    peak = max(row.macs_per_cycle for row in rows)
    touched = {part.memory for row in rows for part in row.traffic}
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
        tuple(_point(row) for row in rows),
        tuple(limits),
        bounds_legend(rows),
    )
    return Section("Roofline", (chart, _table(rows)))


def _is_shown(row: OperationCost) -> bool:
    return bool(row.macs and row.macs_per_cycle and _bytes(row))


def _bytes(row: OperationCost) -> int:
    return sum(part.read_bytes + part.written_bytes for part in row.traffic)


def _speed(row: OperationCost) -> float:
    return row.macs / max(row.end_cycles - row.start_cycles, 1)


def _point(row: OperationCost) -> Point:
    intensity, speed = row.macs / _bytes(row), _speed(row)
    title = f"{name_of(row)}: {intensity:,.3g} MACs a byte, {speed:,.4g} MACs a cycle, "
    title += f"{100 * row.utilisation:.1f} % of the array, bound by {row.bound.value}."
    title = title[:1].upper() + title[1:]
    return Point(intensity, speed, colour_of(row), title, anchors.of_operation(row.index))


def _table(rows: list[OperationCost]) -> Table:
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
        tuple(_cells(row) for row in rows),
        frozenset({6}),
    )


def _cells(row: OperationCost) -> tuple[Cell, ...]:
    return (
        row.index, Link(name_of(row), anchors.of_operation(row.index)), row.macs, _bytes(row),
        row.macs / _bytes(row), _speed(row), row.utilisation, row.bound.value,
    )  # fmt: skip
