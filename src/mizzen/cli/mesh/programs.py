"""Programs that are executed, timed or written: only those that `mizzen mesh check` lets pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.diagnostics import Diagnostic, MizzenError

if TYPE_CHECKING:
    from mizzen.mesh.program import MeshProgram
    from mizzen.mesh.program.checker.findings import Finding


def diagnostic(finding: Finding) -> Diagnostic:
    """Return a finding as a message."""
    return Diagnostic(
        "E508", f"{finding.rule.value}, {finding.place}: {finding.must}, and {finding.came}"
    )


def sound_program(path: Path) -> MeshProgram:
    """Read a program that keeps to its machine and network. E508 for the first thing it breaks."""
    from dataclasses import replace

    from mizzen.mesh.program import check, read_program

    program = read_program(path)
    findings: Sequence[Finding] = check(program)
    if findings:
        help = f"`mizzen mesh check {path}` says all that is wrong with it: {len(findings):,}"
        raise MizzenError(replace(diagnostic(findings[0]), help=help))
    return program
