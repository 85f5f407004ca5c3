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
    facts = [
        (word, f"{info.name} {info.dtype}{shape(info.shape)}")
        for word, infos in (("Input", findings.inputs), ("Output", findings.outputs))
        for info in infos
    ]
    facts += [
        (f"Step {stream.step}", f"{stream.hardware}; command stream of {size(stream.size_bytes)}")
        for stream in findings.streams
    ]
    asked: dict[str, Any] = (
        {} if findings.compilation is None else findings.compilation.configuration
    )
    settings = asked.get("settings", [])
    if not settings:
        facts += [(name, str(value)) for name, value in asked.items()]
    blocks: list[Block] = [Facts(tuple(facts))]
    if settings:
        blocks.append(_settings(settings))
    elif not asked:
        blocks.append(Note("The configuration that it was compiled with is not known."))
    yield Section("Configuration", tuple(blocks))


def _settings(settings: list[dict[str, Any]]) -> Table:
    lines = tuple(
        (str(setting["name"]), _value(setting["value"]), str(setting["source"]))
        for setting in settings
    )
    return Table("Settings in force", ("setting", "value", "from"), lines, wide=frozenset({2}))


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.10g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def proof(findings: Findings) -> Section:
    """Return the section: what was executed, and what came of it."""
    report = findings.compilation
    if report is None or not report.proof.is_told:
        return Section("Proof", (Note("No proof is known: the compile's report has none."),))
    return Section("Proof", tuple(_proof(report.proof)))


def _proof(evidence: Proof) -> Iterator[Block]:
    if not evidence.inputs:
        yield Note(f"Nothing was proved; {not_compared(evidence)}.")
        return
    parts = f"{evidence.equal} of {count(evidence.parts, 'NPU operator')}"
    facts = [
        ("Exact to", evidence.against or "what the network computes"),
        ("Executed", f"{count(evidence.inputs, 'input')} of seed {evidence.seed}"),
        ("Outputs equal bit for bit", parts),
        ("Operators seen inside and equal", f"{evidence.watched}"),
        ("Hazards", "none"),
        ("Digest of inputs and outputs", evidence.digest),
    ]
    yield Facts(tuple(facts))
    for label, names in (
        ("Within a documented bound of the reference", evidence.bounded),
        ("Not compared", evidence.unproved),
        ("Wrong, and left on the NPU as asked", evidence.differing),
    ):
        if names:
            yield Table(label, ("result",), tuple((name,) for name in names), wide=frozenset({0}))
