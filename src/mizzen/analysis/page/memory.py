"""Where the memory goes: what lies in each, from which operation to which, and the peak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mizzen.analysis.findings import Findings
from mizzen.analysis.page import anchors
from mizzen.analysis.page.colours import USES, uses_legend
from mizzen.report.memory import Allocation, AreaUse, MemoryReport
from mizzen.report.page import Block, Facts, Note, Occupancy, Piece, Section, Table
from mizzen.report.words import exact_size, memory_name, short_name, size

MISSING = "The contents of memory over time are not known of this artifact."


def memory(findings: Findings) -> Section:
    """Return the section: needs, and for each area a map over time and its peak."""
    report = findings.memory
    if report is None:
        return Section("Memory", (Note(MISSING),))
    cost = findings.cost
    shown = frozenset(() if cost is None else (operation.index for operation in cost.operations))
    blocks: list[Block] = [_needs(report)]
    for area in report.areas:
        blocks += _area(report, area, shown)
    blocks.append(_allocations(report))
    return Section("Memory", tuple(blocks))


def _needs(report: MemoryReport) -> Facts:
    facts = [
        (f"{area.area} in {memory_name(area.memory)}", exact_size(area.used_bytes))
        for area in report.areas
    ]
    if report.arena_bytes is not None:
        facts.append(("arena of TensorFlow Lite Micro", exact_size(report.arena_bytes)))
    facts.append(("file", exact_size(report.file_bytes)))
    return Facts(tuple(facts))


def _area(report: MemoryReport, area: AreaUse, shown: frozenset[int]) -> Iterator[Block]:
    allocations = [
        allocation
        for allocation in report.allocations
        if (allocation.area, allocation.memory) == (area.area, area.memory)
    ]
    changes = len({(allocation.first, allocation.last) for allocation in allocations}) > 1
    if not allocations or not changes:
        return
    name = f"{area.area} in {memory_name(area.memory)}"
    peak_bytes = area.live_bytes[area.peak] if area.live_bytes else 0
    operation = short_name(report.operations[area.peak])
    peak = f"peak {size(peak_bytes)} at operation {area.peak} {operation}"
    by_address = all(allocation.address is not None for allocation in allocations)
    how = "" if by_address else " No addresses are decided: tensors are stacked by size."
    yield Occupancy(
        f"{name[:1].upper()}{name[1:]} over time",
        f"{exact_size(area.used_bytes)} are needed. The {peak} is marked.{how}",
        len(report.operations),
        "operations",
        tuple(_pieces(allocations, by_address, shown)),
        area.peak if area.live_bytes else None,
        peak,
        uses_legend(allocation.use for allocation in allocations),
    )
    yield _at_peak(allocations, area, name)


def _pieces(
    allocations: Sequence[Allocation], by_address: bool, shown: frozenset[int]
) -> Iterator[Piece]:
    """Return each allocation as a rectangle that leads to its first operation, if that is shown."""
    places = (
        [each.address or 0 for each in allocations] if by_address else list(_stacked(allocations))
    )
    order = sorted(zip(allocations, places, strict=True), key=lambda pair: (pair[0].first, pair[1]))
    for allocation, low in order:
        where = f"at address {low:,}, " if by_address else ""
        title = (
            f"{short_name(allocation.name)}, {allocation.use.value}: {allocation.size_bytes:,} "
            f"bytes, {where}"
        )
        title += f"operations {allocation.first} to {allocation.last}."
        yield Piece(
            allocation.first, allocation.last, low, low + allocation.size_bytes,
            USES[allocation.use], title,
            anchors.of_operation(allocation.first) if allocation.first in shown else "",
        )  # fmt: skip


def _stacked(allocations: Sequence[Allocation]) -> Iterator[int]:
    """Return for each the lowest place that nothing before it takes while it is there."""
    placed: list[tuple[Allocation, int]] = []
    for allocation in allocations:
        low = 0
        for other, place in sorted(placed, key=lambda pair: pair[1]):
            meets = other.first <= allocation.last and allocation.first <= other.last
            if meets and place < low + allocation.size_bytes and low < place + other.size_bytes:
                low = place + other.size_bytes
        placed.append((allocation, low))
        yield low


def _at_peak(allocations: Sequence[Allocation], area: AreaUse, name: str) -> Table:
    alive = [
        allocation for allocation in allocations if allocation.first <= area.peak <= allocation.last
    ]
    return Table(
        f"Alive at the peak of the {name}",
        ("tensor", "use", "bytes", "address", "from", "to"),
        tuple(
            _row(allocation)[:2] + _row(allocation)[4:]
            for allocation in sorted(alive, key=lambda allocation: -allocation.size_bytes)
        ),
        wide=frozenset({0}),
    )


def _allocations(report: MemoryReport) -> Table:
    return Table(
        "All tensors in memory; operations are those of the table of operations",
        ("tensor", "use", "memory", "area", "bytes", "address", "from", "to"),
        tuple(_row(allocation) for allocation in report.allocations),
        wide=frozenset({0}),
    )


def _row(allocation: Allocation) -> tuple[str | int | None, ...]:
    return (
        short_name(allocation.name), allocation.use.value, memory_name(allocation.memory),
        allocation.area, allocation.size_bytes,
        allocation.address, allocation.first, allocation.last,
    )  # fmt: skip
