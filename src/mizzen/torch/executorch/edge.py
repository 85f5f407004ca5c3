"""Programs in ExecuTorch's edge dialect as programs of ATen operators, node by node.

An edge operator is an ATen operator that says which types it takes; some are of a library of
ExecuTorch's own, which speaks of the order of dimensions where ATen speaks of memory formats.

Ref: ExecuTorch, IR specification, edge dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mizzen.frontends.torch.int_lowering.int_context import is_dequantize
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

    aten: Any = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    for node in graph.nodes:
        made = aten.node_copy(node, copies.__getitem__)
        made.name = node.name  # the program's tensors go by it
        copies[node] = made
        nodes[made] = node
        if node.op == "call_function":
            _rewrite(made)
    return aten


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


def prepared(exported: ExportedProgram) -> ExportedProgram:
    """Return a program that ExecuTorch can cut: without the quantiser's marks of where state is
    read, which no runtime knows, and with a conversion to real numbers for each that takes them.
    """
    program = functional(exported)
    if program is exported:
        program = copy(exported)
        program._graph_module = deepcopy(exported.graph_module)  # pyright: ignore[reportPrivateUsage] no other way
    for node in list(program.graph.nodes):
        if str(node.target) == READ_STATE:
            node.replace_all_uses_with(node.args[0])
            program.graph.erase_node(node)
        elif is_dequantize(node):
            _one_each(program.graph, node)
    program.graph_module.recompile()
    return program


def _one_each(graph: Any, node: Any) -> None:
    for user in list(node.users)[1:]:
        with graph.inserting_after(node):
            again = graph.node_copy(node)
        user.replace_input_with(node, again)
