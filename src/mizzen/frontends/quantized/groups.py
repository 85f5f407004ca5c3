"""Numbers of computations, of which several become one."""

from __future__ import annotations

from collections.abc import Callable

from mizzen.graph import Graph


class Groups:
    """Which nodes are one computation: union-find over group numbers."""

    def __init__(self) -> None:
        self._parent: list[int] = []

    def new(self) -> int:
        """Start a group."""
        self._parent.append(len(self._parent))
        return len(self._parent) - 1

    def find(self, group: int) -> int:
        """Return the number of the group that `group` has become part of."""
        while self._parent[group] != group:
            self._parent[group] = self._parent[self._parent[group]]
            group = self._parent[group]
        return group

    def unite(self, one: int, other: int) -> None:
        """Make two groups one; the older number stays."""
        one, other = self.find(one), self.find(other)
        self._parent[max(one, other)] = min(one, other)

    def numbered(self, graph: Graph) -> Callable[[int], int | None]:
        """Number the groups of a graph by their first operation.

        Returns what says the new number of a group; None for one that has no operation.
        """
        numbers: dict[int, int] = {}
        for operation in graph.sorted():
            if operation.group is not None:
                root = self.find(operation.group)
                operation.group = numbers.setdefault(root, len(numbers))
        return lambda group: numbers.get(self.find(group))
