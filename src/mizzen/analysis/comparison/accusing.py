"""Which operation of a stream has the wrong registers, of those that have to do with what is wrong.

An operation whose result is wrong though it reads what it should is the one. Where it reads what
nobody wrote for it, either it looks in the wrong place, or who should have written there did not,
or a third wrote over it: what other operations have to do with these places decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from mizzen.analysis.comparison.executing import END, Executed, Execution
from mizzen.analysis.comparison.recognising import Part, Reference
from mizzen.artifact.interface import Array
from mizzen.artifact.program import NOBODY, Extent, Taken, TracedOperation

ALIGNMENT_BYTES = 16
"""Feature maps begin at such addresses, and memory plans go on from there."""


class Evidence(Enum):
    """What says that an operation is wrong."""

    RESULT = "what it writes is not what it must be"
    READS = "it reads what was not written for it"
    PLACE = "what it writes is right, and lies where nothing reads it"
    OVERWRITES = "it writes over what others read after it"
    FAULT = "the stream stops there"


@dataclass(frozen=True, slots=True)
class Accused:
    """An operation that is wrong, and why."""

    executed: Executed
    evidence: Evidence


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """An operand of an operation, or an output that the end of the program takes.

    makers   those of its bytes, of the most first
    tensor   the network's tensor that it is of; None for what is in no tensor
    is_clean whether it is all of one tensor, in its order
    """

    reader: TracedOperation
    taken: Taken
    makers: tuple[int, ...]
    tensor: Reference | None
    is_clean: bool


class Reads:
    """What operations take, and who made it."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        traces = [*(each.trace for each in execution.operations), execution.end]
        self.all = [self._read(trace, taken) for trace in traces for taken in trace.takes]
        self.dependent = {
            trace.index: {maker for taken in trace.takes for maker in np.unique(taken.makers)}
            | set(trace.passed)
            for trace in traces
        }

    def of(self, index: int) -> list[Read]:
        """Return the operands of an operation."""
        return [read for read in self.all if read.reader.index == index]

    @cached_property
    def readers(self) -> dict[int, set[int]]:
        """The operations that take what an operation writes."""
        readers: dict[int, set[int]] = {}
        for reader, makers in self.dependent.items():
            for maker in makers:
                readers.setdefault(int(maker), set()).add(reader)
        return readers

    def _read(self, reader: TracedOperation, taken: Taken) -> Read:
        makers, counts = np.unique(taken.makers, return_counts=True)
        ordered = tuple(int(makers[place]) for place in np.argsort(-counts, kind="stable"))
        tensor, clean = self._tensor(taken, ordered)
        return Read(reader, taken, ordered, tensor, clean)

    def _tensor(self, taken: Taken, makers: Sequence[int]) -> tuple[Reference | None, bool]:
        """Return the tensor that an operand is of, and whether it is so in its order."""
        if NOBODY in makers:
            known = [maker for maker in makers if maker != NOBODY]
            return (self._tensor(taken, known)[0] if known else None), False
        parts = [self.execution.part_of(maker) for maker in makers]
        if len(makers) == 1 and not parts[0]:
            return None, _is_affine(taken.places)
        first = parts[0]
        for part in first:
            others = [_of(part.reference, each) for each in parts]
            if all(other is not None for other in others):
                placed = self._placed(taken, makers, others)
                if placed is None or _is_affine(placed):
                    return part.reference, True
        return (first[0].reference if first else None), False

    def _placed(
        self, taken: Taken, makers: Sequence[int], parts: Sequence[Part | None]
    ) -> Array | None:
        """Return the place of each element of an operand in the tensor that it is of."""
        places = np.zeros(taken.places.shape, np.int64)
        for maker, part in zip(makers, parts, strict=True):
            assert part is not None, "all makers have one"
            item = part.reference.array.dtype.itemsize
            chosen = taken.makers == maker
            at = taken.places[chosen] // item
            flat = part.places.reshape(-1)
            if len(at) and at.max() >= len(flat):
                return None
            places[chosen] = flat[at]
        return places


def _of(reference: Reference, parts: Sequence[Part]) -> Part | None:
    return next((part for part in parts if part.reference is reference), None)


def _is_affine(places: Array) -> bool:
    """Whether places go on by the same step along each axis."""
    return all(
        len(np.unique(np.diff(places, axis=axis))) <= 1
        for axis in range(places.ndim)
        if places.shape[axis] > 1
    )


