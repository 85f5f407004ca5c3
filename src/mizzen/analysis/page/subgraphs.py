"""The subgraphs of a network, where it has several: the other sections are about the main one."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.analysis.findings import Findings
from mizzen.report import CompileReport
from mizzen.report.page import Note, Section, Table
from mizzen.report.words import count

HEADINGS = ("subgraph", "on the NPU", "cycles", "arena, bytes", "proof")


def subgraphs(findings: Findings) -> Iterator[Section]:
    """Return the section: each subgraph's operators, cycles, memory and proof."""
    if findings.subgraphs:
        lines = tuple(map(_row, findings.subgraphs))
        note = Note(
            "The sections below are about the first. `mizzen report --signature NAME` writes the "
            "page of a signature, and `mizzen inspect` lists the commands of all."
        )
        yield Section("Subgraphs", (Table("Subgraphs", HEADINGS, lines), note))


def _row(report: CompileReport) -> tuple[str, ...]:
    proof = report.proof
    said = f"{count(proof.equal, 'output')} equal" if proof.inputs else "-"
    return (
        report.subgraph,
        f"{len(report.on_npu)} of {len(report.placements)}",
        f"{report.cycles:,}",
        f"{report.arena_bytes:,}",
        f"{said}; {count(len(proof.unproved), 'result')} not compared" if proof.unproved else said,
    )
