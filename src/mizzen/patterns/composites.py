"""Composites: operations that belong together, under the name of the pattern that found them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mizzen.graph import Graph, Operation, Value
from mizzen.patterns.match import Match, Matcher, Miss, Pattern, Reject, explain


@dataclass(frozen=True, slots=True)
class Composite:
    """Operations that are done as one.

    name        of the pattern
    match       what the pattern's nodes are
    operations  in the order of the graph, constants left out
    inputs      what they take from outside, constants included
    outputs     what is taken of them outside; the last operation's first
    """

    name: str
    match: Match
    operations: tuple[Operation, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


class Cover:
    """Groups operations of a graph by patterns so that no operation is in two composites.

    All of the graph is searched for a pattern before the next one has its turn; later operations
    come first, so that what may be left out at a pattern's end is not. Composites can be done one
    after the other: none needs, by whatever way, what another needs of it.
    """

    def __init__(self, graph: Graph, patterns: Sequence[Pattern]) -> None:
        self.graph = graph
        self.patterns = tuple(patterns)
        self.composites: list[Composite] = []
        self._of: dict[Operation, Composite] = {}
        self._order = {operation: place for place, operation in enumerate(graph.sorted())}
        guards = (self._is_free, self._returns_nothing)
        self._guarded = [replace(each, guards=(*each.guards, *guards)) for each in patterns]
        for pattern in self._guarded:
            self._search(pattern)
        self.composites.sort(key=lambda each: self._order[each.match.root])

    def composite_of(self, operation: Operation) -> Composite | None:
        """Return the composite that an operation is in, if it is in one."""
        return self._of.get(operation)

    def misses(self, operation: Operation) -> list[Miss]:
        """Say of every pattern that an operation could be the last of why it is not.

        What another composite has is a reason too.
        """
        candidates = Matcher(self._guarded).candidates(operation)
        explained = (explain(self.graph, pattern, operation) for pattern in candidates)
        return [miss for miss in explained if miss is not None]

    def _search(self, pattern: Pattern) -> None:
        matcher = Matcher([pattern])
        for operation in reversed(self._order):
            match = matcher.first(self.graph, operation)
            if match is not None:
                operations = tuple(sorted(match.operations, key=self._order.__getitem__))
                made = Composite(pattern.name, match, operations, match.inputs, match.outputs)
                self.composites.append(made)
                self._of.update(dict.fromkeys(operations, made))

    def _is_free(self, match: Match) -> Reject | None:
        """None of the operations is in another composite."""
        for operation in match.operations:
            other = self._of.get(operation)
            if other is not None:
                return Reject(f"must be in one composite, and is in {other.name}", operation)
        return None

    def _returns_nothing(self, match: Match) -> Reject | None:
        """Nothing that is made outside of a result inside is needed inside."""
        if not _gives_early(match):
            return None
        inside = set(match.operations)
        outside = [user for value in match.outputs for user in value.uses if user not in inside]
        seen = set(outside)
        while outside:
            for user in self._done_after(outside.pop()):
                if user in inside:
                    return Reject("must not need what is made of its own composite outside", user)
                if user not in seen:
                    seen.add(user)
                    outside.append(user)
        return None

    def _done_after(self, operation: Operation) -> list[Operation]:
        """Return the operations that take a result of one, or of the composite that it is in."""
        composite = self._of.get(operation)
        operations = (operation,) if composite is None else composite.operations
        results = [result for each in operations for result in each.results]
        return [user for result in results for user in result.uses]


def _gives_early(match: Match) -> bool:
    """Whether something outside takes what the last operation does not give.

    Where all that is taken needs all that is inside, doing it as one adds no way through it.
    """
    return any(value.producer is not match.root for value in match.outputs)
