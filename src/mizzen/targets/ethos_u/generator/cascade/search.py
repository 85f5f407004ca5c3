"""Which runs to do in stripes: those where most is alive, as short as reaches a goal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from mizzen.targets.ethos_u.generator.cascade.rewrite import cascaded, usual_layout
from mizzen.targets.ethos_u.generator.cascade.stripes import Run, divided, readings
from mizzen.targets.ethos_u.generator.operations import (
    Role,
    convolution_of,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.generator.operations import Sequence as Operations

STRIPES = (2, 3, 4, 6, 8, 12, 16, 24, 32)
LONGEST_BEFORE = 12
"""Operations before the one at the peak that a run may begin at."""
LONGEST_BEHIND = 16
GOALS = (0.8, 0.65, 0.5, 0.35, 0.25)
"""Shares of the peak without runs."""
STEP_CYCLES = 200
"""What an operation more costs, about: it fills and drains by itself."""
ROUNDS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Cascade:
    """A sequence with runs, and what its tensors take at the most at once, nearly."""

    sequence: Operations
    runs: tuple[Run, ...]
    live_bytes: int


def peak_bytes(sequence: Operations) -> int:
    """Return the bytes alive at the peak, nearly."""
    return _RunSearch(sequence, ()).peak(())


def cascades(sequence: Operations) -> tuple[Cascade, ...]:
    """Return sequences that compute the same with less alive at once, the cheapest first.

    A goal that is not reached gives what comes nearest to it.
    """
    search = _RunSearch(sequence, ())
    return _found(sequence, search, [int(goal * search.peak(())) for goal in GOALS])


def within(
    sequence: Operations, goals_bytes: Sequence[int], elsewhere: Collection[Role]
) -> tuple[Cascade, ...]:
    """Return sequences of which no more is alive at once than one goal or the other, or nearly.

    elsewhere  roles of tensors that lie in another memory; only what lies in this one counts
    """
    return _found(sequence, _RunSearch(sequence, elsewhere), goals_bytes)


def _found(
    sequence: Operations, search: _RunSearch, goals_bytes: Sequence[int]
) -> tuple[Cascade, ...]:
    by_runs: dict[tuple[Run, ...], Cascade] = {}
    for goal in goals_bytes:
        runs = search.runs(goal)
        if runs and runs not in by_runs:
            rewritten = sequence
            for run in sorted(runs, key=lambda each: -each.first):
                changed = cascaded(rewritten, run)
                assert changed is not None
                rewritten = changed
            by_runs[runs] = Cascade(rewritten, runs, search.peak(runs))
    return tuple(by_runs.values())


class _RunSearch:
    """Runs of one sequence, what they cost and what they keep alive."""

    def __init__(self, sequence: Operations, elsewhere: Collection[Role]) -> None:
        self._sequence = sequence
        self._spans = sequence.lifetimes()
        none = {Role.CONSTANT, *elsewhere}
        self._sizes = [
            0 if tensor.role in none else tensor.size_bytes(usual_layout(tensor))
            for tensor in sequence.tensors
        ]
        self._rows = dict(
            enumerate(readings(sequence, operation) for operation in sequence.operations)
        )
        self._by_rows = [reading is not None for reading in self._rows.values()]
        self._known: dict[Run, tuple[int, int] | None] = {}
        alive = _alive(self._sizes, self._spans, len(sequence.operations))
        self._live = [self._beside(index, live) for index, live in enumerate(alive)]

    def peak(self, runs: tuple[Run, ...]) -> int:
        """Return the bytes alive at the peak, 0 where there are only moves that vanished."""
        return max((live for live, _ in self._places(runs)), default=0)

    def runs(self, goal_bytes: int) -> tuple[Run, ...]:
        """Return runs with which no more than a goal is alive, or as little as is found."""
        runs: tuple[Run, ...] = ()
        for _ in range(ROUNDS):
            live, at = max(self._places(runs), default=(0, 0))
            if live <= goal_bytes:
                break
            best = self._best(at, live, goal_bytes, runs)
            if best is None:
                break
            kept = [run for run in runs if run.last < best.first or best.last < run.first]
            runs = tuple(sorted([*kept, best], key=lambda run: run.first))
        return runs

    def _places(self, runs: tuple[Run, ...]) -> Iterator[tuple[int, int]]:
        """Yield what is alive at each operation, and its index; a run is as one operation."""
        taken: set[int] = set()
        for run in runs:
            measured = self._measured(run)
            assert measured is not None
            yield measured[0], run.first
            taken.update(range(run.first, run.last + 1))
        for index, live in enumerate(self._live):
            if index not in taken:
                yield live, index

    def _best(self, at: int, live: int, goal: int, runs: tuple[Run, ...]) -> Run | None:
        """Return the run around an operation that costs least of those that reach the goal."""
        candidates: list[tuple[int, int, Run]] = []
        inside = next((each for each in runs if each.first <= at <= each.last), None)
        low, high = (inside.first, inside.last) if inside else (at, at)
        for first in range(low, max(-1, low - LONGEST_BEFORE), -1):
            if not self._by_rows[first]:
                break
            for last in range(high, min(len(self._by_rows), high + LONGEST_BEHIND)):
                if not self._by_rows[last]:
                    break
                others = [each for each in runs if each is not inside]
                if last == first or any(
                    each.first <= last and first <= each.last for each in others
                ):
                    continue
                for stripes in STRIPES:
                    run = Run(first, last, stripes)
                    measured = self._measured(run)
                    if measured is not None and measured[0] < live:
                        candidates.append((max(measured[0], goal), measured[1], run))
        return min(candidates, key=lambda candidate: candidate[:2])[2] if candidates else None

    def _measured(self, run: Run) -> tuple[int, int] | None:
        """Return the bytes alive in a run, and the cycles that it adds."""
        if run not in self._known:
            self._known[run] = self._measure(run)
        return self._known[run]

    def _measure(self, run: Run) -> tuple[int, int] | None:
        division = divided(self._sequence, run, self._spans, self._rows)
        if division is None:
            return None
        live = 0
        for tensor, (first, last) in enumerate(self._spans):
            if first <= run.last and last >= run.first and self._sizes[tensor]:
                height = self._sequence.tensors[tensor].shape[0]
                live += self._sizes[tensor] * division.rows_kept.get(tensor, height) // height
        cost = 0
        counts = Counter(step.operation for step in division.steps)
        for index in range(run.first, run.last + 1):
            more = counts[index] - 1
            convolution = convolution_of(self._sequence.operations[index])
            cost += more * (STEP_CYCLES + (convolution.weights.size if convolution else 0))
        return live, cost

    def _beside(self, index: int, live: int) -> int:
        """Return the bytes alive at an operation, its output over an input that ends there.

        live  with neither over the other
        """
        operation = self._sequence.operations[index]
        output = tensor_written(operation)
        ending = [
            self._sizes[tensor]
            for tensor in tensors_read(operation)
            if self._spans[tensor][1] == index
        ]
        if self._by_rows[index] and self._spans[output][0] == index:
            live -= min(self._sizes[output], max(ending, default=0))
        return live


def _alive(sizes: Sequence[int], spans: Sequence[tuple[int, int]], count: int) -> Iterator[int]:
    """Return the sum of what is alive at each of so many operations."""
    more = [0] * (count + 1)
    for size, (first, last) in zip(sizes, spans, strict=True):
        if first <= last:
            more[first] += size
            more[last + 1] -= size
    return accumulate(more[:count])
