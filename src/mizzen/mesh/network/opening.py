"""Graphs of integers out of graphs whose edges turn a user's numbers into integers and back."""

from __future__ import annotations

from collections.abc import Iterable

from mizzen.diagnostics import fail
from mizzen.graph import Graph, Operation


def open_quantisation(graph: Graph) -> None:
    """Take inputs after their quantisation, and give outputs before theirs is undone.

    E506 for an operator that is left and has no integer form.
    """
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
    require_form(operation for operation in graph if operation.kind == "CUSTOM")


def require_form(operations: Iterable[Operation]) -> None:
    """Refuse operations that have no integer form, of which the first is named: E506."""
    for operation in operations:
        raise _without_form(operation)


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
