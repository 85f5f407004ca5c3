"""The one place that puts the report of a compilation together, whatever was compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from mizzen.analysis.cost import cost_report
from mizzen.analysis.cost.origins import by_owner
from mizzen.artifact.artifact import Artifact
from mizzen.compiler.codegen import Costs
from mizzen.compiler.edges import Edges, edges_of_subgraph
from mizzen.compiler.options import Configuration
from mizzen.compiler.shapes import shape_of_operator
from mizzen.diagnostics import Device, Diagnostic, MizzenError, Origin, Reason, Severity
from mizzen.frontends.tflite import Model, Operator, macs
from mizzen.report import Area, CompileReport, Measure, OperatorPlacement
from mizzen.report.board_figures import BoardFigures
from mizzen.report.proof import NOT_PROVED, Proof, not_compared

CONSTANTS = "constants"
"""The area whose bytes no two regions share."""

CONTROL_FLOW = Reason(
    "control-flow",
    "the CPU executes the subgraphs, whose operators may be on the NPU",
    help="nothing needs doing",
)

NOTHING_COMPILED = "none"
"""The compiler of a network of which the NPU takes nothing."""


def compile_report(
    model: str,
    configuration: Configuration,
    placements: Iterable[OperatorPlacement],
    costs: Sequence[Costs],
    *,
    compiler: str = NOTHING_COMPILED,
    flash_bytes: int = 0,
    arena_bytes: int | None = None,
    origins: Sequence[Mapping[int, Origin]] = (),
    warnings: Sequence[Diagnostic] = (),
    log: str = "",
    proof: Proof = NOT_PROVED,
) -> CompileReport:
    """Return the report of a network whose regions on the NPU have some costs, in their order.

    Regions run one after the other: constants add up, the arena is shared.

    arena_bytes  of the runtime's arena, where the artifact says more than the regions' costs
    """
    areas = _areas(costs)
    if arena_bytes is None:
        arena_bytes = max((area.used_bytes for area in areas if area.name == "arena"), default=0)
    return CompileReport(
        model=model,
        configuration=configuration.as_dict(),
        compiler=compiler,
        placements=tuple(placements),
        arena_bytes=arena_bytes,
        flash_bytes=flash_bytes,
        areas=areas,
        memories=added([measure for cost in costs for measure in cost.memories]),
        figures=summed([cost.figures for cost in costs]),
        performance=_performance(costs),
        origins=tuple(map(dict, origins)),
        diagnostics=(*configuration.warnings, *warnings, *_not_compared(model, proof)),
        log=log,
        proof=proof,
        code=tuple(choice for cost in costs for choice in cost.code),
    )


def _not_compared(model: str, proof: Proof) -> Iterator[Diagnostic]:
    """Warn of what the NPU gives and nothing can be compared with."""
    if proof.unproved:
        yield Diagnostic(
            "W308",
            not_compared(proof),
            Severity.WARNING,
            Origin(model),
            help="compare the artifact's outputs with the network's on inputs of your own",
        )


NO_TIMING_MODEL = "E573"
"""The code of programs that no timing model knows."""


def with_time(artifact: Artifact, figures: BoardFigures | None) -> Artifact:
    """Put how long an inference takes into an artifact's report, and what each operator takes.

    figures  what the board says; None without one
    """
    if artifact.report is not None:
        report = artifact.report
        subgraphs = {part.title: part for part in copy(artifact).subgraphs}
        artifact.report = timed_report(
            artifact,
            replace(
                report,
                subgraphs=tuple(
                    timed_report(subgraphs[each.subgraph], each, figures)
                    if each.subgraph in subgraphs
                    else each
                    for each in report.subgraphs
                ),
            ),
            figures,
        )
    return artifact


def timed_report(
    artifact: Artifact, report: CompileReport, figures: BoardFigures | None
) -> CompileReport:
    """Return an artifact's report with what the timing model says; without where none does.

    An inference is of the main subgraph with what it executes, each once: how often a loop runs is
    not known.
    """
    try:
        cost = cost_report(artifact, figures=figures or BoardFigures())
    except MizzenError as error:
        if error.diagnostic.code == NO_TIMING_MODEL:
            return replace(report, board_figures=figures)
        raise
    owned = by_owner(cost.operations, report)

    def timed(placement: OperatorPlacement) -> OperatorPlacement:
        operations = owned.get((placement.subgraph, placement.index), ())
        return replace(placement, cycles=sum(each.cycles for each in operations))

    placements = tuple(map(timed, report.placements))
    return replace(
        report,
        time=cost.time,
        energy=cost.energy,
        placements=placements,
        board_figures=figures,
    )


def with_diagnostics(artifact: Artifact, diagnostics: Iterable[Diagnostic]) -> Artifact:
    """Add what was found to an artifact's report."""
    new = tuple(diagnostics)
    if new and artifact.report is not None:
        said = (*artifact.report.diagnostics, *new)
        artifact.report = replace(artifact.report, diagnostics=said)
    return artifact


