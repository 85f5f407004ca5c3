"""Which command of a stream something is about, for messages."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.targets.ethos_n.commands_values import TensorRecord


@dataclass(frozen=True, slots=True)
class Where:
    """A command: its number and name, and its word offset in the stream."""

    number: int
    name: str
    offset_words: int

    @property
    def origin(self) -> Origin:
        """The place in the stream."""
        return Origin(command=self.offset_words)

    def __str__(self) -> str:
        return f"command {self.number} {self.name}"

    def fault(self, code: str, message: str, help: str | None = None) -> MizzenError:
        """Make the error for `raise`: the command cannot be executed."""
        return fail(code, f"{self}: {message}", origin=self.origin, help=help)


@dataclass(frozen=True, slots=True)
class Port:
    """A tensor of a command: `role` says which one (`input`, `output`)."""

    where: Where
    role: str
    record: TensorRecord

    def fault(self, code: str, message: str, help: str | None = None) -> MizzenError:
        """Make the error for `raise`: the message is about the tensor."""
        return self.where.fault(code, f"{self.role} {message}", help)
