"""Random graphs of groups, some of which no NPU takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from mizzen.diagnostics import Reason
from mizzen.graph import DType, Graph, Operation, TensorType, Value
from mizzen.ops import Builder
from mizzen.partition import Partition, partition

MAP = TensorType((4,), DType.INT32)
KINDS = ("BITWISE_XOR", "MAXIMUM", "MINIMUM", "BITWISE_NOT", "CONSTANT")
"""None of them can overflow, however long a chain gets."""

RULE = Reason("odd", "its number is drawn")


@dataclass(frozen=True, eq=False)
class Drawn:
    """A graph, its groups in an order in which they can run, and those that no NPU takes.

    computing  those that compute on the CPU: next to them a region must be worth its transfers
    """

    graph: Graph
    groups: tuple[int, ...]
    illegal: frozenset[int]
    computing: frozenset[int]

    def placed(self) -> Partition:
        """Place the groups."""
        return partition(self.graph, self.legal, edge=lambda row: row.group not in self.computing)

    def legal(self, operation: Operation) -> Sequence[Reason]:
        """Return the reason of an illegal group's operations."""
        return (RULE,) if operation.group in self.illegal else ()


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    """Draw up to 12 groups of up to 3 operations, each of which takes any values before it."""
    graph = Graph()
    values = [graph.add_input(MAP) for _ in range(draw(st.integers(1, 2)))]
    count = draw(st.integers(1, 12))
    groups = tuple(draw(st.permutations(range(10, 10 + count))))
    for group in groups:
        b = Builder(graph, group=group)
        for _ in range(draw(st.integers(1, 3))):
            values.append(_operation(draw, b, values))
    unused = [value for value in values if value.producer is not None and not value.uses]
    graph.set_outputs([*unused, *draw(st.lists(st.sampled_from(values), max_size=2))])
    illegal = frozenset(draw(st.sets(st.sampled_from(groups))))
    # Almost no region is worth transfers here: mostly, let there be no need.
    computing = draw(st.sampled_from([frozenset[int](), frozenset[int](), frozenset(groups[:2])]))
    return Drawn(graph, groups, illegal, computing)


def _operation(draw: st.DrawFn, b: Builder, values: list[Value]) -> Value:
    # Late values are likelier: chains show more than fans from the inputs.
    first, second = (values[-1 - draw(st.integers(0, min(4, len(values) - 1)))] for _ in range(2))
    match draw(st.sampled_from(KINDS)):
        case "BITWISE_NOT":
            return b("BITWISE_NOT", first)
        case "CONSTANT":
            return b("BITWISE_XOR", first, b.constant([1, 2, 4, 8], DType.INT32))
        case kind:
            return b(kind, first, second)