class Trial:
    """Says who is wrong where an operation reads what was not written for it."""

    def __init__(self, execution: Execution, reads: Reads) -> None:
        self.execution = execution
        self.reads = reads
        self.known = execution.by_index

    def guilty(self, executed: Executed) -> Accused:
        """Return who is wrong where an operation's result is."""
        dirty = [read for read in self.reads.of(executed.index) if not read.is_clean]
        for read in dirty:
            accused = self.of_read(read)
            if accused is not None and accused.executed is not executed:
                return accused
        return Accused(executed, Evidence.READS if dirty else Evidence.RESULT)

    def of_read(self, read: Read) -> Accused | None:
        """Return who is wrong where something else is read than should be."""
        reader = self.known.get(read.reader.index)
        suspects = list(self._suspects(read))
        marks = [(self._writes_well(each, read), each) for each in suspects]
        if reader is not None:
            marks.append((self._reads_well(read), reader))
        if not marks:
            return None
        worst = min(mark for mark, _ in marks)
        accused = next(each for mark, each in marks if mark == worst)
        if accused is reader:
            return Accused(accused, Evidence.READS)
        is_foreign = read.tensor is not None and _of(read.tensor, accused.parts) is None
        return Accused(accused, Evidence.OVERWRITES if is_foreign else Evidence.PLACE)

    def _suspects(self, read: Read) -> Iterator[Executed]:
        """Yield who may have written wrongly: the makers, else who wrote what nobody reads."""
        makers = [self.known[maker] for maker in read.makers if maker in self.known]
        yield from (maker for maker in makers if maker.is_known)
        if read.tensor is not None and any(_of(read.tensor, each.parts) for each in makers):
            return
        before = [
            each
            for each in self.execution.operations
            if read.reader.index == END or each.index < read.reader.index
        ]
        lost = [each for each in before if self._is_lost(each) and each not in makers]
        yield from reversed(lost)

    def _is_lost(self, executed: Executed) -> bool:
        return executed.is_known and not self.reads.readers.get(executed.index)

    def _writes_well(self, executed: Executed, read: Read) -> int:
        """Return how much says that an operation writes where it should."""
        own = [other for other in self.reads.all if other is not read]
        readers = [other for other in own if executed.index in other.makers]
        victims = [
            other
            for other in readers
            if not other.is_clean
            and other.tensor is not None
            and _of(other.tensor, executed.parts) is None
        ]
        well = any(other.is_clean for other in readers)
        foreign = read.tensor is not None and _of(read.tensor, executed.parts) is None
        extent = executed.trace.gives
        mark = 4 * well - 4 * bool(victims) - (2 if foreign and not well else 0)
        return mark + (0 if extent is None else self._plausible(extent, executed.index, -2))

    def _reads_well(self, read: Read) -> int:
        """Return how much says that an operation reads where it should."""
        extent = read.taken.extent
        if extent is None:
            return 0
        index = read.reader.index
        same = [
            other
            for other in self.reads.all
            if other.taken.extent is not None
            and other.reader.index != index
            and (other.taken.extent.region, other.taken.extent.start)
            == (extent.region, extent.start)
            and (other.tensor is read.tensor)
        ]
        return 4 * bool(same) + self._plausible(extent, index, -2)

    def _plausible(self, extent: Extent, index: int, besides: int) -> int:
        """Return how much of a place is as places of a memory plan are."""
        others = [
            other
            for other_index, other in self._extents
            if other_index not in (index, besides) and other.region == extent.region
        ]
        starts, stops = {each.start for each in others}, {_aligned(each.stop) for each in others}
        return (
            extent.is_dense
            + (extent.start % ALIGNMENT_BYTES == 0)
            + (extent.start in starts)
            + (extent.start in stops or extent.start == 0)
            + (_aligned(extent.stop) in starts or _aligned(extent.stop) in stops)
        )

    @cached_property
    def _extents(self) -> list[tuple[int, Extent]]:
        extents: list[tuple[int, Extent]] = []
        for each in self.execution.operations:
            if each.trace.gives is not None:
                extents.append((each.index, each.trace.gives))
            extents += [
                (each.index, taken.extent) for taken in each.trace.takes if taken.extent is not None
            ]
        return extents


def _aligned(address: int) -> int:
    return -(-address // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
