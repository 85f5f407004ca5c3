"""Orders in which a graph would like to have its inputs, were moving them free."""

from __future__ import annotations

from mizzen.graph import Graph, Value
from mizzen.passes.layout.choice import choose
from mizzen.passes.layout.network import Edges, network
from mizzen.passes.layout.order import Order


def wanted_orders(graph: Graph) -> dict[Value, Order]:
    """Return, of the inputs whose users all want one order, that order."""
    found = network(graph, Edges.FREE)
    choose(found)
    wanted = {
        value: {use.wanted_now() for use in found.roots[value].uses} for value in graph.inputs
    }
    return {value: orders.pop() for value, orders in wanted.items() if len(orders) == 1}
