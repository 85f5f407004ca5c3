"""Passes in a row, and what a pass is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mizzen.graph import Graph
from mizzen.ops.control_flow import CondIf, WhileLoop


@dataclass(frozen=True, slots=True)
class Pass:
    """One rewriting that keeps what a graph computes: edits it, and says if anything changed."""

    name: str
    run: Callable[[Graph], bool]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Passes in the order in which they run, over the graph and those inside its operations."""

    passes: tuple[Pass, ...]

    def run(self, graph: Graph) -> bool:
        """Run every pass in turn; True if anything changed.

        A pass that ran before is left out where no other has changed the graph since.
        """
        changed = False
        for inner in _graphs_within(graph):
            changed |= self.run(inner)
        left: dict[str, int] = {}
        for each in self.passes:
            if left.get(each.name) == graph.version:
                continue
            changed |= each.run(graph)
            left[each.name] = graph.version
        return changed

    def __str__(self) -> str:
        return ",".join(each.name for each in self.passes)


def _graphs_within(graph: Graph) -> Iterator[Graph]:
    for operation in graph:
        if isinstance(operation, CondIf):
            yield from (operation.then_graph, operation.else_graph)
        elif isinstance(operation, WhileLoop):
            yield from (operation.cond_graph, operation.body_graph)
