"""Two streams of one network with the same operations, one of which is right: where they part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mizzen.analysis.comparison.accusing import Accused
from mizzen.analysis.comparison.executing import END, Executed, Execution
from mizzen.artifact.interface import Array
from mizzen.artifact.program import TracedOperation
from mizzen.report.comparison import Evidence

SAME_PLAN = 0.5
"""Of the operations, whose settings are equal at least where one memory plan is of both."""


def are_twins(ours: Execution, right: Execution) -> bool:
    """Whether two streams have the same operations, up to where one stops, and one memory plan."""
    if ours.stopped is None and len(ours.operations) != len(right.operations):
        return False
    pairs = list(zip(ours.operations, right.operations, strict=False))
    if not pairs or any(one.trace.kind != other.trace.kind for one, other in pairs):
        return False
    same = sum(one.trace.settings == other.trace.settings for one, other in pairs)
    return same >= SAME_PLAN * len(pairs)


class Twins:
    """A stream beside one that is right."""

    def __init__(self, ours: Execution, right: Execution) -> None:
        self._ours = ours
        self._right = right

    def accused(self) -> Accused | None:
        """Return the first operation that is wrong; None if only what stops the stream is."""
        for executed in self._ours.operations:
            expected = self._right.by_index[executed.index]
            if executed.map is not None and not _same(executed.map, expected.map):
                return self._behind(executed, expected)
        if self._ours.stopped is not None:
            other = next(self._others(self._ours.stopped.index), None)
            return None if other is None else Accused(other, Evidence.PLACE)
        return self._of_operands(self._ours.end, self._right.end)

    def _behind(self, executed: Executed, right: Executed) -> Accused:
        """Return who is wrong where an operation's result is."""
        if executed.trace.settings != right.trace.settings:
            return Accused(executed, Evidence.RESULT)
        other = self._of_operands(executed.trace, right.trace)
        if other is None:
            loads = (each for each in self._others(executed.index) if each.map is None)
            load = next(loads, None)
            other = None if load is None else Accused(load, Evidence.PLACE)
        return other or Accused(executed, Evidence.RESULT)

    def _of_operands(self, ours: TracedOperation, right: TracedOperation) -> Accused | None:
        """Return who is wrong of those that made, or had to make, what an operation takes."""
        made, meant = set[int](), set[int]()
        for one, other in zip(ours.takes, right.takes, strict=False):
            if not _same(one.makers, other.makers) or not _same(one.places, other.places):
                made |= {int(maker) for maker in np.unique(one.makers)}
                meant |= {int(maker) for maker in np.unique(other.makers)}
        for other in self._others(ours.index):
            if other.index in made | meant:
                placed = other.index in meant
                return Accused(other, Evidence.PLACE if placed else Evidence.OVERWRITES)
        return None

    def _others(self, before: int) -> Iterator[Executed]:
        """Yield the operations before one whose settings are not as they must be."""
        for executed in self._ours.operations:
            if before != END and executed.index >= before:
                return
            if executed.trace.settings != self._right.by_index[executed.index].trace.settings:
                yield executed


def _same(ours: Array, right: Array | None) -> bool:
    return right is not None and ours.dtype == right.dtype and np.array_equal(ours, right)
