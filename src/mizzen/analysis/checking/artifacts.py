"""Artifacts of any compiler, checked without their network: what is wrong, and what is not known.

An artifact that cannot be run is not sound. So its streams are read for hazards, planned as the
simulator plans them, which decodes every weight, scale and table, and the whole is inferred on a
few inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.analysis.checking.examples import compare_examples
from mizzen.analysis.checking.invariants import invariants_of, strange_outputs
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array, TensorInfo
from mizzen.artifact.program import HazardReport
from mizzen.artifact.steps import NpuStep
from mizzen.artifact.verifying import not_as_written
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.proof.stimuli import Stimulus, is_extreme, stimuli, stimulus
from mizzen.diagnostics import Diagnostic, MizzenError, Severity
from mizzen.frontends.tflite import zero_of

SEED = 1

INDEX_BYTES = 4
"""Integers of as many bytes may number rows of something: of those only zeros are tried."""

INPUTS_FOR_ONE = 4
"""Inputs for one of a proof: a wrong number shows with any, an overflow with some."""

MOST_SECONDS_FOR_SEVERAL = 10.0
"""About how long a host may take for all inferences: of slow artifacts fewer are made."""

MOST_SECONDS_FOR_ONE = 45.0
"""About how long a host may take for a single one; an artifact that needs more is not inferred."""

NOT_KNOWN = (
    "weights, scales and tables against the network (compare MODEL --artifact)",
    "overflow on other inputs (run)",
)
"""What the file alone does not show."""


@dataclass(frozen=True, slots=True)
class StepCheck:
    """What was found in the program of one NPU operator.

    step      place of the operator among the artifact's steps, or those of its subgraph
    report    what the hazard checker says; None for a program that cannot be executed
    findings  the hazards, or the reason why it cannot be executed
    subgraph  whose operator it is, where the artifact has several
    """

    step: int
    report: HazardReport | None
    findings: tuple[Diagnostic, ...]
    subgraph: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the check as JSON-ready data."""
        where = {"subgraph": self.subgraph} if self.subgraph else {}
        return {**where, **self._found()}

    def _found(self) -> dict[str, object]:
        if self.report is not None:
            return {"step": self.step, "malformed": False, **self.report.as_dict()}
        findings = [finding.as_dict() for finding in self.findings]
        return {"step": self.step, "malformed": True, "findings": findings}


@dataclass(frozen=True, slots=True)
class ArtifactCheck:
    """What was found in an artifact.

    steps       of the NPU
    inferences  how many were made; 0 where a program cannot be executed, or there is none
    fault       what stopped them
    doubts      what a runtime must do that is not usual, what streams that are right do not do,
                and what stopped those inferences that have the ends of the range for every input
    unexpected  what is not as the examples expect that came with the artifact
    changed     what shows that the file is not as it was written; then nothing of it is executed
    """

    steps: tuple[StepCheck, ...]
    inferences: int = 0
    fault: Diagnostic | None = None
    doubts: tuple[Diagnostic, ...] = ()
    unexpected: tuple[Diagnostic, ...] = ()
    changed: tuple[Diagnostic, ...] = ()

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """Everything that is wrong."""
        faults = () if self.fault is None else (self.fault,)
        of_steps = (finding for step in self.steps for finding in step.findings)
        return (*self.changed, *of_steps, *faults, *self.unexpected)

    def as_dict(self) -> dict[str, object]:
        """Return the check as JSON-ready data."""
        return {
            "steps": [step.as_dict() for step in self.steps],
            "inferences": self.inferences,
            "fault": None if self.fault is None else self.fault.as_dict(),
            "doubts": [doubt.as_dict() for doubt in self.doubts],
            "unexpected": [finding.as_dict() for finding in self.unexpected],
            "changed": [finding.as_dict() for finding in self.changed],
            "not_known": list(NOT_KNOWN),
        }


