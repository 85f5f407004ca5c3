"""The artifact as its file has it: without the host's conversions around a network of integers."""

from __future__ import annotations

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.control_step import ControlStep
from mizzen.artifact.forms import TFLITE, own_ending
from mizzen.artifact.reading import contents_from
from mizzen.artifact.resources import VariableStep
from mizzen.artifact.steps import CpuStep, NpuStep, Step

OWN_STEPS = (NpuStep, CpuStep, ControlStep, VariableStep)
"""Steps that a TFLite file has itself."""


def conversions(artifact: Artifact) -> tuple[Step, ...]:
    """Return the steps that an artifact executes and that its file has not.

    They make integers of the floats that come, and floats of the integers that are given.
    """
    if own_ending(artifact.data) != TFLITE:
        return ()
    return tuple(step for step in artifact.steps if not isinstance(step, OWN_STEPS))


def as_written(artifact: Artifact) -> Artifact:
    """Return the artifact that `load` makes of the file; the same where the file has every step."""
    if not conversions(artifact):
        return artifact
    report = artifact.report
    contents = contents_from(artifact.data, artifact.name, () if report is None else report.origins)
    return Artifact(
        artifact.data, artifact.name, contents, report, artifact.doubts, examples=artifact.examples
    )
