"""The layers: what each operator of the model costs, where it is, and why not on the NPU."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.analysis.findings import Findings, Work
from mizzen.analysis.page import anchors
from mizzen.analysis.page.columns import without_empty_columns
from mizzen.diagnostics import Device
from mizzen.report import CompileReport, OperatorPlacement
from mizzen.report.layers import Layer
from mizzen.report.page import Block, Cell, Link, Note, Section, Table
from mizzen.report.words import short_name


def layers_section(findings: Findings) -> Section:
    """Return the section: operators of the model, and the reasons of those on the CPU."""
    report = findings.compilation
    if report is None:
        text = "The model's operators are not known: the report of the compilation, a .json file "
        text += "beside the artifact, is not there."
        return Section("Layers", (Note(text),))
    rows = findings.layers
    table = _costs(findings, rows) if rows else _placements(findings, report)
    blocks: tuple[Block, ...] = (without_empty_columns(table),)
    if any(row.advice for row in rows):
        blocks += (_advice(rows),)
    if report.on_cpu:
        blocks += (_reasons(report),)
    return Section("Layers", blocks)


def _costs(findings: Findings, rows: Sequence[Layer]) -> Table:
    works = commands_of(findings)
    return Table(
        "Operators of the model, with what they cost",
        (
            "#", "type", "shape", "on", "cycles", "of the time", "bound by", "utilisation", "MACs",
            "SRAM", "compiler's cycles", "commands", "output",
        ),
        tuple(_cost(row, None if row.index is None else works.get(row.index)) for row in rows),
        frozenset({5, 7}),
        tuple("" if row.index is None else anchors.of_layer(row.index) for row in rows),
        frozenset({12}),
    )  # fmt: skip


def _cost(row: Layer, work: Work | None) -> tuple[Cell, ...]:
    return (
        row.index, row.kind, row.shape or None, row.device.value, row.cycles, row.share,
        None if row.bound is None else row.bound.value, row.utilisation or None,
        row.macs, row.sram_bytes, row.compiler_cycles, link_to(work),
        short_name(row.name) or None,
    )  # fmt: skip


def commands_of(findings: Findings) -> dict[int, Work]:
    """Return the first operation of each operator of the model."""
    found: dict[int, Work] = {}
    for row in (row for stream in findings.streams for row in stream.work):
        if row.operator is not None:
            found.setdefault(row.operator, row)
    return found


def _placements(findings: Findings, report: CompileReport) -> Table:
    works = commands_of(findings)
    return Table(
        "Operators of the model, their cycles as the compiler estimates them",
        ("#", "type", "on", "MACs", "cycles", "commands", "output"),
        tuple(_row(row, works.get(row.index)) for row in report.placements),
        anchors=tuple(anchors.of_layer(row.index) for row in report.placements),
        wide=frozenset({6}),
    )


def _row(row: OperatorPlacement, work: Work | None) -> tuple[Cell, ...]:
    cycles = row.cycles if row.device is Device.NPU else None
    return (
        row.index, row.kind, row.device.value, row.macs, cycles, link_to(work),
        short_name(row.name),
    )  # fmt: skip


def link_to(work: Work | None) -> Link | None:
    """Return a link to the commands of an operation."""
    if work is None:
        return None
    anchor = anchors.of_commands(work.step, work.offset_words)
    return Link(f"word {work.offset_words:,}", anchor)


def _advice(rows: Sequence[Layer]) -> Table:
    told = [row for row in rows if row.advice and row.index is not None]
    return Table(
        "What would make layers cheaper",
        ("operator", "of the time", "advice"),
        tuple((_link(row.index, row.kind), row.share, row.advice) for row in told),
        frozenset({1}),
        wide=frozenset({2}),
    )


def _link(index: int | None, kind: str) -> Cell:
    return None if index is None else Link(f"{index} {kind}", anchors.of_layer(index))


def _reasons(report: CompileReport) -> Table:
    rows = [
        (_link(row.index, row.kind), reason.message, reason.help)
        for row in report.on_cpu
        for reason in row.reasons
    ]
    return Table(
        "Why operators are on the CPU",
        ("operator", "why", "what to do"),
        tuple(rows),
        wide=frozenset({1, 2}),
    )
