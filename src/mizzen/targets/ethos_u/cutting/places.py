"""Where a stream may be cut: after which operations, so that no layer is in two parts.

A part takes along the transfers that run beside its last operation, so that they still do. Those
that start when it has ended, and those of lookup tables, are in the next one.

An operation cannot be parted from the next one where something stays inside the NPU for it: a
chain's feature map, or accumulators that go on (both of U85). Layers whose operations take turns,
as those of a cascade do, share a part. A lookup table is loaded again, but only from read-only
data, which still hold it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.judge.hazards.footprint import Footprint
from mizzen.targets.ethos_u.judge.hazards.maps import INTERNAL, region_block
from mizzen.targets.ethos_u.judge.hazards.operations import Transfer
from mizzen.targets.ethos_u.judge.hazards.registers import Registers
from mizzen.targets.ethos_u.judge.hazards.stream import Queue, Wait, steps
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex, accelerator_of


@dataclass(frozen=True, slots=True)
class Table:
    """A transfer into the lookup tables, by its place among the instructions.

    read_only  whether it brings read-only data
    """

    at: int
    read_only: bool


@dataclass(frozen=True, slots=True)
class Worked:
    """A kernel operation, by its place among the instructions.

    end        one past the last command that goes with it: of the last transfer that runs beside it
    layer      the operator of the network, or the command where nothing names one
    goes_on    whether its result stays inside the NPU for the next operation
    takes_over whether accumulators of the operation before are taken over
    tables     transfers that brought what it reads of the lookup tables
    """

    at: int
    end: int
    layer: Origin
    goes_on: bool
    takes_over: bool
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """The operations of a stream.

    kernels  those of the kernel queue, in order
    loads    places of transfers into the lookup tables
    """

    kernels: tuple[Worked, ...]
    loads: frozenset[int]


def work_of(program: Program) -> Work:
    """Return the operations of a stream. E5xx and E61x for a damaged stream."""
    places = {each.offset_words: place for place, each in enumerate(program.instructions)}
    accelerator = accelerator_of(program.hardware)
    registers, tables, kernels = Registers(), _Tables(), list[Worked]()
    at_work = False
    for step in steps(program, accelerator, registers):
        if isinstance(step, Wait):
            at_work = at_work and step != Wait(Queue.KERNELS, 0)
            continue
        assert step.origin.command is not None, "an operation has a place in the stream"
        at = places[step.origin.command]
        if isinstance(step, Transfer):
            tables.load(step, at)
            if at_work and not any(access.place == INTERNAL for access in step.writes):
                kernels[-1] = replace(kernels[-1], end=at + 1)
            continue
        over = accelerator.arch is Arch.U85 and _takes_over(registers)
        layer = _layer(step.origin, step.name)
        made = Worked(at, at + 1, layer, step.goes_on, over, tables.of(step.table))
        kernels.append(made)
        at_work = True
    return Work(tuple(kernels), frozenset(tables.loads))


def _layer(origin: Origin, command: str) -> Origin:
    """Return what all operations of a layer have in common."""
    named = replace(origin, command=None)
    return replace(origin, kind=command) if named == Origin(named.model) else named


def cuts(kernels: Sequence[Worked]) -> Iterator[int]:
    """Return before which operations, by their places among `kernels`, the stream may be cut."""
    together = {place: place for place in range(len(kernels))}
    for first, last in _together(kernels):
        together[first] = max(together[first], last)
    end = 0
    for place in range(1, len(kernels)):
        end = max(end, together[place - 1])
        if end < place:
            yield place


def _together(kernels: Sequence[Worked]) -> Iterator[tuple[int, int]]:
    """Return first and last place of operations that must be in one part."""
    first: dict[Origin, int] = {}
    for place, kernel in enumerate(kernels):
        yield first.setdefault(kernel.layer, place), place
        if kernel.goes_on:
            yield place, min(place + 1, len(kernels) - 1)
        if kernel.takes_over:
            yield max(0, place - 1), place
        for table in kernel.tables:
            if not table.read_only:
                yield sum(each.at < table.at for each in kernels), place


class _Tables:
    """Which transfer brought each byte of the lookup tables."""

    def __init__(self) -> None:
        self._brought: dict[int, Table] = {}
        self.loads: set[int] = set()

    def load(self, transfer: Transfer, at: int) -> None:
        """Note what a transfer brings."""
        constants = region_block(RegionIndex.READ_ONLY)
        read_only = all(access.place == constants for access in transfer.reads)
        for access in transfer.writes:
            if access.place == INTERNAL:
                self.loads.add(at)
                self._brought.update(dict.fromkeys(_bytes(access.bytes), Table(at, read_only)))

    def of(self, read: Footprint) -> tuple[Table, ...]:
        """Return the transfers that brought some bytes, in the stream's order."""
        brought = {self._brought[byte] for byte in _bytes(read) if byte in self._brought}
        return tuple(sorted(brought, key=lambda table: table.at))


def _bytes(footprint: Footprint) -> Iterator[int]:
    for first, end in footprint.intervals.runs:
        yield from range(first, end)


def _takes_over(registers: Registers) -> bool:
    return registers.choice("SET_ACC_FORMAT", "acc_input") == "KEEP"
