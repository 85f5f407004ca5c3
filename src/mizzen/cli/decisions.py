"""How operations of a stream are done, as text."""

from __future__ import annotations

from collections.abc import Iterable

from mizzen.cli.layout import fields
from mizzen.report.decisions import Decision, PricedBlock, Shape


def decisions_text(index: int, rows: Iterable[Decision], width: int) -> str:
    """Write what was decided for each operation of a step."""
    parts = [f"Decisions of step {index}"]
    for row in rows:
        of = f", {row.operator}" if row.operator else ""
        parts.append(f"  word {row.command}: {row.name}{of}, {row.shape}")
        parts.append(fields(_fields(row), width=width, indent="    "))
    return "\n".join(parts)


def _fields(row: Decision) -> list[tuple[str, str]]:
    found = [("block", _block(row.block, row.order) + _price(row.taken))]
    if row.other is not None:
        name = "next best" if _is_less(row.taken, row.other) else "better alone"
        other = _block(row.other.block, row.other.order) + _price(row.other)
        found.append((name, f"{other}, of {row.fitting:,} that fit"))
    *inputs, output = row.layouts
    found.append(("layout", f"{', '.join(inputs)} -> {output}"))
    if row.banks:
        parts = [f"{part.holds} {part.start}..{part.end}" for part in row.banks]
        found.append(("banks", ", ".join(parts)))
    if row.constants:
        found.append(("weights", f"read from {row.constants}"))
    if row.table is not None:
        found.append(("table", f"slot {row.table}"))
    if row.before:
        found.append(("transfers", "; ".join(row.before)))
    found.append(("waits", ", ".join([*row.waits, f"BLOCKDEP {row.blockdep}"])))
    found.append(("cycles", f"{row.cycles:,}, {row.bound} for most of them"))
    return found


def _is_less(taken: PricedBlock | None, other: PricedBlock) -> bool:
    return taken is None or _sum(taken) <= _sum(other)


def _sum(row: PricedBlock) -> int:
    return row.cycles + row.vela_cycles


def _block(block: Shape, order: str) -> str:
    return "x".join(map(str, block)) + (f", {order}" if order else "")


def _price(row: PricedBlock | None) -> str:
    if row is None:
        return ""
    return f": {row.cycles:,} cycles alone, {row.vela_cycles:,} by Vela's formula"
