"""The first wrong operation of a stream, told by the network's tensors alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from mizzen.analysis.comparison.accusing import Accused, Reads, Trial
from mizzen.analysis.comparison.executing import END, Executed, Execution
from mizzen.analysis.comparison.recognising import Library, Reference
from mizzen.artifact.interface import Array
from mizzen.compiler.proof.difference import Difference, difference
from mizzen.compiler.proof.written import SAYS_SOMETHING


class Search:
    """Looks for the first wrong operation of one NPU operator.

    is_complete  whether the library has what every operation writes that is right
    """

    def __init__(self, execution: Execution, library: Library, *, is_complete: bool) -> None:
        self._execution = execution
        self._library = library
        self._is_complete = is_complete
        self._reads = Reads(execution)
        self._trial = Trial(execution, self._reads)

    def accused(self) -> Accused | None:
        """Return the operation that is wrong; None if only what stops the stream is."""
        suspects = self._suspects()
        if self._execution.stopped is not None and not self._is_complete:
            suspects = [each for each in suspects if self._fits(each)]
        if suspects:
            near = [each for each in suspects if self._is_near(each)]
            return self._trial.guilty((near or suspects)[0])
        if self._execution.stopped is not None:
            return None
        for read in self._reads.of(END):
            if not read.is_clean and (accused := self._trial.of_read(read)) is not None:
                return accused
        return None

    def _fits(self, executed: Executed) -> bool:
        assert executed.map is not None, "suspects write maps"
        return nearest(executed.map, self._unseen()) is not None

    def _is_near(self, executed: Executed) -> bool:
        assert executed.map is not None, "suspects write maps"
        found = nearest(executed.map, self._unseen())
        return found is not None and found[1].share <= SAYS_SOMETHING

    def _unseen(self) -> Iterator[Reference]:
        return (each for each in unseen(self._execution, self._library) if each.name)

    def _suspects(self) -> list[Executed]:
        """Return the operations whose results are in no tensor and on no way to one, the first
        ones: what they take is right."""
        unknown = {
            each.index: each
            for each in self._execution.operations
            if each.map is not None and not each.is_known
        }
        cleared = self._cleared(unknown)
        first: list[Executed] = []
        spoilt = set[int]()
        for each in self._execution.operations:
            is_wrong = each.index in unknown and each.index not in cleared
            if not self._reads.dependent[each.index].isdisjoint(spoilt):
                if is_wrong or not each.tells:
                    spoilt.add(each.index)
            elif is_wrong:
                first.append(each)
                spoilt.add(each.index)
        return first

    def _cleared(self, unknown: Mapping[int, Executed]) -> set[int]:
        """Return those that something which is right was computed from.

        What has most of a tensor is that tensor, and wrong, if only some that take it are right.
        """
        cleared, known = set[int](), self._execution.by_index
        for index in sorted(unknown, reverse=True):
            readers = self._reads.readers.get(index, set[int]()) - {END}
            right = {each for each in readers if each in cleared or known[each].tells}
            if right and (right == readers or not self._is_near(unknown[index])):
                cleared.add(index)
        return cleared


def unseen(execution: Execution, library: Library) -> Iterator[Reference]:
    """Return the tensors of which no operation writes anything."""
    seen = {id(part.reference) for each in execution.operations for part in each.parts}
    return (each for each in library.references if id(each) not in seen)


def nearest(map_: Array, references: Iterable[Reference]) -> tuple[Reference, Difference] | None:
    """Return the tensor of a map's size that it is most like, and how the two differ."""
    best: tuple[Reference, Difference] | None = None
    for reference in references:
        array = reference.array
        if array.size != map_.size or array.dtype.itemsize != map_.dtype.itemsize:
            continue
        shaped = np.ascontiguousarray(array).view(map_.dtype).reshape(map_.shape)
        differs = difference(map_, shaped)
        if differs is not None and (best is None or differs.share < best[1].share):
            best = reference, differs
    return best
