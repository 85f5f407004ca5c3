"""Which chains to do in stripes: those where most is alive, as short as reaches a goal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from mizzen.targets.ethos_u.generator.cascade.rewrite import cascaded, usual_layout
from mizzen.targets.ethos_u.generator.cascade.stripes import Chain, divided, readings
from mizzen.targets.ethos_u.generator.operations import (
    Convolution,
    Role,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.generator.operations import Sequence as Operations

STRIPES = (2, 3, 4, 6, 8, 12, 16, 24, 32)
LONGEST_BEFORE = 12
"""Operations before the one at the peak that a chain may begin at."""
LONGEST_BEHIND = 16
GOALS = (0.8, 0.65, 0.5, 0.35, 0.25)
"""Shares of the peak without chains."""
STEP_CYCLES = 200
"""What an operation more costs, about: it fills and drains by itself."""
ROUNDS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Cascade:
    """A sequence with chains, and what its tensors take at the most at once, nearly."""

    sequence: Operations
    chains: tuple[Chain, ...]
    live_bytes: int


def peak_bytes(sequence: Operations) -> int:
    """Return the bytes alive at the peak, nearly."""
    return _ChainSearch(sequence, ()).peak(())


def cascades(sequence: Operations) -> tuple[Cascade, ...]:
    """Return sequences that compute the same with less alive at once, the cheapest first.

    A goal that is not reached gives what comes nearest to it.
    """
    search = _ChainSearch(sequence, ())
    return _found(sequence, search, [int(goal * search.peak(())) for goal in GOALS])


def within(
    sequence: Operations, goals_bytes: Sequence[int], elsewhere: Collection[Role]
) -> tuple[Cascade, ...]:
    """Return sequences of which no more is alive at once than one goal or the other, or nearly.

    elsewhere  roles of tensors that lie in another memory; only what lies in this one counts
    """
    return _found(sequence, _ChainSearch(sequence, elsewhere), goals_bytes)


def _found(
    sequence: Operations, search: _ChainSearch, goals_bytes: Sequence[int]
) -> tuple[Cascade, ...]:
    by_chains: dict[tuple[Chain, ...], Cascade] = {}
    for goal in goals_bytes:
        chains = search.chains(goal)
        if chains and chains not in by_chains:
            rewritten = sequence
            for chain in sorted(chains, key=lambda each: -each.first):
                changed = cascaded(rewritten, chain)
                assert changed is not None
                rewritten = changed
            by_chains[chains] = Cascade(rewritten, chains, search.peak(chains))
    return tuple(by_chains.values())


class _ChainSearch:
    """Chains of one sequence, what they cost and what they keep alive."""

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
        self._known: dict[Chain, tuple[int, int] | None] = {}
        alive = _alive(self._sizes, self._spans, len(sequence.operations))
        self._live = [self._beside(index, live) for index, live in enumerate(alive)]

    def peak(self, chains: tuple[Chain, ...]) -> int:
        """Return the bytes alive at the peak, 0 where there are only moves that vanished."""
        return max((live for live, _ in self._places(chains)), default=0)

    def chains(self, goal_bytes: int) -> tuple[Chain, ...]:
        """Return chains with which no more than a goal is alive, or as little as is found."""
        chains: tuple[Chain, ...] = ()
        for _ in range(ROUNDS):
            live, at = max(self._places(chains), default=(0, 0))
            if live <= goal_bytes:
                break
            best = self._best(at, live, goal_bytes, chains)
            if best is None:
                break
            kept = [chain for chain in chains if chain.last < best.first or best.last < chain.first]
            chains = tuple(sorted([*kept, best], key=lambda chain: chain.first))
        return chains

    def _places(self, chains: tuple[Chain, ...]) -> Iterator[tuple[int, int]]:
        """Yield what is alive at each operation, and its index; a chain is as one operation."""
        taken: set[int] = set()
        for chain in chains:
            measured = self._measured(chain)
            assert measured is not None
            yield measured[0], chain.first
            taken.update(range(chain.first, chain.last + 1))
        for index, live in enumerate(self._live):
            if index not in taken:
                yield live, index

    def _best(self, at: int, live: int, goal: int, chains: tuple[Chain, ...]) -> Chain | None:
        """Return the chain around an operation that costs least of those that reach the goal."""
        candidates: list[tuple[int, int, Chain]] = []
        inside = next((each for each in chains if each.first <= at <= each.last), None)
        low, high = (inside.first, inside.last) if inside else (at, at)
        for first in range(low, max(-1, low - LONGEST_BEFORE), -1):
            if not self._by_rows[first]:
                break
            for last in range(high, min(len(self._by_rows), high + LONGEST_BEHIND)):
                if not self._by_rows[last]:
                    break
                others = [each for each in chains if each is not inside]
                if last == first or any(
                    each.first <= last and first <= each.last for each in others
                ):
                    continue
                for stripes in STRIPES:
                    chain = Chain(first, last, stripes)
                    measured = self._measured(chain)
                    if measured is not None and measured[0] < live:
                        candidates.append((max(measured[0], goal), measured[1], chain))
        return min(candidates, key=lambda candidate: candidate[:2])[2] if candidates else None

    def _measured(self, chain: Chain) -> tuple[int, int] | None:
        """Return the bytes alive in a chain, and the cycles that it adds."""
        if chain not in self._known:
            self._known[chain] = self._measure(chain)
        return self._known[chain]

    def _measure(self, chain: Chain) -> tuple[int, int] | None:
        division = divided(self._sequence, chain, self._spans, self._rows)
        if division is None:
            return None
        live = 0
        for tensor, (first, last) in enumerate(self._spans):
            if first <= chain.last and last >= chain.first and self._sizes[tensor]:
                height = self._sequence.tensors[tensor].shape[0]
                live += self._sizes[tensor] * division.rows_kept.get(tensor, height) // height
        cost = 0
        counts = Counter(step.operation for step in division.steps)
        for index in range(chain.first, chain.last + 1):
            more = counts[index] - 1
            operation = self._sequence.operations[index]
            cost += more * (
                STEP_CYCLES + (operation.weights.size if isinstance(operation, Convolution) else 0)
            )
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
