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

    Of memory it is what the largest has, after those that execute it.

    refused  why subgraphs were not compiled
    starts   where in the arena each begins
    """
    titles = names_of(model)
    by_index = {
        index: replace(each.report, subgraph=titles[index]) for index, each in compiled.items()
    }
    for subgraph in model.subgraphs:
        if subgraph.index not in by_index:
            reason = _reason(model, subgraph.index, refused)
            by_index[subgraph.index] = _left(model, subgraph, configuration, reason)
    reports = [by_index[each.index] for each in model.subgraphs]
    own = len(configuration.warnings)
    warnings = (diagnostic for report in reports for diagnostic in report.diagnostics[own:])
    proofs = [_titled(report) for report in reports if report.proof.is_told]
    return CompileReport(
        model=model.name,
        configuration=configuration.as_dict(),
        compiler=_compiler(reports),
        placements=tuple(_placements(reports)),
        arena_bytes=max(starts[index] + report.arena_bytes for index, report in by_index.items()),
        flash_bytes=flash_bytes,
        areas=_areas(by_index, starts),
        memories=added([measure for report in reports for measure in report.memories]),
        figures=summed([report.figures for report in reports]),
        performance=tuple(entry for report in reports for entry in report.performance),
        origins=tuple(origins for report in reports for origins in report.origins),
        diagnostics=(*configuration.warnings, *warnings, *_unreached(model, reports)),
        log="".join(report.log for report in reports),
        proof=joined_proof(proofs),
        code=tuple(choice for report in reports for choice in report.code),
        subgraphs=tuple(reports),
    )


def _compiler(reports: Sequence[CompileReport]) -> str:
    names = dict.fromkeys(
        report.compiler for report in reports if report.compiler != NOTHING_COMPILED
    )
    return ", ".join(names) or NOTHING_COMPILED


def _placements(reports: Sequence[CompileReport]) -> Iterator[OperatorPlacement]:
    for report in reports:
        for placement in report.placements:
            yield replace(placement, subgraph=report.subgraph)


def _areas(reports: Mapping[int, CompileReport], starts: Mapping[int, int]) -> tuple[Area, ...]:
    """Return the subgraphs' memory: constants of all, the arena of the highest."""
    sizes: dict[tuple[str, str], int] = {}
    for index, report in reports.items():
        for area in report.areas:
            key, used = (area.name, area.memory), area.used_bytes
            before = sizes.get(key, 0)
            start = starts[index] if area.name == "arena" else 0
            is_sum = area.name == CONSTANTS
            sizes[key] = before + used if is_sum else max(before, start + used)
    return tuple(Area(name, memory, used) for (name, memory), used in sizes.items())


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
    reached = {other for entry in executed(model) for other in reached_from(model, entry)}
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
            tflite_placement(alone, operator, Device.CPU, (reason,), edges)
            for operator in subgraph.operators
        ),
        [],
    )
    return replace(report, subgraph=title)


def _unreached(model: Model, reports: Sequence[CompileReport]) -> Iterator[Diagnostic]:
    """Warn of subgraphs that are in the artifact as they were, since nothing executes them."""
    for report in reports:
        if any(UNREACHED in placement.reasons for placement in report.placements):
            yield Diagnostic(
                "W311",
                f"subgraph {report.subgraph} is in the artifact as it was, not compiled: "
                f"{UNREACHED.message}",
                Severity.WARNING,
                Origin(model.name),
                help=UNREACHED.help,
            )
