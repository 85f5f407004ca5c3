"""Values that must have the same scale: a union of everything that data movement connects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torch.fx import Node


@dataclass
class Clusters:
    """Disjoint sets of values, each a node that produces a tensor (or several, by getitem)."""

    _parents: dict[Node, Node] = field(default_factory=dict[Node, Node])

    def root(self, value: Node) -> Node:
        """Return the value that stands for the cluster of `value`."""
        parents = self._parents
        root = value
        while (parent := parents.get(root, root)) is not root:
            root = parent
        while (parent := parents.get(value, value)) is not root:
            parents[value], value = root, parent
        return root

    def join(self, one: Node, other: Node) -> None:
        """Make the clusters of two values one."""
        self._parents[self.root(other)] = self.root(one)

    def members(self, values: list[Node]) -> Iterator[list[Node]]:
        """Return the clusters of `values`, in the order in which each one's first value comes."""
        found: dict[Node, list[Node]] = {}
        for value in values:
            found.setdefault(self.root(value), []).append(value)
        yield from found.values()
