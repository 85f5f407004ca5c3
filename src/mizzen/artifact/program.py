"""The interface of an NPU family for artifacts: to read, execute and inspect its programs.

A family joins a target's simulator with the files that its programs come in. What executes a
program asks its family, never which NPU it is for; nothing here can compile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from mizzen.artifact.arena import Span
from mizzen.artifact.interface import Array, Origins, Variable
from mizzen.diagnostics import Diagnostic, MizzenError, fail

if TYPE_CHECKING:
    from mizzen.frontends.tflite import Model, Operator


class Outcome(Protocol):
    """What a run gives: arrays `[batch, *shape]` in the program's order."""

    @property
    def outputs(self) -> Sequence[Array]:
        """What the program computes."""
        ...

    @property
    def variables(self) -> Sequence[Array]:
        """The next state."""
        ...


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run gives, of a program that keeps no state unless it says so."""

    outputs: tuple[Array, ...]
    variables: tuple[Array, ...] = ()


SETTINGS = "settings"
"""Among what operations compute with, the numbers that are in the command stream."""

OPERANDS = "operands"
"""Likewise, a digest for each operand of which operations made its bytes."""

NOT_THERE = "E679"
"""The code of what a family of NPUs does not have: a checker, a listing."""


class ProgramReference(Protocol):
    """Says what a program must compute."""

    def run(self, arrays: Sequence[Array], batch: int) -> Outcome:
        """Infer a batch of arrays `[batch, *shape]`."""
        ...


class Simulator(Protocol):
    """Executes one program."""

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What there is to know of how it does so: paths whose meaning is only inferred."""
        ...

    def run(self, arrays: Sequence[Array], batch: int) -> Outcome:
        """Infer a batch of arrays `[batch, *shape]`. Raises E6xx or E9xx for faults."""
        ...


class Watched(Protocol):
    """A simulator of a program that shows what single operations write.

    simulator  what to execute; of its own, so that no other run is seen
    """

    @property
    def simulator(self) -> Any:
        """What executes the program, of the type of the family's own."""
        ...

    @property
    def maps(self) -> Mapping[int, Array]:
        """Feature maps ``[batch, H, W, C]`` by byte offset of the command that wrote them."""
        ...


NOBODY, CONSTANT, INPUT = -1, -2, -3
"""Who made a byte that no operation did: nobody, the compiler, or input k as ``INPUT - k``."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a map lies.

    start      address of its first element
    low, high  of its lowest byte, and of that after its highest
    own_bytes  how many of these are its own
    """

    region: int
    start: int
    low: int
    high: int
    own_bytes: int

    @property
    def is_dense(self) -> bool:
        """Whether all bytes between its ends are its own, each once."""
        return self.high - self.low == self.own_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """An operand, element by element: who made its first byte, and which byte that is of theirs.

    makers  indices of operations, or `NOBODY`, `CONSTANT`, `INPUT - k`
    places  bytes from the start of what the maker wrote, in the order of its elements
    """

    makers: npt.NDArray[np.int32]
    places: npt.NDArray[np.int64]
    extent: Extent | None


@dataclass(frozen=True, slots=True, eq=False)
class TracedOperation:
    """An operation of a program, where what it takes comes from, and where its result goes.

    index  among all operations of the stream, transfers included; -1 for the end of the program,
           which takes its outputs
    kind   its command
    settings  what it takes from registers, wherever its command lies; to be compared
    passed    operations whose results are handed to it inside the NPU
    gives     None for what writes no feature map
    constants what it reads of regions of constants: region, first byte, one past the last
    table     of the NPU's own memory, the bytes that it takes a function's table from, or loads
    """

    index: int
    offset_bytes: int
    kind: str
    settings: object
    takes: tuple[Taken, ...]
    passed: tuple[int, ...] = ()
    gives: Extent | None = None
    constants: tuple[tuple[int, int, int], ...] = ()
    table: tuple[int, int] | None = None


class HazardReport(Protocol):
    """What was checked and found of the order of accesses to memory."""

    @property
    def accelerator(self) -> str:
        """The accelerator that was checked for."""
        ...

    @property
    def operations(self) -> int:
        """The number of operations that were checked."""
        ...

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found."""
        ...

    @property
    def written(self) -> Mapping[int, Sequence[tuple[int, int]]]:
        """The bytes of each region that hold something after the program."""
        ...

    @property
    def own(self) -> Mapping[int, Sequence[tuple[int, int]]]:
        """The bytes of each region that the program itself writes."""
        ...

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready data."""
        ...


class ListedCommand(Protocol):
    """A command of a listing; as text it is all of it."""

    @property
    def offset_words(self) -> int:
        """Where it lies in its stream, in 32-bit words."""
        ...

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def is_operation(self) -> bool:
        """Whether it starts work that reads or writes memory."""
        ...