def check_artifact(artifact: Artifact) -> ArtifactCheck:
    """Check the program of every NPU operator of an artifact, and infer on a few inputs.

    Of a file that was changed after it was written nothing else is asked.
    """
    changed = tuple(not_as_written(artifact))
    if changed:
        return ArtifactCheck((), changed=changed)
    steps = tuple(check for part in artifact.subgraphs for check in _checks(part))
    notes = tuple(
        note
        for part in artifact.subgraphs
        for step in part.steps
        if isinstance(step, NpuStep)
        for note in step.part.notes
    )
    if not steps or any(check.report is None for check in steps):
        return ArtifactCheck(steps, doubts=notes)
    count, fault, at_ends = 0, None, None
    notes = (*notes, *(each for part in artifact.subgraphs for each in invariants_of(part)))
    for part in artifact.subgraphs:
        seconds = _seconds(part)
        if seconds > MOST_SECONDS_FOR_ONE:
            notes = (*notes, _too_slow(part, seconds))
            continue
        inputs = inputs_for(part, max(1, int(MOST_SECONDS_FOR_SEVERAL / max(seconds, 1e-9))))
        inferences = len(inputs[0]) if inputs else 1
        extreme = [index for index in range(inferences) if is_extreme(index)]
        usual = [index for index in range(inferences) if not is_extreme(index)]
        count += inferences
        varied = [array[usual] for array in inputs]
        outputs, stopped = _inferred(part, varied)
        fault = fault or stopped
        notes = (*notes, *strange_outputs(part, varied, outputs))
        if extreme and not fault:
            at_ends = at_ends or _inferred(part, [array[extreme] for array in inputs])[1]
    doubts = () if at_ends is None or fault is not None else (_doubt(at_ends),)
    runs = fault is None and count > 0
    examples = tuple(_findings_of_examples(artifact)) if runs else ()
    return ArtifactCheck(steps, count, fault, (*notes, *doubts), examples)


def _findings_of_examples(artifact: Artifact) -> Iterator[Diagnostic]:
    try:
        for compared in compare_examples(artifact):
            if compared.finding is not None:
                yield compared.finding
    except MizzenError as error:
        yield error.diagnostic


def _inferred(
    artifact: Artifact, inputs: Sequence[Array]
) -> tuple[Sequence[Array], Diagnostic | None]:
    """Return outputs, or the error that stops inferences, if one does."""
    try:
        results = artifact.run(*inputs)
    except MizzenError as error:
        return (), error.diagnostic
    return results if isinstance(results, tuple) else (results,), None


def _doubt(fault: Diagnostic) -> Diagnostic:
    """Return a fault that only the ends of the range meet, which a network in use may never see."""
    return Diagnostic(
        "W693",
        f"every input must be computed, and where all numbers are ends of their range one is not: "
        f"{fault.message}",
        Severity.WARNING,
        fault.origin,
        help=fault.help,
    )


def _checks(artifact: Artifact) -> Iterator[StepCheck]:
    for place, step in enumerate(artifact.steps):
        if not isinstance(step, NpuStep):
            continue
        try:
            report = step.hazards
            _ = step.simulator  # whose plan decodes every constant
        except MizzenError as error:
            yield StepCheck(place, None, (error.diagnostic,), artifact.title)
        else:
            yield StepCheck(place, report, tuple(report.diagnostics), artifact.title)


def _seconds(artifact: Artifact) -> float:
    """Return about how long a host takes for the NPU's part of one inference."""
    steps = [step for step in artifact.steps if isinstance(step, NpuStep)]
    return sum(step.family.seconds(step.simulator) for step in steps)


def _too_slow(artifact: Artifact, seconds: float) -> Diagnostic:
    return Diagnostic(
        "W345",
        f"an artifact is inferred where one inference takes a host {MOST_SECONDS_FOR_ONE:.0f} s at "
        f"most; {artifact.name} would take about {seconds:,.0f} s, and was only read",
        Severity.WARNING,
        help="mizzen run infers it, however long that takes; where the network should be quick, a "
        "size in the stream is wrong: mizzen inspect --listing",
    )


def inputs_for(artifact: Artifact, most: int) -> list[Array]:
    """Return inputs that tell, `[count, *shape]` each: four times what a proof takes, or `most`."""
    edge = sum(info.size_bytes for info in (*artifact.inputs, *artifact.outputs))
    arena = artifact.contents.arena
    used = edge if arena is None else sum(arena.block_bytes.values())
    count = min(most, INPUTS_FOR_ONE * ProofOptions().inputs_for(used))
    return stimuli([_stimulus(info) for info in artifact.inputs], count, SEED)


def example_for(artifact: Artifact) -> list[Array]:
    """Return inputs of one inference, `[1, *shape]` each; the same ones each time."""
    return stimuli([_stimulus(info) for info in artifact.inputs], 1, SEED)


def _stimulus(info: TensorInfo) -> Stimulus:
    if info.dtype.kind in "iu" and info.dtype.itemsize >= INDEX_BYTES:
        return Stimulus(info.shape, np.dtype(info.dtype), 0, 0)
    return stimulus(info.shape, info.dtype, zero_of(info.quantization))
