"""The report of a network of several subgraphs, made of the reports of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mizzen.compiler.edges import edges_of_subgraph
from mizzen.compiler.options import Configuration
from mizzen.compiler.report import (
    CONSTANTS,
    NOTHING_COMPILED,
    added,
    compile_report,
    summed,
    tflite_placement,
)
from mizzen.compiler.subgraphs.joining import Part
from mizzen.diagnostics import Device, Diagnostic, Origin, Reason, Severity
from mizzen.frontends.tflite import Model, Subgraph
from mizzen.frontends.tflite.subgraphs import executed, names_of, reached_from
from mizzen.report import Area, CompileReport, OperatorPlacement
from mizzen.report.proof import Proof
from mizzen.report.proof import joined as joined_proof

NOT_COMPILED = "subgraph-not-compiled"

ONCE = Reason(
    "executed-once",
    "CALL_ONCE executes it before the first inference, and then never again",
    help="nothing needs doing",
)
UNREACHED = Reason(
    "not-executed",
    "no operator and no signature executes its subgraph",
    help="give the subgraph a signature, or leave it out of the network",
)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of a subgraph."""

    part: Part
    report: CompileReport


def joined_report(
    model: Model,
    configuration: Configuration,
    compiled: Mapping[int, Compiled],
    refused: Mapping[int, Diagnostic],
    starts: Mapping[int, int],
    flash_bytes: int,
) -> CompileReport:
    """Return the report of all subgraphs, which has that of each.

    Cycles are of the main subgraph with what it executes, each once: how often a loop runs is not
    known. Of memory it is what the largest has, behind those that execute it.

    refused  why subgraphs were not compiled
    starts   where in the arena each begins
    """
    titles = names_of(model)
    rows = {index: replace(row.report, subgraph=titles[index]) for index, row in compiled.items()}
    for subgraph in model.subgraphs:
        if subgraph.index not in rows:
            reason = _reason(model, subgraph.index, refused)
            rows[subgraph.index] = _left(model, subgraph, configuration, reason)
    reports = [rows[row.index] for row in model.subgraphs]
    own = len(configuration.warnings)
    warnings = (row for report in reports for row in report.diagnostics[own:])
    proofs = [_titled(row) for row in reports if row.proof.is_told]
    run = [rows[index] for index in reached_from(model, 0)]
    return CompileReport(
        model=model.name,
        configuration=configuration.as_dict(),
        compiler=_compiler(reports),
        placements=tuple(_placements(reports)),
        arena_bytes=max(starts[index] + row.arena_bytes for index, row in rows.items()),
        flash_bytes=flash_bytes,
        areas=_areas(rows, starts),
        memories=added([measure for row in reports for measure in row.memories]),
        cycles=sum(row.cycles for row in run),
        npu_cycles=sum(row.npu_cycles for row in run),
        figures=summed([row.figures for row in reports]),
        performance=tuple(row for report in reports for row in report.performance),
        origins=tuple(origins for row in reports for origins in row.origins),
        diagnostics=(*configuration.warnings, *warnings, *_unreached(model, reports)),
        log="".join(row.log for row in reports),
        proof=joined_proof(proofs),
        code=tuple(choice for row in reports for choice in row.code),
        subgraphs=tuple(reports),
    )


def _compiler(reports: Sequence[CompileReport]) -> str:
    names = dict.fromkeys(row.compiler for row in reports if row.compiler != NOTHING_COMPILED)
    return ", ".join(names) or NOTHING_COMPILED


def _placements(reports: Sequence[CompileReport]) -> Iterator[OperatorPlacement]:
    for report in reports:
        for row in report.placements:
            yield replace(row, subgraph=report.subgraph)


def _areas(rows: Mapping[int, CompileReport], starts: Mapping[int, int]) -> tuple[Area, ...]:
    """Return what the subgraphs have together: constants of all, the arena of the highest."""
    found: dict[tuple[str, str], int] = {}
    for index, report in rows.items():
        for area in report.areas:
            key, used = (area.name, area.memory), area.used_bytes
            before = found.get(key, 0)
            start = starts[index] if area.name == "arena" else 0
            is_sum = area.name == CONSTANTS
            found[key] = before + used if is_sum else max(before, start + used)
    return tuple(Area(name, memory, used) for (name, memory), used in found.items())


def _titled(report: CompileReport) -> Proof:
    """Return a proof whose operators are named with their subgraph."""

    def titled(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{report.subgraph}: {name}" for name in names)

    proof = report.proof
    return replace(
        proof,
        bounded=titled(proof.bounded),
        unproved=titled(proof.unproved),
        differing=titled(proof.differing),
    )


def _reason(model: Model, index: int, refused: Mapping[int, Diagnostic]) -> Reason:
    """Say why a subgraph was not compiled."""
    if index in refused:
        said = refused[index]
        return Reason(NOT_COMPILED, said.message, help=said.help or "")
    reached = {row for entry in executed(model) for row in reached_from(model, entry)}
    return ONCE if index in reached else UNREACHED


def _left(
    model: Model, subgraph: Subgraph, configuration: Configuration, reason: Reason
) -> CompileReport:
    """Return the report of a subgraph of which nothing was compiled."""
    edges = edges_of_subgraph(subgraph)
    alone = replace(model, subgraphs=(subgraph,))
    title = names_of(model)[subgraph.index]
    report = compile_report(
        f"{model.name}, {title}",
        configuration,
        (
            tflite_placement(alone, row, Device.CPU, {}, (reason,), edges)
            for row in subgraph.operators
        ),
        [],
    )
    return replace(report, subgraph=title)


def _unreached(model: Model, reports: Sequence[CompileReport]) -> Iterator[Diagnostic]:
    """Warn of subgraphs that are in the artifact as they were, since nothing executes them."""
    for report in reports:
        if any(UNREACHED in row.reasons for row in report.placements):
            yield Diagnostic(
                "W311",
                f"subgraph {report.subgraph} is in the artifact as it was, not compiled: "
                f"{UNREACHED.message}",
                Severity.WARNING,
                Origin(model.name),
                help=UNREACHED.help,
            )
