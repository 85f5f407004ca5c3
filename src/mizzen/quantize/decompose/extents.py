"""Extents that are known only when the program runs, such as that of a batch, as nodes.

PyTorch writes them as symbols. A program that is made anew must say where each comes from: it is
the extent of an input, or is computed from such.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import reduce
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.utils._pytree import tree_map

aten: Any = torch.ops.aten

STEPS = {
    "Add": "add",
    "Mul": "mul",
    "FloorDiv": "floordiv",
    "CleanDiv": "floordiv",
    "Mod": "mod",
    "PythonMod": "mod",
}
"""Python's operators on extents, by the names of PyTorch's symbolic expressions."""


def is_symbolic(shape: Iterable[Any]) -> bool:
    """Whether an extent among some is known only when the program runs."""
    return any(isinstance(extent, torch.SymInt) for extent in shape)


def with_nodes(graph: Graph, arguments: Any) -> Any:
    """Return arguments with a node for each symbolic extent among them, inserted where the graph
    inserts.
    """

    def node_of(argument: object) -> object:
        return _node(graph, argument) if isinstance(argument, torch.SymInt) else argument

    return tree_map(node_of, arguments)


def _node(graph: Graph, extent: int | torch.SymInt) -> Any:
    if isinstance(extent, int):
        return extent
    node = _of_input(graph, extent) or _computed(graph, extent)
    node.meta["val"] = extent
    return node


def _computed(graph: Graph, extent: torch.SymInt) -> Node:
    """Insert what computes an extent from those of inputs."""
    symbolic: Any = extent.node
    parts = [
        _node(graph, symbolic.shape_env.create_symintnode(part, hint=None))
        for part in symbolic.expr.args
    ]
    step: Any = getattr(operator, STEPS[type(symbolic.expr).__name__])
    return reduce(lambda one, other: graph.call_function(step, (one, other)), parts)


def _of_input(graph: Graph, extent: Any) -> Node | None:
    """Insert the extent of an input that is just that, if there is one."""
    for place in graph.nodes:
        if place.op != "placeholder":
            continue
        shape: tuple[Any, ...] = getattr(place.meta.get("val"), "shape", ())
        for axis, own in enumerate(shape):
            symbolic: Any = own if isinstance(own, torch.SymInt) else None
            if symbolic is not None and symbolic.node.expr == extent.node.expr:
                return graph.call_function(aten.sym_size.int, (place, axis))
    return None
