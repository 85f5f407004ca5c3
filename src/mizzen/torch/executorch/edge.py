"""Programs in ExecuTorch's edge dialect as programs of ATen operators, node by node.

An edge operator is an ATen operator that says which types it takes; some are of a library of
ExecuTorch's own, which speaks of the order of dimensions where ATen speaks of memory formats.

Ref: ExecuTorch, IR specification, edge dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mizzen.frontends.torch.int_lowering.int_lower import READ_STATE
from mizzen.frontends.torch.program import TorchProgram, functional, taken_apart

if TYPE_CHECKING:
    from torch.export import ExportedProgram

CONVERTED = "dim_order_ops::_to_dim_order_copy"
CLONED = "dim_order_ops::_clone_dim_order"
IN_ATEN = {
    CONVERTED: ("_to_copy", "default"),
    CLONED: ("clone", "default"),
}
"""Operators of ExecuTorch's own, and those of ATen that they stand for."""

ORDER = "dim_order"

EDGE_OPERATOR = "EdgeOpOverload"
"""The class of operators of the edge dialect; its name, so that none needs ExecuTorch."""


@dataclass(frozen=True, eq=False)
class Edge:
    """A program, read.

    program  of ATen operators
    of       a node of it to the node of the edge dialect that it stands for
    """

    program: TorchProgram
    of: Mapping[Any, Any]


def read_edge(exported: ExportedProgram, name: str, tensors: Mapping[str, Any]) -> Edge:
    """Take a program of the edge dialect, or of ATen, apart. E16x as `taken_apart`.

    tensors  parameters and buffers by their name, where the program itself only has made-up ones
    """
    nodes: dict[Any, Any] = {}

    def rewritten(graph: Any) -> Any:
        return _in_aten(graph, nodes)

    known: Any = copy(exported)
    known._state_dict = {
        key: _stand_in(tensors.get(key, value)) for key, value in exported.state_dict.items()
    }
    return Edge(taken_apart(known, name, rewritten), nodes)


def _stand_in(tensor: Any) -> Any:
    """Return a tensor that has numbers, ones for a made-up one: a scale may be one, and not 0."""
    import torch
    from torch._subclasses import FakeTensor

    if isinstance(tensor, FakeTensor):
        return torch.ones(tuple(tensor.shape), dtype=tensor.dtype)
    return tensor


def _in_aten(graph: Any, nodes: dict[Any, Any]) -> Any:
    import torch

    found: Any = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    for node in graph.nodes:
        made = found.node_copy(node, copies.__getitem__)
        made.name = node.name  # the program's tensors go by it
        copies[node] = made
        nodes[made] = node
        if node.op == "call_function":
            _rewrite(made)
    return found


def _rewrite(node: Any) -> None:
    import torch

    operator: Any = node.target
    if type(operator).__name__ == EDGE_OPERATOR:
        operator = operator._op
    schema = getattr(operator, "_schema", None)
    if schema is not None and schema.name in IN_ATEN:
        name, overload = IN_ATEN[schema.name]
        operator = getattr(getattr(torch.ops.aten, name), overload)
        node.kwargs = {key: value for key, value in node.kwargs.items() if key != ORDER}
    node.target = operator


def without_marks(exported: ExportedProgram) -> ExportedProgram:
    """Return a program whose state is read as it is; the quantiser marks where that happens."""
    marked = [node for node in exported.graph.nodes if str(node.target) == READ_STATE]
    if not marked:
        return exported
    program = functional(exported)
    for node in list(program.graph.nodes):
        if str(node.target) == READ_STATE:
            node.replace_all_uses_with(node.args[0])
            program.graph.erase_node(node)
    return program
