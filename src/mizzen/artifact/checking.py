"""Artifacts of any compiler, checked without running them: stream by stream, what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.program import HazardReport
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import Diagnostic, MizzenError


@dataclass(frozen=True, slots=True)
class StepCheck:
    """What was found in the stream of one NPU operator.

    step      place of the operator among the artifact's steps
    report    what the hazard checker says; None for a stream that cannot be read to its end
    findings  the hazards, or the reason why it cannot be read
    """

    step: int
    report: HazardReport | None
    findings: tuple[Diagnostic, ...]

    def as_dict(self) -> dict[str, object]:
        """Return the check as JSON-ready data."""
        if self.report is not None:
            return {"step": self.step, "malformed": False, **self.report.as_dict()}
        findings = [found.as_dict() for found in self.findings]
        return {"step": self.step, "malformed": True, "findings": findings}


def check_streams(artifact: Artifact) -> tuple[StepCheck, ...]:
    """Check the stream of every NPU operator of an artifact; nothing is executed."""
    return tuple(_checks(artifact))


def _checks(artifact: Artifact) -> Iterator[StepCheck]:
    for place, step in enumerate(artifact.steps):
        if not isinstance(step, NpuStep):
            continue
        try:
            report = step.hazards
        except MizzenError as error:
            yield StepCheck(place, None, (error.diagnostic,))
        else:
            yield StepCheck(place, report, tuple(report.diagnostics))
