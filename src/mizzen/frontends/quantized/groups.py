"""Numbers of computations, of which several become one."""

from __future__ import annotations


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