class Listing(Protocol):
    """A program's commands as text; `stopped_by` says why they end before the stream does."""

    @property
    def lines(self) -> Sequence[ListedCommand]:
        """The commands that can be read, in their order."""
        ...

    @property
    def stopped_by(self) -> Diagnostic | None:
        """Why the stream cannot be read to its end."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """Return the listing as JSON-ready data, the commands under ``commands``."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    """A block of memory of a program: its number, what it holds, its size."""

    region: int
    holds: str
    size_bytes: int

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {"region": self.region, "holds": self.holds, "size_bytes": self.size_bytes}


@dataclass(frozen=True, slots=True)
class MappedTensor:
    """A tensor in a block of memory; `role` is input, output or state."""

    name: str
    role: str
    region: int
    offset_bytes: int
    size_bytes: int
    shape: tuple[int, ...]
    dtype: str

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "name": self.name,
            "role": self.role,
            "region": self.region,
            "offset_bytes": self.offset_bytes,
            "size_bytes": self.size_bytes,
            "shape": list(self.shape),
            "dtype": self.dtype,
        }


@dataclass(frozen=True, slots=True)
class ProgramView:
    """A program as one looks at it.

    commands    the number of commands, as far as the stream can be read
    operations  counts of those that start work, by name, most frequent first
    """

    hardware: str
    stream_bytes: int
    commands: int
    operations: Mapping[str, int]
    regions: tuple[MemoryRegion, ...]
    tensors: tuple[MappedTensor, ...]
    listing: Listing


@dataclass(frozen=True, slots=True, eq=False)
class CompiledPart:
    """An NPU operator of an artifact: its program, and the tensors that it takes, gives, keeps.

    program  of the type of the family's target
    shared   where the program's regions lie in memory that all parts of the network share
    notes    what a runtime must do for it that is not usual
    """

    program: Any
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    variables: tuple[Variable, ...] = ()
    shared: Mapping[int, Span] = field(default_factory=dict[int, Span])
    notes: tuple[Diagnostic, ...] = ()


Bytes = npt.NDArray[np.uint8]

Staged = Mapping[int, Sequence[tuple[int, Bytes]]]
"""Constants that lie in memory, by region: byte offset and bytes of each run."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a program finds in the memory that it shares, and what it has to leave there.

    held   bytes of each region that hold something, as first and one past the last of each run
    final  places, among the program's outputs, of those that no later program completes
    kept   places, among its inputs, of those that something reads after it: the bytes that they
           have had so far, in their regions; others complete the rest
    """

    held: Mapping[int, Sequence[tuple[int, int]]]
    final: frozenset[int]
    kept: Mapping[int, Sequence[tuple[int, int]]]


class NpuFamily(ABC):
    """One NPU family's programs, whose type is the target's own: only the family looks into one."""

    @abstractmethod
    def read(self, model: Model, operator: Operator, origins: Origins) -> CompiledPart:
        """Return the compiled part that a custom operator holds. E12x if it is damaged."""

    def part(
        self, model: Model, operator: Operator, origins: Origins, program: object
    ) -> CompiledPart:
        """Return the part of an operator whose program its compiler hands over; else it is read."""
        return self.read(model, operator, origins)

    def divided(self, constants: Sequence[bytes]) -> tuple[bytes, bytes]:
        """Divide what a custom operator holds: what the NPU executes, and what it computes with.

        constants  of the operator's inputs, in order; nothing in them is checked
        """
        return b"".join(constants[:1]), b"".join(constants[1:])

    @abstractmethod
    def accelerator_of(self, program: Any) -> str:
        """Return the accelerator that a program is for."""

    @abstractmethod
    def simulator(self, program: Any) -> Any:
        """Plan a program's execution; returns a `Simulator`."""

    def staged(self, simulator: Any) -> Staged:
        """Return the constants that a program leaves in the memory that it shares, by region."""
        return {}

    def finding(self, program: Any, staged: Staged) -> Any:
        """Return a program that finds such constants in the memory that it shares."""
        return program

    def watched(self, simulator: Any, offsets_bytes: Collection[int]) -> Watched | None:
        """Return a simulator that shows what some commands write; None where none can be seen.

        offsets_bytes  of commands in the stream
        """
        return None

    def constants(self, simulator: Any) -> Mapping[int, Mapping[str, Array]]:
        """Return the constants that operations compute with; nothing where that is not known.

        It is by the byte offset of the operation's command, and by its name. Constants are as the
        operation takes them, decoded; `SETTINGS` are the numbers of the command itself.
        """
        return {}

    can_trace = False
    """Whether `traced` and `before` are there."""

    def traced(self, simulator: Any) -> Iterator[TracedOperation]:
        """Yield a program's operations with who made what they take, and its end. E679 without."""
        raise self._without("a trace of its operations")

    def constant_regions(self, program: Any) -> Mapping[int, Array]:
        """Return the bytes of a program's regions of constants. E679 where that is not known."""
        raise self._without("regions of constants")

    def before(self, program: Any, offset_bytes: int) -> Any:
        """Return a program that stops where a command was. E679 where programs cannot be cut."""
        raise self._without("programs that can be cut")

    def arena_offsets(self, model: Model) -> Mapping[int, int]:
        """Return the byte offset of each tensor in the arena; none without a plan of it.

        E12x where the plan is damaged.
        """
        return {}

    def hazards(self, program: Any, around: Surroundings | None = None) -> HazardReport:
        """Find accesses to memory whose order nothing guarantees. E679 without a checker.

        around  of a program that shares its memory
        """
        raise self._without("a checker of accesses to memory")

    def view(self, program: Any) -> ProgramView:
        """Take a program apart to look at it. E679 without a listing."""
        raise self._without("a listing of its programs")

    def seconds(self, simulator: Any) -> float:
        """Return about how long a host takes for one inference; 0 where that is not known."""
        return 0.0

    def _without(self, what: str) -> MizzenError:
        return fail(
            NOT_THERE,
            f"{type(self).__name__} must have {what}, and has none",
            help="ask whoever made this family of NPUs for one",
        )


def constant_of(model: Model, operator: Operator, index: int) -> bytes:
    """Return the bytes of a constant input of a compiled part. E120 if it is not a constant."""
    present = index < len(operator.inputs) and operator.inputs[index] >= 0
    data = model.main.tensors[operator.inputs[index]].data if present else None
    if data is None:
        raise fail(
            "E120",
            f"input {index} of a compiled part must be a constant",
            origin=model.origin(operator),
            help="the artifact is damaged; compile it again",
        )
    return data.tobytes()
