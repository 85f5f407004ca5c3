"""The layers: what each operator of the model costs, where it is, and why not on the NPU."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.analysis.findings import Findings, Work
from mizzen.analysis.page import anchors
from mizzen.analysis.page.columns import without_empty_columns
from mizzen.diagnostics import Device
from mizzen.report import CompileReport, OperatorPlacement
from mizzen.report.advice import Advice
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
    layers = findings.layers
    table = _costs(findings, layers) if layers else _placements(findings, report)
    blocks: tuple[Block, ...] = (without_empty_columns(table),)
    if findings.advice:
        blocks += (_advice(findings.advice),)
    if report.on_cpu:
        blocks += (_reasons(report),)
    return Section("Layers", blocks)


def _costs(findings: Findings, layers: Sequence[Layer]) -> Table:
    works = commands_of(findings)
    return Table(
        "Operators of the model, with what they cost",
        (
            "#", "type", "shape", "on", "cycles", "of the time", "bound by", "utilisation", "MACs",
            "SRAM", "commands", "output",
        ),
        tuple(
            _cost(layer, None if layer.index is None else works.get(layer.index))
            for layer in layers
        ),
        frozenset({5, 7}),
        tuple("" if layer.index is None else anchors.of_layer(layer.index) for layer in layers),
        frozenset({11}),
    )  # fmt: skip


def _cost(layer: Layer, work: Work | None) -> tuple[Cell, ...]:
    return (
        layer.index, layer.kind, layer.shape or None, layer.device.value, layer.cycles, layer.share,
        None if layer.bound is None else layer.bound.value, layer.utilisation or None,
        layer.macs, layer.sram_bytes, link_to(work),
        short_name(layer.name) or None,
    )  # fmt: skip


def commands_of(findings: Findings) -> dict[int, Work]:
    """Return the first operation of each operator of the model."""
    works: dict[int, Work] = {}
    for work in (each for stream in findings.streams for each in stream.work):
        if work.operator is not None:
            works.setdefault(work.operator, work)
    return works


def _placements(findings: Findings, report: CompileReport) -> Table:
    works = commands_of(findings)
    return Table(
        "Operators of the model, with their estimated cycles",
        ("#", "type", "on", "MACs", "cycles", "commands", "output"),
        tuple(_row(placement, works.get(placement.index)) for placement in report.placements),
        anchors=tuple(anchors.of_layer(placement.index) for placement in report.placements),
        wide=frozenset({6}),
    )


def _row(placement: OperatorPlacement, work: Work | None) -> tuple[Cell, ...]:
    cycles = placement.cycles if placement.device is Device.NPU else None
    return (
        placement.index, placement.kind, placement.device.value, placement.macs, cycles,
        link_to(work),
        short_name(placement.name),
    )  # fmt: skip


def link_to(work: Work | None) -> Link | None:
    """Return a link to the commands of an operation."""
    if work is None:
        return None
    anchor = anchors.of_commands(work.step, work.offset_words)
    return Link(f"word {work.offset_words:,}", anchor)


def _advice(advice: Sequence[Advice]) -> Table:
    return Table(
        "What would make it cheaper, as tried",
        ("operator", "cycles saved", "change, and what it brought"),
        tuple(
            (_link(each.layer, each.kind) or "network", each.saved_cycles, each.text)
            for each in advice
        ),
        wide=frozenset({2}),
    )


def _link(index: int | None, kind: str) -> Cell:
    return None if index is None else Link(f"{index} {kind}", anchors.of_layer(index))


def _reasons(report: CompileReport) -> Table:
    lines = [
        (_link(placement.index, placement.kind), reason.message, reason.help)
        for placement in report.on_cpu
        for reason in placement.reasons
    ]
    return Table(
        "Why operators are on the CPU",
        ("operator", "why", "what to do"),
        tuple(lines),
        wide=frozenset({1, 2}),
    )
