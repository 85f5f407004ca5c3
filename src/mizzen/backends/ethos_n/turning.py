"""TRANSPOSEs at the edges of a region: the host does them, the NPU has channels last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.graph import Graph, Value

Permutation = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Turns:
    """How inputs and outputs of a region are turned, in its order; None for those that are not.

    Dimension d of what the NPU takes is dimension `permutation[d]` of the region's input; dimension
    d of the region's output is dimension `permutation[d]` of what the NPU gives.
    """

    inputs: tuple[Permutation | None, ...]
    outputs: tuple[Permutation | None, ...]


NO_TURNS = Turns((), ())
"""Of a region without inputs and outputs."""


def take_turns(graph: Graph) -> Turns:
    """Take TRANSPOSEs of inputs and outputs out of a region's graph, and say which they were."""
    inputs = [_turned_input(graph, value) for value in tuple(graph.inputs)]
    graph.set_inputs([value for value, _ in inputs])
    outputs = [_turned_output(value) for value in graph.outputs]
    graph.set_outputs([value for value, _ in outputs])
    graph.erase_dead()
    return Turns(tuple(turn for _, turn in inputs), tuple(turn for _, turn in outputs))


def _turned_input(graph: Graph, value: Value) -> tuple[Value, Permutation | None]:
    """Give an input in the one order in which all its users want it."""
    users = tuple(value.uses)
    orders = {_order(user["perms"]) if user.kind == "TRANSPOSE" else None for user in users}
    order = orders.pop() if len(orders) == 1 else None
    if order is None or value in graph.outputs:
        return value, None
    turned = graph.add_input(users[0].result.type, value.name)
    for user in users:
        graph.replace(user.result, turned)
        graph.erase(user)
    return turned, order


def _turned_output(value: Value) -> tuple[Value, Permutation | None]:
    producer = value.producer
    if producer is None or producer.kind != "TRANSPOSE":
        return value, None
    return producer.operands[0], _order(producer["perms"])


def _order(axes: Sequence[int]) -> Permutation:
    return tuple(map(int, axes))
