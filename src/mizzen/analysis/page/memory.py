"""Where the memory goes: what lies in each, from which operation to which, and the peak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mizzen.analysis.findings import Findings
from mizzen.analysis.page import anchors
from mizzen.analysis.page.colours import USES, uses_legend
from mizzen.report.memory import Allocation, AreaUse, MemoryReport
from mizzen.report.page import Block, Facts, Note, Occupancy, Piece, Section, Table
from mizzen.report.words import exact_size, memory_name, short_name, size

MISSING = "What lies in memory when is not known of this artifact."


def memory(findings: Findings) -> Section:
    """Return the section: needs, and for each area a map over time and its peak."""
    report = findings.memory
    if report is None:
        return Section("Memory", (Note(MISSING),))
    cost = findings.cost
    shown = frozenset(() if cost is None else (row.index for row in cost.operations))
    blocks: list[Block] = [_needs(report)]
    for area in report.areas:
        blocks += _area(report, area, shown)
    blocks.append(_allocations(report))
    return Section("Memory", tuple(blocks))


def _needs(report: MemoryReport) -> Facts:
    rows = [
        (f"{area.area} in {memory_name(area.memory)}", exact_size(area.used_bytes))
        for area in report.areas
    ]
    if report.arena_bytes is not None:
        rows.append(("arena of TensorFlow Lite Micro", exact_size(report.arena_bytes)))
    rows.append(("file", exact_size(report.file_bytes)))
    return Facts(tuple(rows))


def _area(report: MemoryReport, area: AreaUse, shown: frozenset[int]) -> Iterator[Block]:
    rows = [row for row in report.allocations if (row.area, row.memory) == (area.area, area.memory)]
    changes = len({(row.first, row.last) for row in rows}) > 1
    if not rows or not changes:
        return
    name = f"{area.area} in {memory_name(area.memory)}"
    peak_bytes = area.live_bytes[area.peak] if area.live_bytes else 0
    operation = short_name(report.operations[area.peak])
    peak = f"peak {size(peak_bytes)} at operation {area.peak} {operation}"
    by_address = all(row.address is not None for row in rows)
    how = "" if by_address else " Nobody has decided addresses: tensors are stacked by size."
    yield Occupancy(
        f"{name[:1].upper()}{name[1:]} over time",
        f"{exact_size(area.used_bytes)} must be there. The {peak} is marked.{how}",
        len(report.operations),
        "operations",
        tuple(_pieces(rows, by_address, shown)),
        area.peak if area.live_bytes else None,
        peak,
        uses_legend(row.use for row in rows),
    )
    yield _at_peak(rows, area, name)


def _pieces(rows: Sequence[Allocation], by_address: bool, shown: frozenset[int]) -> Iterator[Piece]:
    """Return each allocation as a rectangle that leads to its first operation, if that is shown."""
    places = [row.address or 0 for row in rows] if by_address else list(_stacked(rows))
    order = sorted(zip(rows, places, strict=True), key=lambda pair: (pair[0].first, pair[1]))
    for row, low in order:
        where = f"at address {low:,}, " if by_address else ""
        title = f"{short_name(row.name)}, {row.use.value}: {row.size_bytes:,} bytes, {where}"
        title += f"operations {row.first} to {row.last}."
        yield Piece(
            row.first, row.last, low, low + row.size_bytes, USES[row.use], title,
            anchors.of_operation(row.first) if row.first in shown else "",
        )  # fmt: skip


def _stacked(rows: Sequence[Allocation]) -> Iterator[int]:
    """Return for each the lowest place that nothing before it takes while it is there."""
    placed: list[tuple[Allocation, int]] = []
    for row in rows:
        low = 0
        for other, place in sorted(placed, key=lambda pair: pair[1]):
            meets = other.first <= row.last and row.first <= other.last
            if meets and place < low + row.size_bytes and low < place + other.size_bytes:
                low = place + other.size_bytes
        placed.append((row, low))
        yield low


def _at_peak(rows: Sequence[Allocation], area: AreaUse, name: str) -> Table:
    alive = [row for row in rows if row.first <= area.peak <= row.last]
    return Table(
        f"Alive at the peak of the {name}",
        ("tensor", "use", "bytes", "address", "from", "to"),
        tuple(
            _row(row)[:2] + _row(row)[4:] for row in sorted(alive, key=lambda row: -row.size_bytes)
        ),
        wide=frozenset({0}),
    )


def _allocations(report: MemoryReport) -> Table:
    return Table(
        "Everything that lies in memory; operations are those of the table of operations",
        ("tensor", "use", "memory", "area", "bytes", "address", "from", "to"),
        tuple(_row(row) for row in report.allocations),
        wide=frozenset({0}),
    )


def _row(row: Allocation) -> tuple[str | int | None, ...]:
    return (
        short_name(row.name), row.use.value, memory_name(row.memory), row.area, row.size_bytes,
        row.address, row.first, row.last,
    )  # fmt: skip
