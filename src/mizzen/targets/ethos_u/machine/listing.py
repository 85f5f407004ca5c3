"""The listing of an NPU program: every command, and where the stream stops being one."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.diagnostics import Diagnostic
from mizzen.isa.listing import Line, lines
from mizzen.targets.ethos_u.machine.commands import Arch, decode_partial
from mizzen.targets.ethos_u.machine.driver import configuration
from mizzen.targets.ethos_u.machine.program import Program


@dataclass(frozen=True, slots=True)
class ProgramListing:
    """The good commands of a program; `stopped_by` says why they end before the stream does."""

    arch: Arch
    lines: tuple[Line, ...]
    stopped_by: Diagnostic | None

    def __str__(self) -> str:
        return "\n".join(str(line) for line in self.lines)

    def as_dict(self) -> dict[str, object]:
        """Return the listing as JSON-ready data."""
        data: dict[str, object] = {
            "architecture": self.arch.value,
            "commands": [line.as_dict() for line in self.lines],
        }
        if self.stopped_by is not None:
            data["stopped_by"] = self.stopped_by.as_dict()
        return data


def list_program(program: Program, arch: Arch | None = None) -> ProgramListing:
    """List a program's commands with the model's operators.

    `arch` is needed only for a program that does not say which hardware it is for; E526 if it is
    missing then.
    """
    if arch is None:
        arch = configuration(program.hardware).arch
    decoded = decode_partial(program.words, arch)
    listed = tuple(lines(decoded.instructions, program.origins))
    return ProgramListing(arch, listed, decoded.stopped_by)
