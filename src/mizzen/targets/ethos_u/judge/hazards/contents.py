"""Which bytes hold something: constants, inputs, and what operations have written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mizzen.targets.ethos_u.judge.hazards.findings import (
    BadAccess,
    Fault,
    MissingOutput,
    SpoiltInput,
    SpoiltOutput,
    span_of,
)
from mizzen.targets.ethos_u.judge.hazards.footprint import Footprint, run
from mizzen.targets.ethos_u.judge.hazards.intervals import Intervals, of_runs
from mizzen.targets.ethos_u.judge.hazards.maps import INTERNAL, Kind, MemoryBlock
from mizzen.targets.ethos_u.judge.hazards.operations import (
    TABLE_MEMORY_BYTES,
    Access,
    Kernel,
    Operation,
    Transfer,
)
from mizzen.targets.ethos_u.judge.hazards.outputs import Outputs
from mizzen.targets.ethos_u.judge.hazards.written import Written
from mizzen.targets.ethos_u.machine.config import Accelerator
from mizzen.targets.ethos_u.machine.program import Program, TensorAddress

Ranges = Sequence[tuple[int, int]]
"""First byte, and one past the last, of runs of bytes."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a program finds in memory that others use too, and what it has to leave there.

    held   bytes of each region that hold something, those of its inputs among them
    final  places, among the program's outputs, of those that nothing after it completes
    kept   places, among its inputs, of those that something reads after it: the bytes, in the
           input's region, that they have had from programs before; others complete the rest
    """

    held: Mapping[int, Ranges]
    final: frozenset[int]
    kept: Mapping[int, Ranges]


class Contents:
    """Written bytes by memory; goes through the operations in the stream's order.

    around  None for a program that is alone: it finds its inputs, and leaves all its outputs
    """

    def __init__(
        self, program: Program, accelerator: Accelerator, around: Surroundings | None = None
    ) -> None:
        self._sizes = {
            MemoryBlock(Kind.REGION, i): size for i, size in program.region_bytes.items()
        }
        for region, data in program.constants.items():
            self._sizes[MemoryBlock(Kind.REGION, region)] = len(data)
        kib = accelerator.shram_kib
        own = TABLE_MEMORY_BYTES if kib is None else kib * 1024 // accelerator.cores
        self._sizes[INTERNAL] = own
        self._written: defaultdict[MemoryBlock, Written] = defaultdict(Written)
        for region, data in program.constants.items():
            self._written[MemoryBlock(Kind.REGION, region)].add(run(0, len(data)))
        self._goes_on = False
        self._kept: list[tuple[TensorAddress, Intervals]] = []
        self._own: defaultdict[MemoryBlock, Written] = defaultdict(Written)
        self._outputs = program.outputs
        if around is not None:
            self._kept = [
                (program.inputs[place], of_runs(around.kept[place]))
                for place in sorted(around.kept)
            ]
            self._outputs = tuple(program.outputs[index] for index in sorted(around.final))
        self._lasting = Outputs(self._outputs)
        if around is None:
            for placement in program.inputs:
                place, bytes_ = _span(placement)
                self._written[place].add(bytes_)
            return
        for region, ranges in around.held.items():
            for start, end in ranges:
                self._written[MemoryBlock(Kind.REGION, region)].add(run(start, end - start))

    @property
    def written(self) -> Mapping[int, Ranges]:
        """The bytes of each region that something has written."""
        return _by_region(self._written)

    @property
    def own(self) -> Mapping[int, Ranges]:
        """The bytes of each region that the program itself has written."""
        return _by_region(self._own)

    def execute(self, operation: Operation) -> Iterator[BadAccess | SpoiltInput]:
        """Return the faults of an operation's own accesses, and note what it writes."""
        for access in (*operation.reads, *operation.writes):
            yield from self._outside(operation, access)
        for access in operation.writes:
            yield from self._spoilt(operation, access)
            self._own[access.place].add(access.bytes)
        self._lasting.execute(operation)
        if isinstance(operation, Transfer) and operation.moves is not None:
            self._move(operation, operation.moves)
            return
        if isinstance(operation, Kernel):
            if not self._goes_on:
                self._end_of_chain()
            self._goes_on = operation.goes_on
        for access in operation.reads:
            if missing := self._written[access.place].missing(access.bytes):
                span = span_of(access.place, missing)
                yield BadAccess(Fault.NEVER_WRITTEN, operation, access.what, span)
        if isinstance(operation, Kernel) and operation.scratch:
            own = [(item.start, item.end) for item in operation.scratch.grids]
            self._written[INTERNAL].remove(own)
        for access in operation.writes:
            self._written[access.place].add(access.bytes)

    def _end_of_chain(self) -> None:
        """What was in chain buffers is gone when the next operation does not go on with it."""
        for place in [place for place in self._written if place.kind is Kind.CHAIN]:
            del self._written[place]

    def _move(self, transfer: Transfer, distance: int) -> None:
        """Copy bytes; those that nothing has written stay so, and a copy is no use of them."""
        (source,), (destination,) = transfer.reads, transfer.writes
        missing = self._written[source.place].missing(source.bytes)
        self._written[destination.place].add(destination.bytes)
        self._written[destination.place].remove(missing.moved(distance).runs)

    def _outside(self, operation: Operation, access: Access) -> Iterator[BadAccess]:
        if access.place.kind is Kind.CHAIN or not access.bytes:
            return
        size = self._sizes.get(access.place)
        if access.bytes.first < 0 or access.bytes.end > (size or 0):
            beyond = access.bytes.intervals - run(0, size or 0).intervals
            span = span_of(access.place, beyond)
            yield BadAccess(Fault.OUTSIDE, operation, access.what, span, size)

    def _spoilt(self, operation: Operation, access: Access) -> Iterator[SpoiltInput]:
        for placement, kept in self._kept:
            place, whole = _span(placement)
            if place == access.place and access.bytes.touches(whole):
                spoilt = access.bytes.intervals & kept
                if spoilt:
                    yield SpoiltInput(
                        placement.name, operation, access.what, span_of(place, spoilt)
                    )

    def outputs(self) -> Iterator[MissingOutput | SpoiltOutput]:
        """Return the outputs that are not whole at the end of the stream."""
        for placement in self._outputs:
            place, needed = _span(placement)
            if missing := self._written[place].missing(needed):
                yield MissingOutput(placement.name, span_of(place, missing))
        yield from self._lasting.findings()


def _by_region(written: Mapping[MemoryBlock, Written]) -> Mapping[int, Ranges]:
    return {
        place.index: tuple(bytes_.runs)
        for place, held in written.items()
        if place.kind is Kind.REGION and (bytes_ := held.intervals)
    }


def _span(placement: TensorAddress) -> tuple[MemoryBlock, Footprint]:
    place = MemoryBlock(Kind.REGION, placement.region)
    return place, run(placement.offset, placement.size_bytes)
