"""What the checker finds, as data and as diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import Diagnostic, Origin
from mizzen.targets.ethos_u.judge.hazards.intervals import Intervals
from mizzen.targets.ethos_u.judge.hazards.maps import MemoryBlock
from mizzen.targets.ethos_u.judge.hazards.operations import Kernel, Operation


class Order(Enum):
    """Two accesses to the same bytes, the first one in the stream's order first."""

    READ_AFTER_WRITE = "E671"
    WRITE_AFTER_READ = "E672"
    WRITE_AFTER_WRITE = "E673"

    @property
    def needs(self) -> str:
        """What must hold, in words."""
        return {
            Order.READ_AFTER_WRITE: "must read {bytes} after {first} has written them",
            Order.WRITE_AFTER_READ: "must write {bytes} after {first} has read them",
            Order.WRITE_AFTER_WRITE: "must write {bytes} after {first} has written them",
        }[self]


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of one memory: the lowest, the highest, and how many of those between are meant."""

    place: MemoryBlock
    first: int
    last: int
    count: int

    def __str__(self) -> str:
        some = "" if self.count == self.last - self.first + 1 else f"{self.count} of "
        return f"{some}bytes {self.first}..{self.last} of {self.place}"

    def as_dict(self) -> dict[str, object]:
        """Return the span as JSON-ready data."""
        return {
            "memory": str(self.place),
            "first_byte": self.first,
            "last_byte": self.last,
            "bytes": self.count,
        }


def span_of(place: MemoryBlock, bytes_: Intervals) -> Span:
    """Sum up a set of bytes that is not empty."""
    return Span(place, bytes_.first, bytes_.end - 1, bytes_.size)


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses whose order nothing guarantees; `fix` is what would."""

    order: Order
    first: Operation
    first_access: str
    second: Operation
    second_access: str
    span: Span
    fix: str

    @property
    def diagnostic(self) -> Diagnostic:
        """The finding as an error at the second operation."""
        first = f"{self.first_access} of {_at(self.first)}"
        needs = self.order.needs.format(bytes=self.span, first=first)
        return Diagnostic(
            self.order.value,
            f"{self.second.name}: {self.second_access} {needs}, and nothing makes it wait",
            origin=self.second.origin,
            help=self.fix,
        )

    def as_dict(self) -> dict[str, object]:
        """Return the finding as JSON-ready data."""
        return {
            **self.diagnostic.as_dict(),
            "first": _data(self.first, self.first_access),
            "second": _data(self.second, self.second_access),
            **self.span.as_dict(),
        }


class Fault(Enum):
    """The faults of one access alone."""

    NEVER_WRITTEN = "E674"
    OUTSIDE = "E675"


@dataclass(frozen=True, slots=True)
class BadAccess:
    """An access to bytes that nothing has written, or that the artifact does not declare."""

    fault: Fault
    operation: Operation
    access: str
    span: Span
    size: int | None = None
    """Bytes that the memory has, where the access leaves it; None where there is no such memory."""

    @property
    def diagnostic(self) -> Diagnostic:
        """The finding as an error at the operation."""
        if self.fault is Fault.NEVER_WRITTEN:
            what = f"must read what is written before, and nothing has written {self.span}"
        elif self.size is None:
            what = f"must stay inside the program's memory, which has no {self.span.place}"
        else:
            what = f"must stay inside {self.span.place}, which has {self.size} bytes, not touch "
            what += f"{self.span}"
        return Diagnostic(
            self.fault.value,
            f"{self.operation.name}: {self.access} {what}",
            origin=self.operation.origin,
            help="the command stream is damaged, or what made it is wrong",
        )

    def as_dict(self) -> dict[str, object]:
        """Return the finding as JSON-ready data."""
        return {
            **self.diagnostic.as_dict(),
            "second": _data(self.operation, self.access),
            **self.span.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class MissingOutput:
    """Bytes of an output tensor that no operation writes."""

    tensor: str
    span: Span

    @property
    def diagnostic(self) -> Diagnostic:
        """The finding as an error of the program."""
        return Diagnostic(
            "E676",
            f"output {self.tensor!r} must be written by the program, and nothing has written "
            f"{self.span}",
            origin=Origin(name=self.tensor),
            help="the command stream is damaged, or what made it is wrong",
        )

    def as_dict(self) -> dict[str, object]:
        """Return the finding as JSON-ready data."""
        return {**self.diagnostic.as_dict(), **self.span.as_dict()}


MEMORY_RULES = {
    False: "Ethos-U55 and U65 technical reference manuals, shared buffer",
    True: "Ethos-U85 technical reference manual, microarchitecture",
}
"""Where it is said what an operation may take of the memory inside the NPU; True is of U85."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """An operation that overflows the memory inside the NPU, or that the array cannot do so."""

    kernel: Kernel
    what: str

    @property
    def diagnostic(self) -> Diagnostic:
        """The finding as an error at the operation."""
        return Diagnostic(
            "E678",
            f"{self.kernel.name}: {self.what}",
            origin=self.kernel.origin,
            rule=MEMORY_RULES[bool(self.kernel.microblock)],
            help="the command stream is damaged, or what made it is wrong",
        )

    def as_dict(self) -> dict[str, object]:
        """Return the finding as JSON-ready data."""
        return {**self.diagnostic.as_dict(), "second": _data(self.kernel, "shared buffer")}


@dataclass(frozen=True, slots=True)
class SpoiltOutput:
    """Bytes of an output over which an operation of another operator of the model writes."""

    tensor: str
    first: Operation
    second: Operation
    span: Span

    @property
    def diagnostic(self) -> Diagnostic:
        """The finding as an error at the second operation."""
        return Diagnostic(
            "E597",
            f"{self.second.name}: OFM must not write over output {self.tensor!r}, {self.span}, "
            f"which {_at(self.first)} has written for another operator",
            origin=self.second.origin,
            help="the command stream is damaged, or what made it is wrong",
        )

    def as_dict(self) -> dict[str, object]:
        """Return the finding as JSON-ready data."""
        return {
            **self.diagnostic.as_dict(),
            "first": _data(self.first, "OFM"),
            "second": _data(self.second, "OFM"),
            **self.span.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class SpoiltInput:
    """A write to an input that is read after the program."""

    tensor: str
    operation: Operation
    access: str
    span: Span

    @property
    def diagnostic(self) -> Diagnostic:
        """The finding as an error at the operation."""
        return Diagnostic(
            "E598",
            f"{self.operation.name}: {self.access} must not write to input {self.tensor!r}, which "
            f"is read after the program, and writes {self.span}",
            origin=self.operation.origin,
            help="the command stream is damaged, or what made it is wrong",
        )

    def as_dict(self) -> dict[str, object]:
        """Return the finding as JSON-ready data."""
        return {
            **self.diagnostic.as_dict(),
            "second": _data(self.operation, self.access),
            **self.span.as_dict(),
        }


Finding = Race | BadAccess | MissingOutput | Misfit | SpoiltOutput | SpoiltInput


def _at(operation: Operation) -> str:
    return f"{operation.name} at word {operation.origin.command}"


def _data(operation: Operation, access: str) -> dict[str, object]:
    return {
        "command": operation.name,
        "offset_words": operation.origin.command,
        "access": access,
        "operator": operation.origin.operator,
        "kind": operation.origin.kind,
    }
