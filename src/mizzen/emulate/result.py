"""What a run of firmware gives, and whether it is a success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.diagnostics import Diagnostic
from mizzen.emulate.device import Invocation
from mizzen.emulate.processor import End, Reason
from mizzen.emulate.trace import BusRow

MARKER = "mizzen: ok"
"""The line by which firmware says that all is well."""


@dataclass(frozen=True, slots=True)
class EmulationResult:
    """One run of firmware.

    output            the console's text
    reason            why the run ended
    exit_status       the firmware's own; None where it did not end itself
    marker            the line that was looked for
    marker_seen       whether it is a line of the output
    invocations       runs of the NPU, the first thousand
    invocation_count  all of them
    trace             accesses of the NPU's registers, in order
    failures          why this is no success; empty if it is
    notes             what was wrong beside
    """

    output: str
    reason: Reason
    exit_status: int | None
    marker: str
    marker_seen: bool
    invocations: tuple[Invocation, ...]
    invocation_count: int
    trace: tuple[BusRow, ...]
    failures: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        """Whether the firmware ended itself with status 0 and wrote the marker."""
        return not self.failures

    @property
    def cycles(self) -> int:
        """Estimated cycles of the NPU, over all invocations kept."""
        return sum(invocation.cycles.total for invocation in self.invocations)

    def as_dict(self) -> dict[str, object]:
        """Return the result as JSON-ready data, without the bus trace."""
        return {
            "output": self.output,
            "reason": self.reason.name.lower(),
            "exit_status": self.exit_status,
            "marker": self.marker,
            "marker_seen": self.marker_seen,
            "invocation_count": self.invocation_count,
            "invocations": [invocation.as_dict() for invocation in self.invocations],
            "npu_cycles": self.cycles,
        }


STATUS = (
    "what it wrote last says why; --accelerator-config names the NPU that firmware was built for"
)
NO_MARKER = (
    "exported firmware writes it when its example gave the right outputs; name a line of your own "
    "firmware with --marker"
)


def failures(end: End, marker: str, *, marker_seen: bool) -> tuple[Diagnostic, ...]:
    """Return why a run is no success: how it ended, or its status, or the marker."""
    if end.diagnostic is not None:
        return (end.diagnostic,)
    if end.status:
        message = f"the firmware must end with status 0, and ended with {end.status}"
        return (Diagnostic("E437", message, help=STATUS),)
    if not marker_seen:
        message = f"the firmware must write the line {marker!r}, and did not"
        return (Diagnostic("E438", message, help=NO_MARKER),)
    return ()


def has_line(output: str, marker: str) -> bool:
    """Whether a line of the output is exactly the marker; ends of lines may be CR LF."""
    return marker in (line.rstrip("\r") for line in output.split("\n"))


def unique(diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return diagnostics once each, in their order."""
    return tuple(dict.fromkeys(diagnostics))
