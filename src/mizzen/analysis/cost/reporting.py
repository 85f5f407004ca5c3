"""The cost report of an artifact: its steps one after the other, on the NPU and on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mizzen.analysis.cost.cpu import cpu_operations
from mizzen.analysis.cost.energy import energy_of
from mizzen.analysis.cost.ethos_n import ethos_n_operations
from mizzen.analysis.cost.ethos_u import ethos_u_operations
from mizzen.analysis.cost.origins import of_commands, of_model
from mizzen.analysis.cost.processors import PROCESSORS, Processor, find_processor
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.control_step import ControlStep
from mizzen.artifact.ethos_n import NpuProgram
from mizzen.artifact.execution import Contents
from mizzen.artifact.steps import NpuStep, Step
from mizzen.artifact.views import within
from mizzen.artifact.written import as_written, conversions
from mizzen.diagnostics import fail
from mizzen.report.board_figures import BoardFigures
from mizzen.report.cost import CostReport, OperationCost, Span
from mizzen.targets.ethos_n.timing import SHORTEST_STRIPE_CYCLES
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.ethos_u.machine.recorded_config import recorded
from mizzen.targets.ethos_u.machine.system_config import resolve

ETHOS_N_CLOCK_HZ = 1e9
"""Taken for Ethos-N, whose artifacts know no clock: the one at which its TOPS are counted."""

ETHOS_N_MEANING = (
    "Cycles of Ethos-N are by the model with which Arm's library chooses plans. It counts at least "
    f"{SHORTEST_STRIPE_CYCLES:,} cycles for a stripe, the piece of a layer that is moved or "
    "computed at once, so small layers take multiples of that. It knows no clock: "
    f"{ETHOS_N_CLOCK_HZ / 1e6:g} MHz are taken."
)


def cost_report(
    artifact: Artifact,
    *,
    configuration: EthosUConfiguration | None = None,
    processor: str | None = None,
    processor_clock_hz: float | None = None,
    figures: BoardFigures | None = None,
) -> CostReport:
    """Estimate what an inference of an artifact's file costs.

    configuration       the system that it runs in, as `system_config.resolve` gives it; else the
                        one it was compiled for, or the accelerator's default where none is known
    processor           the core that runs CPU operators, one of `PROCESSORS`; else the board's, or
                        a Cortex-M55
    processor_clock_hz  of that core; else the board's or, where it has another core, the NPU's
    figures             what a board says; else what the artifact was compiled for

    Raises E570 for a configuration of another accelerator, E571 for an unknown core, E572 for a
    clock that is not one, E6xx and E98x for streams that cannot be read.
    """
    report = artifact.report
    figures = figures or (report.board_figures if report is not None else None) or BoardFigures()
    chosen = configuration_of(artifact, configuration)
    clock_hz = figures.clock_hz or _own_clock_hz(chosen)
    core, core_hz = _core(figures, processor, processor_clock_hz)
    clocks = _Clocks(chosen, core, clock_hz / (core_hz or clock_hz))
    file = as_written(artifact)
    operations, spans = _operations(file, file.contents, clocks)
    more = _conversion_cycles(artifact, clocks)
    on_cpu = more or any(each.processor_cycles for each in operations)
    cost = CostReport(
        model=report.model if report is not None else artifact.name,
        configuration=_named(artifact, chosen),
        clock_hz=clock_hz,
        processor=core.name if on_cpu else "",
        operations=tuple(operations),
        spans=tuple(sorted(spans, key=lambda span: span.start_cycles)),
        meaning=ETHOS_N_MEANING if chosen is None and artifact.accelerator is not None else "",
        conversion_cycles=more,
        processor_clock_hz=core_hz if on_cpu else 0.0,
    )
    return replace(cost, energy=energy_of(cost, figures.energy)) if figures.energy else cost


DEFAULT_PROCESSOR = "cortex-m55"


def _own_clock_hz(chosen: EthosUConfiguration | None) -> float:
    return ETHOS_N_CLOCK_HZ if chosen is None else chosen.system.core_clock_hz


def _core(
    figures: BoardFigures, asked: str | None, asked_hz: float | None
) -> tuple[Processor, float]:
    """Return the core that runs CPU operators, and its clock; 0 for the NPU's. E571, E572.

    A board's core that has no row is another than the one that figures are of: the clock is not
    taken either.
    """
    if asked_hz is not None and not asked_hz > 0:
        raise fail("E572", f"a core's clock must be above 0 Hz, not {asked_hz}")
    of_board = asked is None and figures.processor in PROCESSORS
    core = find_processor(figures.processor if of_board else asked or DEFAULT_PROCESSOR)
    if asked_hz is not None:
        return core, asked_hz
    return core, figures.processor_clock_hz if of_board else 0.0


def _conversion_cycles(artifact: Artifact, clocks: _Clocks) -> int:
    """Count what the host's steps around the artifact's file take."""
    costs = (_step(step, artifact.contents, clocks)[0] for step in conversions(artifact))
    return sum(each.cycles for operations in costs for each in operations)


@dataclass(frozen=True, slots=True)
class _Clocks:
    """What executes: the system of an Ethos-U, the core, and its cycles in one of the NPU."""

    chosen: EthosUConfiguration | None
    core: Processor
    ratio: float


def _operations(
    artifact: Artifact, contents: Contents, clocks: _Clocks
) -> tuple[list[OperationCost], list[Span]]:
    """Return the operations of a subgraph; what its operators execute is there once."""
    operations: list[OperationCost] = []
    spans: list[Span] = []
    own: list[int] = []
    start = 0
    for number, step in enumerate(contents.steps):
        parts = [_step(step, contents, clocks)]
        own += range(len(operations), len(operations) + len(parts[0][0]))
        if isinstance(step, ControlStep):
            below = (contents.below[index] for index in step.callees)
            parts += [_operations(artifact, subgraph, clocks) for subgraph in below]
        for costs, found_spans in parts:
            first = len(operations)
            operations += [_placed(each, number, first, start) for each in costs]
            spans += [_moved(span, first, start) for span in found_spans]
            start += sum(each.cycles for each in costs)
    told = of_model([operations[place] for place in own], artifact.report_of(contents))
    for place, operation in zip(own, told, strict=True):
        operations[place] = operation
    return operations, spans


def _step(
    step: Step, contents: Contents, clocks: _Clocks
) -> tuple[list[OperationCost], list[Span]]:
    match step:
        case NpuStep(program=Program() as program) if clocks.chosen is not None:
            return ethos_u_operations(program, clocks.chosen)
        case NpuStep(program=NpuProgram() as program):
            passes, spans = ethos_n_operations(program.program)
            return of_commands(passes, program.origins), spans
        case NpuStep():
            raise fail("E573", f"no timing model knows the programs of {step.accelerator}")
        case _:
            return cpu_operations(step, contents, clocks.core, clocks.ratio)


def _placed(operation: OperationCost, step: int, first: int, start: int) -> OperationCost:
    if not (step or first or start):
        return operation
    return replace(
        operation,
        step=step,
        index=first + operation.index,
        start_cycles=start + operation.start_cycles,
        end_cycles=start + operation.end_cycles,
    )


def _moved(span: Span, first: int, start: int) -> Span:
    return Span(
        span.unit, first + span.operation, start + span.start_cycles, start + span.end_cycles
    )


def configuration_of(
    artifact: Artifact, asked: EthosUConfiguration | None
) -> EthosUConfiguration | None:
    """Return the system of an artifact; None where no part of it is for Ethos-U.

    Raises E570 for one that is asked for and has another accelerator.
    """
    name = artifact.accelerator
    steps = (step for subgraph in within(artifact.contents) for step in subgraph.steps)
    if name is None or not any(
        isinstance(step, NpuStep) and isinstance(step.program, Program) for step in steps
    ):
        return asked
    if asked is not None:
        if asked.accelerator.name != name:
            raise fail(
                "E570",
                f"the configuration must be for {name}, which {artifact.name} was compiled for, "
                f"and is for {asked.accelerator.name}",
                help="compile the network for the other accelerator, and ask about that artifact",
            )
        return asked
    told = recorded(artifact.report.configuration) if artifact.report is not None else None
    return told if told is not None and told.accelerator.name == name else resolve(name)


def _named(artifact: Artifact, chosen: EthosUConfiguration | None) -> Mapping[str, str]:
    if chosen is not None:
        return {
            "accelerator": chosen.accelerator.name,
            "system_config": chosen.system.name,
            "memory_mode": chosen.mode.name,
        }
    known: Mapping[str, Any] = artifact.report.configuration if artifact.report else {}
    told = {key: str(known[key]) for key in ("system_config", "memory_mode") if key in known}
    return {"accelerator": artifact.accelerator or "none", **told}
