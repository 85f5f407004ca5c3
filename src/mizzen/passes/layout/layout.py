"""The pass that chooses orders and writes the graph in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mizzen.graph import Graph
from mizzen.passes.layout.choice import choose
from mizzen.passes.layout.network import Edges, network
from mizzen.passes.layout.rewrite import rewrite

VIEWS = ("RESHAPE", "TRANSPOSE")


@dataclass(frozen=True, slots=True)
class Layout:
    """Let each operation work in the order of elements that costs least movement in all."""

    edges: Edges = Edges.KEPT
    name: ClassVar[str] = "layout"

    def run(self, graph: Graph) -> bool:
        """Rewrite the graph; True if anything changed."""
        if not any(operation.kind in VIEWS for operation in graph):
            return False
        before = graph.version
        found = network(graph, self.edges)
        choose(found)
        rewrite(graph, found)
        return graph.version != before
