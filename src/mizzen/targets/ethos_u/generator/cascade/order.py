"""The order of operations in which least is alive at the most, where branches leave a choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice

from mizzen.targets.ethos_u.generator.cascade.rewrite import usual_layout
from mizzen.targets.ethos_u.generator.operations import (
    Copy,
    Operation,
    Role,
    Sequence,
    tensor_written,
    tensors_read,
)

WIDTH = 64
"""States that are followed at once; of networks that never have more, the order is the best."""

READY = 32
"""Operations that may be done next, of which the first so many are tried."""
STEPS = 100_000
"""Operations that are tried in all; after them what is left keeps its order."""


@dataclass(frozen=True, slots=True)
class _State:
    """Operations that are done, as bits and in order, and what was alive at the most."""

    done: int
    order: tuple[int, ...]
    peak_bytes: int
    alive: frozenset[int]


def reordered(sequence: Sequence) -> Sequence:
    """Return a sequence that computes the same with less alive at the most, or the sequence.

    Operations that touch a tensor keep their order where one of them writes it, and those that
    stand beside each other and touch the same tensors stay there.
    """
    runs = list(_runs(sequence))
    search = _OrderSearch(replace(sequence, operations=tuple(run[0] for run in runs)))
    states, tried = [search.start()], 0
    for _ in runs:
        if tried > STEPS:
            break
        best: dict[int, _State] = {}
        for state in states:
            for following in islice(search.following(state), READY):
                tried += 1
                known = best.get(following.done)
                if known is None or search.rank(following) < search.rank(known):
                    best[following.done] = following
        states = sorted(best.values(), key=search.rank)[:WIDTH]
    searched, now = search.along(states[0], len(runs)), search.along(search.start(), len(runs))
    if searched.peak_bytes >= now.peak_bytes:
        return sequence
    ordered = (operation for index in searched.order for operation in runs[index])
    return replace(sequence, operations=tuple(ordered))


def _runs(sequence: Sequence) -> Iterator[list[Operation]]:
    """Yield the operations; those beside each other that touch the same tensors together."""
    for _, run in groupby(sequence.operations, _touched):
        yield list(run)


def _touched(operation: Operation) -> tuple[type[Operation], frozenset[int], int]:
    return type(operation), frozenset(tensors_read(operation)), tensor_written(operation)


class _OrderSearch:
    def __init__(self, sequence: Sequence) -> None:
        self._sequence = sequence
        self._sizes = [
            0 if each.role is Role.CONSTANT else each.size_bytes(usual_layout(each))
            for each in sequence.tensors
        ]
        self._kept = frozenset(sequence.outputs).union(
            index for index, each in enumerate(sequence.tensors) if each.role is Role.STATE
        )
        self._users = [0] * len(sequence.tensors)
        for index, operation in enumerate(sequence.operations):
            for tensor in (*tensors_read(operation), tensor_written(operation)):
                self._users[tensor] |= 1 << index
        self._before = _predecessors(sequence)

    def start(self) -> _State:
        alive = frozenset(self._sequence.inputs)
        return _State(0, (), sum(self._sizes[tensor] for tensor in alive), alive)

    def along(self, state: _State, count: int) -> _State:
        """Return the state after all of so many operations, what is left in the order it has."""
        for index in range(count):
            if not state.done >> index & 1:
                state = self._after(state, index)
        return state

    def following(self, state: _State) -> Iterator[_State]:
        for index, before in enumerate(self._before):
            if not state.done >> index & 1 and before & ~state.done == 0:
                yield self._after(state, index)

    def rank(self, state: _State) -> tuple[int, int, tuple[int, ...]]:
        """Return a key that is less the better a state is."""
        return state.peak_bytes, sum(self._sizes[tensor] for tensor in state.alive), state.order

    def _after(self, state: _State, index: int) -> _State:
        operation = self._sequence.operations[index]
        output, inputs = tensor_written(operation), set(tensors_read(operation))
        done = state.done | 1 << index
        alive = state.alive | inputs | {output}
        left = frozenset(
            tensor for tensor in alive if tensor in self._kept or self._users[tensor] & ~done
        )
        now = sum(self._sizes[tensor] for tensor in alive)
        if output not in state.alive and not isinstance(operation, Copy):
            ending = (self._sizes[tensor] for tensor in inputs - left)
            now -= min(self._sizes[output], max(ending, default=0))
        return _State(done, (*state.order, index), max(state.peak_bytes, now), left)


def _predecessors(sequence: Sequence) -> list[int]:
    """Return for each operation, as bits, those that must be done before it."""
    predecessors: list[int] = []
    readers: dict[int, int] = {}
    writers: dict[int, int] = {}
    for index, operation in enumerate(sequence.operations):
        output, before = tensor_written(operation), 0
        for tensor in tensors_read(operation):
            before |= writers.get(tensor, 0)
        before |= writers.get(output, 0) | readers.get(output, 0)
        predecessors.append(before)
        for tensor in tensors_read(operation):
            readers[tensor] = readers.get(tensor, 0) | 1 << index
        writers[output] = writers.get(output, 0) | 1 << index
    return predecessors
