"""Which operation of a stream has the wrong registers, of those that have to do with what is wrong.

An operation whose result is wrong though it reads what it should is the one. Where it reads what
nobody wrote for it, either it looks in the wrong place, or who should have written there did not,
or a third wrote over it: what other operations have to do with these places decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mizzen.analysis.comparison.executing import END, Executed, Execution
from mizzen.analysis.comparison.recognising import Part, Reference
from mizzen.artifact.interface import Array
from mizzen.artifact.program import INPUT, NOBODY, Extent, Taken, TracedOperation
from mizzen.report.comparison import Evidence

ALIGNMENT_BYTES = 16
"""Feature maps begin at such addresses, and memory plans go on from there."""


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
        parts = {maker: self.execution.part_of(maker) for maker in makers}
        nobody = {each for each in makers if each == NOBODY or (each <= INPUT and not parts[each])}
        if nobody:
            known = [maker for maker in makers if maker not in nobody]
            return (self._tensor(taken, known)[0] if known else None), False
        first = parts[makers[0]]
        if len(makers) == 1 and not first:
            return None, _is_affine(taken.places)
        for part in first:
            others = [_of(part.reference, parts[each]) for each in makers]
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
        odd = self._odd_one(read)
        if odd is not None:
            return Accused(odd, Evidence.PLACE)
        writer = self._writer(read)
        if writer is None:
            return None if reader is None else Accused(reader, Evidence.READS)
        over = next(self._over(read, writer), None)
        if over is not None:
            return Accused(over, Evidence.OVERWRITES)
        if reader is None or self._writes_worse(writer, read):
            return Accused(writer, Evidence.PLACE)
        return Accused(reader, Evidence.READS)

    def _odd_one(self, read: Read) -> Executed | None:
        """Return who writes its part of a tensor elsewhere than others, who fit the reader."""
        tensor, taken = read.tensor, read.taken
        if tensor is None or taken.places.size != tensor.array[0].size:
            return None
        wanted = np.arange(taken.places.size, dtype=np.int64).reshape(taken.places.shape)
        fits: dict[int, bool] = {}
        for maker in read.makers:
            part = _of(tensor, self.execution.part_of(maker))
            if part is not None:
                chosen = taken.makers == maker
                at = taken.places[chosen] // tensor.array.dtype.itemsize
                flat = part.places.reshape(-1)
                fits[maker] = bool(
                    (flat[at[at < len(flat)]] == wanted[chosen][at < len(flat)]).all()
                )
        odd = [maker for maker, fit in fits.items() if not fit and maker in self.known]
        return self.known[odd[0]] if odd and any(fits.values()) else None

    def _writer(self, read: Read) -> Executed | None:
        """Return who wrote what should be read: of the makers, else of whom nobody reads."""
        makers = [self.known[maker] for maker in sorted(read.makers) if maker in self.known]
        extent = read.taken.extent
        for maker in reversed(makers):
            gives = maker.trace.gives
            if extent is not None and gives is not None and _start(extent) == _start(gives):
                return maker
        lost = [
            each
            for each in self.execution.operations
            if each.is_known
            and not self.reads.readers.get(each.index)
            and (read.reader.index == END or each.index < read.reader.index)
        ]
        if lost:
            return lost[-1]
        if read.reader.index == END:
            return next((self.known[each] for each in read.makers if each in self.known), None)
        return makers[-1] if makers else None

    def _over(self, read: Read, writer: Executed) -> Iterator[Executed]:
        """Yield who wrote over it after its writer, and is read nowhere as it should be."""
        for maker in read.makers:
            if maker <= writer.index or maker not in self.known:
                continue
            other = self.known[maker]
            if any(_of(part.reference, other.parts) for part in writer.parts):
                continue
            if not any(each.is_clean for each in self._readers(other, read)):
                yield other

    def _readers(self, executed: Executed, besides: Read) -> list[Read]:
        """Return what else takes what an operation writes."""
        return [
            other
            for other in self.reads.all
            if other is not besides and executed.index in other.makers
        ]

    def _writes_worse(self, writer: Executed, read: Read) -> bool:
        """Whether it is the writer that has a wrong place, and not the reader."""
        others = self._readers(writer, read)
        if any(other.is_clean for other in others):
            return False
        if any(other.tensor is not None and not _of(other.tensor, writer.parts)
               for other in others):  # fmt: skip
            return True
        gives, takes = writer.trace.gives, read.taken.extent
        if gives is None or takes is None:
            return False
        planned = self.execution.places
        if (_start(gives) in planned) != (_start(takes) in planned):
            return _start(takes) in planned
        if any(
            (other.taken.extent, other.makers) == (takes, read.makers)
            for other in self.reads.all
            if other.reader is not read.reader
        ):
            return True
        if _start(gives) == _start(takes):
            return not gives.is_dense and takes.is_dense
        index = read.reader.index
        return self._plausible(gives, writer.index, index) < self._plausible(
            takes, index, writer.index
        )

    def _plausible(self, extent: Extent, index: int, besides: int) -> int:
        """Return how much of a place is as places of a memory plan are."""
        others = [
            other
            for other_index, other in self._extents
            if other_index not in (index, besides) and other.region == extent.region
        ]
        starts, stops = {each.start for each in others}, {_aligned(each.high) for each in others}
        return (
            extent.is_dense
            + (extent.start % ALIGNMENT_BYTES == 0)
            + (extent.start in starts)
            + (extent.start in stops or extent.start == 0)
            + (_aligned(extent.high) in starts or _aligned(extent.high) in stops)
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


def _start(extent: Extent) -> tuple[int, int]:
    return extent.region, extent.start


def _aligned(address: int) -> int:
    return -(-address // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
