"""Accesses to memory that nothing orders, which no execution in order shows."""

from __future__ import annotations

from mizzen.artifact.program import NOT_THERE
from mizzen.artifact.steps import NpuStep
from mizzen.diagnostics import MizzenError, Severity


def require_order(step: NpuStep) -> None:
    """Check that every access of a stream is ordered and within its memory. E67x if one is not.

    A family without a checker of accesses says nothing.
    """
    try:
        report = step.hazards
    except MizzenError as error:
        if error.diagnostic.code == NOT_THERE:
            return
        raise
    for diagnostic in report.diagnostics:
        if diagnostic.severity is Severity.ERROR:
            raise MizzenError(diagnostic)
