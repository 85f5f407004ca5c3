"""What was asked for, what is in force, and what executing the code showed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mizzen.analysis.findings import Findings
from mizzen.report.page import Block, Facts, Note, Section, Table
from mizzen.report.proof import Proof, not_compared
from mizzen.report.words import count, shape, size


def configuration(findings: Findings) -> Iterator[Section]:
    """Return the section: interface, programs, every setting with its source."""
    rows = [
        (word, f"{info.name} {info.dtype}{shape(info.shape)}")
        for word, infos in (("Input", findings.inputs), ("Output", findings.outputs))
        for info in infos
    ]
    rows += [
        (f"Step {row.step}", f"{row.hardware}; command stream of {size(row.size_bytes)}")
        for row in findings.streams
    ]
    asked: dict[str, Any] = (
        {} if findings.compilation is None else findings.compilation.configuration
    )
    settings = asked.get("settings", [])
    if not settings:
        rows += [(name, str(value)) for name, value in asked.items()]
    blocks: list[Block] = [Facts(tuple(rows))]
    if settings:
        blocks.append(_settings(settings))
    elif not asked:
        blocks.append(Note("The configuration that it was compiled with is not known."))
    yield Section("Configuration", tuple(blocks))


def _settings(settings: list[dict[str, Any]]) -> Table:
    rows = tuple((str(row["name"]), _value(row["value"]), str(row["source"])) for row in settings)
    return Table("Settings in force", ("setting", "value", "from"), rows, wide=frozenset({2}))


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.10g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def proof(findings: Findings) -> Section:
    """Return the section: what was executed, and what came of it."""
    report = findings.compilation
    if report is None or not report.proof.is_told:
        text = "Nothing was proved when this was compiled, or what was is not known: its report "
        return Section("Proof", (Note(text + "says nothing."),))
    return Section("Proof", tuple(_proof(report.proof)))


def _proof(found: Proof) -> Iterator[Block]:
    if not found.inputs:
        yield Note(f"Nothing was proved; {not_compared(found)}.")
        return
    parts = f"{found.equal} of {count(found.parts, 'NPU operator')}"
    rows = [
        ("Exact to", found.against or "what the network computes"),
        ("Executed", f"{count(found.inputs, 'input')} of seed {found.seed}"),
        ("Outputs equal bit for bit", parts),
        ("Operators seen inside and equal", f"{found.watched}"),
        ("Hazards", "none"),
        ("Digest of inputs and outputs", found.digest),
    ]
    yield Facts(tuple(rows))
    for label, names in (
        ("Within a documented bound of the reference", found.bounded),
        ("Not compared", found.unproved),
        ("Wrong, and left on the NPU as asked", found.differing),
    ):
        if names:
            yield Table(label, ("result",), tuple((name,) for name in names), wide=frozenset({0}))
