"""Which operators of a model take the results of which, by their indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mizzen.frontends.tflite import Subgraph
from mizzen.graph import Graph, Operation

Edges = Mapping[int, tuple[int, ...]]
"""An operator to those whose results it takes, in ascending order."""


def edges_of_subgraph(subgraph: Subgraph) -> Edges:
    """Return the edges of a TFLite network; what goes through variables is not one."""
    made = {
        tensor: operator.index for operator in subgraph.operators for tensor in operator.outputs
    }
    return {
        operator.index: tuple(
            sorted({made[tensor] for tensor in operator.inputs if tensor in made})
        )
        for operator in subgraph.operators
    }


def edges_of_graph(graph: Graph, operator: Callable[[Operation], int | None]) -> Edges:
    """Return the edges of a graph whose operations are of operators, or of none (None).

    An edge goes through operations that are of none.
    """
    given: dict[Operation, frozenset[int]] = {}
    edges: dict[int, set[int]] = {}
    for operation in graph.sorted():
        makers = (value.producer for value in operation.operands)
        before = frozenset[int]().union(*(given[maker] for maker in makers if maker is not None))
        index = operator(operation)
        if index is not None:
            edges.setdefault(index, set()).update(before - {index})
        given[operation] = before if index is None else frozenset((index,))
    return {index: tuple(sorted(before)) for index, before in edges.items()}
