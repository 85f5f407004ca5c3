"""What is known about an artifact, put together once for everything that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from mizzen.analysis.cost import cost_report
from mizzen.analysis.layers import layers
from mizzen.analysis.memory import memory_report
from mizzen.artifact.steps import NpuStep
from mizzen.artifact.written import as_written
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.machine.config import ACCELERATORS, EthosUConfiguration, Port
from mizzen.targets.ethos_u.machine.recorded_config import recorded

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.artifact.interface import TensorInfo
    from mizzen.artifact.program import ListedCommand, ProgramView
    from mizzen.diagnostics import Diagnostic, Origin
    from mizzen.report import CompileReport
    from mizzen.report.advice import Advice
    from mizzen.report.board_figures import BoardFigures
    from mizzen.report.cost import CostReport
    from mizzen.report.layers import Layer
    from mizzen.report.memory import MemoryReport


@dataclass(frozen=True, slots=True)
class Work:
    """An operation of a command stream: the commands that set it up, and the one that starts it.

    step          index among the artifact's steps
    offset_words  of the command that starts it, the last one; of the last command at a stream's end
    operator      of the user's model, where it is known
    """

    step: int
    offset_words: int
    operator: int | None
    commands: tuple[ListedCommand, ...]

    @property
    def starts(self) -> bool:
        """Whether it starts work; commands at a stream's end start none."""
        return self.commands[-1].is_operation


@dataclass(frozen=True, slots=True)
class Stream:
    """The command stream of one step, operation by operation.

    stopped_by  why it cannot be read to its end
    """

    step: int
    hardware: str
    size_bytes: int
    work: tuple[Work, ...]
    stopped_by: Diagnostic | None


@dataclass(frozen=True, slots=True)
class Findings:
    """An artifact, as reports show it. What is not known is None, or empty.

    evaluation     what `mizzen evaluate --json` said of it
    bytes_a_cycle  that each memory gives at most, in a cycle of the NPU's clock
    problems       why something is not known that could be
    subgraphs      what the compilation said of each, where there are several: the rest is about one
    advice         what would make it cheaper, where it was tried
    asked          title and facts about the board that was asked about
    """

    name: str
    accelerator: str | None
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    streams: tuple[Stream, ...]
    compilation: CompileReport | None = None
    cost: CostReport | None = None
    memory: MemoryReport | None = None
    evaluation: Mapping[str, Any] | None = None
    bytes_a_cycle: Mapping[str, float] = field(default_factory=dict[str, float])
    problems: tuple[Diagnostic, ...] = ()
    subgraphs: tuple[CompileReport, ...] = ()
    advice: tuple[Advice, ...] = ()
    asked: tuple[str, tuple[tuple[str, str], ...]] | None = None

    @property
    def model(self) -> str:
        """The user's model, or the artifact where that is not known."""
        return self.name if self.compilation is None else self.compilation.model

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The model's operators with what they cost; none where one of both is not known."""
        if self.compilation is None or self.cost is None:
            return ()
        return layers(self.compilation, self.cost, self.memory)


Found = TypeVar("Found")


def findings_of(
    artifact: Artifact,
    evaluation: Mapping[str, Any] | None = None,
    figures: BoardFigures | None = None,
    system: EthosUConfiguration | None = None,
) -> Findings:
    """Ask for everything that is known about an artifact; of several subgraphs, the main one.

    figures  what a board says of time; else what the artifact was compiled for
    system   whose memories estimates are of; None for the one that it was compiled for
    """
    problems: list[Diagnostic] = []
    whole, main = artifact.report, artifact.subgraphs[0]
    artifact = as_written(main)
    return Findings(
        name=artifact.name,
        accelerator=artifact.accelerator,
        inputs=artifact.inputs,
        outputs=artifact.outputs,
        streams=tuple(_streams(artifact)),
        compilation=artifact.report,
        cost=_unless_refused(
            lambda: cost_report(main, configuration=system, figures=figures), problems
        ),
        memory=_unless_refused(lambda: memory_report(artifact), problems),
        evaluation=evaluation,
        bytes_a_cycle=_rates(artifact, system),
        problems=tuple(problems),
        subgraphs=() if whole is None else whole.subgraphs,
    )


def _unless_refused(ask: Callable[[], Found], problems: list[Diagnostic]) -> Found | None:
    """Return the answer; None where it is refused, with the reason among `problems`."""
    try:
        return ask()
    except MizzenError as error:
        problems.append(error.diagnostic)
        return None


def system_of(report: CompileReport) -> EthosUConfiguration | None:
    """Return the system of an Ethos-U that a report is for; None of others, or where it lacks."""
    is_known = report.configuration.get("accelerator") in ACCELERATORS
    return recorded(report.configuration) if is_known else None


def _rates(artifact: Artifact, system: EthosUConfiguration | None) -> dict[str, float]:
    """Return how fast memories are, in a system or the one that the artifact was compiled for."""
    configuration = system
    if configuration is None and artifact.report is not None:
        configuration = system_of(artifact.report)
    if configuration is None:
        return {}
    return {
        configuration.memory(port).value: configuration.bandwidth_bytes_per_second(port)
        / configuration.system.core_clock_hz
        for port in Port
    }


def _streams(artifact: Artifact) -> Iterator[Stream]:
    origins = () if artifact.report is None else artifact.report.origins
    places = [i for i, step in enumerate(artifact.steps) if isinstance(step, NpuStep)]
    for place, index in enumerate(places):
        step = artifact.steps[index]
        assert isinstance(step, NpuStep)
        view = step.view
        known = origins[place] if place < len(origins) else {}
        yield Stream(
            index,
            view.hardware,
            view.stream_bytes,
            tuple(_work(index, view, known)),
            view.listing.stopped_by,
        )


WORD_BYTES = 4


def _work(step: int, view: ProgramView, origins: dict[int, Origin]) -> Iterator[Work]:
    commands: list[ListedCommand] = []
    for line in view.listing.lines:
        commands.append(line)
        if line.is_operation:
            origin = origins.get(line.offset_words * WORD_BYTES)
            operator = None if origin is None else origin.operator
            yield Work(step, line.offset_words, operator, tuple(commands))
            commands = []
    if commands:
        yield Work(step, commands[-1].offset_words, None, tuple(commands))
