"""How operations of a stream are done, as text."""

from __future__ import annotations

from collections.abc import Iterable

from mizzen.cli.layout import fields
from mizzen.report.decisions import Decision, PricedBlock


def decisions_text(index: int, decisions: Iterable[Decision], width: int) -> str:
    """Write what was decided for each operation of a step."""
    parts = [f"Decisions of step {index}"]
    for decision in decisions:
        of = f", {decision.operator}" if decision.operator else ""
        parts.append(f"  word {decision.command}: {decision.name}{of}, {decision.shape}")
        parts.append(fields(_fields(decision), width=width, indent="    "))
    return "\n".join(parts)


def _fields(decision: Decision) -> list[tuple[str, str]]:
    facts = [("block", _block(decision.block, decision.order) + _price(decision.taken))]
    if decision.microblock:
        facts.append(("microblock", _block(decision.microblock, "")))
    if decision.other is not None:
        name = "next best" if _is_less(decision.taken, decision.other) else "better alone"
        other = _block(decision.other.block, decision.other.order) + _price(decision.other)
        facts.append((name, f"{other}, of {decision.fitting:,} that fit"))
    *inputs, output = decision.layouts
    facts.append(("layout", f"{', '.join(inputs)} -> {output}"))
    if decision.banks:
        parts = [f"{part.holds} {part.start}..{part.end}" for part in decision.banks]
        facts.append(("banks", ", ".join(parts)))
    if decision.constants:
        how = f"{decision.format}, " if decision.format else ""
        facts.append(("weights", f"{how}read from {decision.constants}"))
    if decision.table is not None:
        facts.append(("table", f"slot {decision.table}"))
    if decision.before:
        facts.append(("transfers", "; ".join(decision.before)))
    facts.append(("waits", ", ".join([*decision.waits, f"BLOCKDEP {decision.blockdep}"])))
    facts.append(("cycles", f"{decision.cycles:,}, {decision.bound} for most of them"))
    return facts


def _is_less(taken: PricedBlock | None, other: PricedBlock) -> bool:
    return taken is None or taken.cycles <= other.cycles


def _block(block: tuple[int, ...], order: str) -> str:
    return "x".join(map(str, block)) + (f", {order}" if order else "")


def _price(priced: PricedBlock | None) -> str:
    if priced is None:
        return ""
    return f": {priced.cycles:,} cycles alone"
