"""Networks from quantised PyTorch programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mizzen.diagnostics import fail
from mizzen.graph import Graph, Operation
from mizzen.mesh.network.graphs import network_of_graph
from mizzen.mesh.network.network import Network
from mizzen.ops.limits import WindowLimits

if TYPE_CHECKING:
    from torch.export import ExportedProgram

ANY_WINDOW = WindowLimits(1 << 30, 1 << 30)
"""A mesh has no limits of windows."""


def network_of_exported(program: ExportedProgram, name: str) -> Network:
    """Return the layers of a quantised PyTorch program, from its first integers to its last.

    Inputs and outputs are integers as the program quantises them, in the program's own shapes
    (`Network.edges`). E16x for a program that cannot be lowered, E506 for an operator that has no
    integer form.
    """
    from mizzen.frontends.torch.int_lowering.int_lower import lower
    from mizzen.frontends.torch.narrowing import read

    graph = lower(read(program, name), ANY_WINDOW).graph
    _open_quantisation(graph)
    for operation in graph:
        if operation.kind == "CUSTOM":
            raise _without_form(operation)
    return network_of_graph(graph, name)


def _open_quantisation(graph: Graph) -> None:
    """Take inputs after their quantisation, and give outputs before theirs is undone."""
    for operation in graph.sorted():
        if operation.kind != "CUSTOM" or len(operation.operands) != 1:
            continue
        given, result = operation.operand, operation.results[0]
        if given in graph.inputs and len(given.uses) == 1 and result.dtype.is_integer:
            made = graph.add_input(result.type, given.name)
            graph.set_inputs([made if value is given else value for value in graph.inputs[:-1]])
            graph.replace(result, made)
            graph.erase(operation)
        elif result in graph.outputs and given.dtype.is_integer and given.producer is not None:
            graph.supersede(result, given)
            graph.erase(operation)


def _without_form(operation: Operation) -> Exception:
    return fail(
        "E506",
        f"an operator on a mesh must have an integer form, and {_kind(operation)} has none",
        origin=operation.origin,
        help="mizzen check says why, and what else the model may use",
    )


def _kind(operation: Operation) -> str:
    origin = operation.origin
    return origin.kind if origin is not None and origin.kind else "one of them"
