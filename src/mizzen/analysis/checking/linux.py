"""Whether Linux's driver would take the streams of an artifact, by the rules of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import Diagnostic
from mizzen.targets.ethos_u.judge.linux import LinuxReport, would_linux_take
from mizzen.targets.ethos_u.machine.program import Program


@dataclass(frozen=True, slots=True)
class LinuxCheck:
    """What Linux would say of each NPU operator of an Ethos-U, by its place among the steps."""

    reports: tuple[tuple[int, LinuxReport], ...]

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """Everything that Linux would refuse."""
        return tuple(finding for _, report in self.reports for finding in report.diagnostics)

    def as_dict(self) -> dict[str, object]:
        """Return the check as JSON-ready data."""
        return {"steps": [{"step": step, **report.as_dict()} for step, report in self.reports]}


def linux_check(artifact: Artifact, sram_bytes: int | None = None) -> LinuxCheck:
    """Return what Linux would refuse of an artifact.

    sram_bytes  of the board, where region 2 shall be its SRAM; else it is a buffer as the others
    """
    return LinuxCheck(tuple(_reports(artifact, sram_bytes)))


def _reports(artifact: Artifact, sram_bytes: int | None) -> Iterator[tuple[int, LinuxReport]]:
    for part in artifact.subgraphs:
        for place, step in enumerate(part.steps):
            if isinstance(step, NpuStep) and isinstance(step.program, Program):
                yield place, would_linux_take(step.program, sram_bytes)
