"""The pass that chooses orders and writes the graph in them; orders that a graph would like."""

from __future__ import annotations

from mizzen.graph import Graph, Value
from mizzen.ops.data_layout import Reshape, Transpose
from mizzen.passes.layout.choice import choose
from mizzen.passes.layout.network import Edges, network
from mizzen.passes.layout.order import Order
from mizzen.passes.layout.rewrite import rewrite
from mizzen.passes.pipeline import Pass

VIEWS = (Reshape, Transpose)


def layout(edges: Edges) -> Pass:
    """Return the pass that lets each operation work in the order that costs least in all."""

    def run(graph: Graph) -> bool:
        if not any(isinstance(operation, VIEWS) for operation in graph):
            return False
        before = graph.version
        found = network(graph, edges)
        choose(found)
        rewrite(graph, found)
        return graph.version != before

    return Pass("layout", run)


LAYOUT = layout(Edges.KEPT)


def wanted_orders(graph: Graph) -> dict[Value, Order]:
    """Return, of the inputs whose users all want one order, that order, were moving them free."""
    found = network(graph, Edges.FREE)
    choose(found)
    wanted = {
        value: {use.wanted_now() for use in found.roots[value].uses} for value in graph.inputs
    }
    return {value: orders.pop() for value, orders in wanted.items() if len(orders) == 1}
