"""What of a placed network is integers alone: a graph of TOSA's operations, profile INT."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.compiler.numbering import Numbered, edges_of
from mizzen.diagnostics import Reason, fail
from mizzen.graph import Graph, Operation
from mizzen.partition import extract, partition


def integers_of(
    network: Numbered, form_of: Callable[[Operation], Sequence[Reason]], name: str
) -> Graph:
    """Return the part of a network between its first and last roundings.

    form_of  says why an operation has no form in integers; nothing if it has one

    E168 where an operator has no form.
    """
    placed = partition(network.graph, form_of, edge=network.is_edge)
    edges = edges_of(network)
    for group, placement in placed.groups.items():
        if placement.reasons and group not in edges:
            raise fail(
                "E168",
                f"every operator must have a TOSA form, and {network.origins[group].kind} has "
                f"none: {placement.reasons[0].message}",
                origin=network.origins[group],
                help=placement.reasons[0].help or "quantise the operators around it",
            )
    inner = [group for group in placed.groups if group not in edges]
    return extract(network.graph, inner, name).graph
