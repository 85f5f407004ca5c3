"""Cut the NPU operators of an artifact, and show that what comes out computes the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from mizzen.analysis.checking.artifacts import inputs_for
from mizzen.analysis.cost.reporting import configuration_of
from mizzen.analysis.instrumenting.costs import costs_of_parts
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.forms import TFLITE, own_ending
from mizzen.artifact.interface import Array
from mizzen.artifact.loading import artifact_of
from mizzen.artifact.sealing import unsealed
from mizzen.artifact.steps import NpuStep, is_npu, read_network
from mizzen.compiler.report import with_time
from mizzen.diagnostics import Diagnostic, Origin, Severity, fail
from mizzen.package.tflite.cutting import cut_operators
from mizzen.report.parts import PartCost
from mizzen.targets.ethos_u.cutting import Part, parts_of
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.program import Program
from mizzen.targets.families import ETHOS_U

ENDING = "_parts"
"""What the name of an instrumented artifact ends with, before ``.tflite``."""

IDENTIFIER = b"TFL3"
"""The identifier of the format, from byte 4 of a file on."""

COMPARED = 16
"""Most streams of inferences that are compared, as many as a proof has."""

CALLS = 2
"""Of a session: the second finds the state that the first left."""


@dataclass(frozen=True, slots=True, eq=False)
class Instrumented:
    """An instrumented artifact: it computes what `whole` does.

    parts        in the order in which the NPU is started for them
    inferences   how many showed that outputs are equal
    diagnostics  what there is to know
    """

    whole: Artifact
    artifact: Artifact
    parts: tuple[PartCost, ...]
    inferences: int
    diagnostics: tuple[Diagnostic, ...]

    @property
    def cycles(self) -> int:
        """What all parts take, one after the other."""
        return sum(part.cycles for part in self.parts)

    @property
    def whole_cycles(self) -> int:
        """What the NPU takes for the artifact that was not cut."""
        return sum(part.in_whole_cycles for part in self.parts)

    def as_dict(self) -> dict[str, object]:
        """Return the parts as JSON-ready data."""
        return {
            "artifact": self.artifact.name,
            "accelerator": self.artifact.accelerator,
            "inferences_compared": self.inferences,
            "cycles": self.cycles,
            "whole_cycles": self.whole_cycles,
            "parts": [part.as_dict() for part in self.parts],
        }


def holds_compiled(data: bytes) -> bool:
    """Whether bytes are a TFLite network that has something compiled for an NPU already."""
    return data[4:8] == IDENTIFIER and any(map(is_npu, read_network(data, "model").main.operators))


def instrument(artifact: Artifact) -> Instrumented:
    """Return an artifact whose NPU operators are cut wherever they may be.

    Its inputs, outputs, constants and addresses are those of the artifact; each part is an NPU
    operator. It has no manifest: that of the artifact is of other bytes, and its proof of the whole
    stream. What other subgraphs have on the NPU stays whole (W355).

    Raises E310 for what is no TFLite file, E311 where nothing is on an Ethos-U, E312 for inputs and
    outputs in regions of their own; E313 and E314 if what comes out is not the same.
    """
    _require_tflite(artifact)
    steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
    programs = [step.program for step in steps if isinstance(step.program, Program)]
    _require_parts(artifact, steps, programs)
    parts = [parts_of(program) for program in programs]
    made = _made(artifact, programs, parts)
    inferences = _require_same(artifact, made)
    configuration = configuration_of(artifact, None)
    assert configuration is not None, "the artifact is for Ethos-U"
    costs = tuple(costs_of_parts(programs, parts, configuration))
    return Instrumented(artifact, made, costs, inferences, tuple(_notes(artifact, programs)))


def _require_tflite(artifact: Artifact) -> None:
    ending = own_ending(artifact.data)
    if ending != TFLITE:
        raise fail(
            "E310",
            f"what is cut into parts must be a compiled .tflite, and {artifact.name} is a "
            f"{ending} file",
            help="a PyTorch or ONNX network is one where no operator is left to its framework: "
            "artifact.save('network.tflite')",
        )


def _require_parts(
    artifact: Artifact, steps: Sequence[NpuStep], programs: Sequence[Program]
) -> None:
    if not programs:
        raise fail(
            "E311",
            f"{artifact.name} must have an operator on an Ethos-U, whose counters are read, and is "
            f"for {artifact.accelerator or 'no NPU'}",
            help="compile the network with --accelerator-config; `mizzen check` says why operators "
            "are on the CPU",
        )
    if any(not step.part.shared for step in steps):
        raise fail(
            "E312",
            f"{artifact.name} must have its inputs and outputs in the arena, where they stay from "
            "one part to the next, and has regions of their own for them",
            help="compile it without --separate-io-regions",
        )


def _made(
    artifact: Artifact, programs: Sequence[Program], parts: Sequence[Sequence[Part]]
) -> Artifact:
    model = read_network(unsealed(artifact.data, artifact.name), artifact.name)
    operators = [operator.index for operator in model.main.operators if is_npu(operator)]
    payloads = {
        index: [driver.build(part.program.words, part.program.hardware) for part in cut]
        for index, cut in zip(operators, parts, strict=True)
    }
    data = cut_operators(model.record, payloads, ETHOS_U.memory_inputs)
    stem = PurePath(artifact.name).stem
    origins = [part.program.origins for cut in parts for part in cut]
    report = artifact.report
    if report is not None:
        others = report.origins[len(programs) :]
        report = replace(
            report,
            flash_bytes=len(data) + report.flash_bytes - len(artifact.data),
            origins=(*origins, *others),
            performance=(),
            code=tuple(
                choice for choice, cut in zip(report.code, parts, strict=False) for _ in cut
            ),
        )
    made = artifact_of(data, f"{stem}{ENDING}.tflite", report, origins)
    return with_time(made, None if report is None else report.board_figures)


def _require_same(whole: Artifact, made: Artifact) -> int:
    """Execute both, with state that goes on; return how many inferences were compared."""
    inputs = inputs_for(whole, COMPARED)
    batch = len(inputs[0]) if inputs else 1
    one, other = whole.session(batch), made.session(batch)
    for _ in range(CALLS):
        if not all(map(np.array_equal, _arrays(one.run(*inputs)), _arrays(other.run(*inputs)))):
            raise fail(
                "E313",
                f"the parts of {whole.name} must give what it gives, and give other outputs",
                help="this is a bug of Mizzen: please report it with the artifact",
            )
    if made.hazards and not whole.hazards:
        raise fail(
            "E314",
            f"the parts of {whole.name} must have no hazards, as it has none: "
            f"{made.hazards[0].message}",
            help="this is a bug of Mizzen: please report it with the artifact",
        )
    return CALLS * batch


def _arrays(outputs: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _notes(artifact: Artifact, programs: Sequence[Program]) -> Iterator[Diagnostic]:
    others = [part.title for part in artifact.subgraphs if part.contents.index]
    if others:
        yield Diagnostic(
            "W355",
            "only the main subgraph is cut; what is on the NPU of others stays whole: "
            f"{', '.join(others)}",
            Severity.WARNING,
            Origin(artifact.name),
        )
    if not any(program.origins for program in programs):
        yield Diagnostic(
            "W357",
            f"nothing says which layers the operations of {artifact.name} are of, so each is a "
            "part and is named by its command",
            Severity.WARNING,
            Origin(artifact.name),
            help="keep the report beside an artifact, or compile the network with --instrument",
        )
