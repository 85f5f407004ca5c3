"""From which operator to which TensorFlow Lite Micro keeps tensors and kernels' memory.

Operators count on through the subgraphs that control flow calls, each at most once in order: a
buffer is there from the count of the first operator that makes it to that of the last one that
needs it. What nothing makes is there from before the start.

Ref: tflite-micro 90b983c, micro_allocation_info.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.model import ABSENT
from mizzen.frontends.tflite.subgraphs import called

Key = tuple[int, int]
"""A subgraph, and a tensor or an operator in it."""

UNKNOWN = -1


class Lifetimes:
    """Spans of tensors, and of operators with all that they call."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._first: dict[Key, int] = {}
        self._last: dict[Key, int] = {}
        self.operators: dict[Key, tuple[int, int]] = {}
        self._now = 0
        self._subgraph(0)

    def of_tensor(self, key: Key) -> tuple[int, int]:
        """Return when a tensor is there."""
        return self._first.get(key, UNKNOWN), self._last.get(key, UNKNOWN)

    @property
    def first_of_main(self) -> Mapping[int, int]:
        """Operators of the main subgraph by the count at which they start."""
        return {first: key[1] for key, (first, _) in self.operators.items() if key[0] == 0}

    def _subgraph(self, index: int) -> None:
        subgraph = self._model.subgraphs[index]
        self._use(index, subgraph.inputs, made=True)
        for operator in subgraph.operators:
            self._now += 1
            self._make(index, operator.outputs)
            start = self._now
            self._called(operator)
            self._use(index, (*operator.inputs, *operator.outputs), made=False)
            self.operators[index, operator.index] = start, self._now
        self._use(index, subgraph.outputs, made=True)

    def _called(self, operator: Operator) -> None:
        for index in called(operator):
            self._now += 1
            self._subgraph(index)

    def _make(self, subgraph: int, tensors: Iterable[int]) -> None:
        for tensor in tensors:
            self._first.setdefault((subgraph, tensor), self._now)

    def _use(self, subgraph: int, tensors: Iterable[int], *, made: bool) -> None:
        present = [tensor for tensor in tensors if tensor != ABSENT]
        if made:
            self._make(subgraph, present)
        for tensor in present:
            self._last[subgraph, tensor] = self._now