def tflite_placement(
    model: Model,
    operator: Operator,
    device: Device,
    reasons: Iterable[Reason],
    edges: Edges,
) -> OperatorPlacement:
    """Return where an operator of a TFLite network goes."""
    outputs = model.main.present(operator.outputs)
    return OperatorPlacement(
        index=operator.index,
        kind=operator.kind,
        name=outputs[0].name if outputs else "",
        device=device,
        macs=macs(model.main, operator),
        reasons=tuple(reasons),
        after=edges[operator.index],
        shape=shape_of_operator(model.main, operator),
    )


def in_terms_of(
    report: CompileReport,
    model: Model,
    sources: Sequence[int],
    gone: Callable[[Operator], Reason],
) -> CompileReport:
    """Return the report of a network that was made of another one, in that one's operators.

    sources  for each operator of the report's network, which of `model` it is a part of
    gone     says why an operator has no part any more
    """
    edges = edges_of_subgraph(model.main)
    parts: dict[int, list[OperatorPlacement]] = {}
    for placement in report.placements:
        parts.setdefault(sources[placement.index], []).append(placement)

    def placed(operator: Operator) -> OperatorPlacement:
        of_it = parts.get(operator.index, [])
        if not of_it:
            return tflite_placement(model, operator, Device.NPU, (gone(operator),), edges)
        on_cpu = any(part.device is Device.CPU for part in of_it)
        reasons = dict.fromkeys(reason for part in of_it for reason in part.reasons)
        device = Device.CPU if on_cpu else Device.NPU
        return tflite_placement(model, operator, device, reasons, edges)

    def origin_of(origin: Origin) -> Origin:
        if origin.operator is None or origin.operator >= len(sources):
            return origin
        return model.origin(model.main.operators[sources[origin.operator]])

    return replace(
        report,
        placements=tuple(map(placed, model.main.operators)),
        diagnostics=tuple(
            replace(said, origin=said.origin and origin_of(said.origin))
            for said in report.diagnostics
        ),
        origins=tuple(
            {at: origin_of(origin) for at, origin in stream.items()} for stream in report.origins
        ),
    )


def ignored(kind: str) -> Reason:
    """Return the reason of an operator that is on the CPU because the user said so."""
    return Reason(
        "asked-for",
        f"every {kind} was to stay on the CPU",
        help=f"leave {kind} out of the operators to ignore",
        source="--ignore-ops",
    )


def _areas(costs: Sequence[Costs]) -> tuple[Area, ...]:
    sizes: dict[tuple[str, str], int] = {}
    for area in (area for cost in costs for area in cost.areas):
        key, used = (area.name, area.memory), area.used_bytes
        before = sizes.get(key, 0)
        sizes[key] = before + used if area.name == CONSTANTS else max(before, used)
    return tuple(Area(name, memory, used) for (name, memory), used in sizes.items())


def added(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """Add up accesses to each memory; of use, the most that one of the measures has."""
    by_memory: dict[str, Measure] = {}
    for measure in measures:
        old = by_memory.get(measure.memory, Measure(measure.memory, 0))
        accesses = dict(old.accesses)
        for what, (read_bytes, written_bytes) in measure.accesses.items():
            before = accesses.get(what, (0, 0))
            accesses[what] = (before[0] + read_bytes, before[1] + written_bytes)
        by_memory[measure.memory] = Measure(
            measure.memory,
            max(old.used_bytes, measure.used_bytes),
            old.access_cycles + measure.access_cycles,
            accesses,
        )
    return tuple(by_memory.values())


def _performance(costs: Sequence[Costs]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(cost.performance) for cost in costs if cost.performance is not None)


def summed(figures: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up the numbers of the compiler's own reports."""
    total: dict[str, int] = {}
    for name, value in (item for counts in figures for item in counts.items()):
        total[name] = total.get(name, 0) + value
    return total
