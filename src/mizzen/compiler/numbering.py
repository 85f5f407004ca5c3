"""Number a network's operators for reports: those that compute, in their order.

A node's place in a program of a framework counts placeholders, and what only quantises. Reports,
and the commands of streams, name operators by their place among those that a user sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol, TypeGuard

from mizzen.compiler.codegen import RegionCode
from mizzen.compiler.placement import Placement
from mizzen.diagnostics import Origin
from mizzen.graph import Graph, Operation
from mizzen.ops.control_flow import Custom
from mizzen.partition import Partition


class Numbered(Protocol):
    """A network as a graph of groups, each of which is an operator of the user's."""

    @property
    def graph(self) -> Graph:
        """The graph."""
        ...

    @property
    def origins(self) -> Mapping[int, Origin]:
        """Group to the operator that it is named by."""
        ...

    @property
    def group_of_place(self) -> Mapping[int, int]:
        """The place by which an operation's origin names a node, to the node's group."""
        ...

    def is_edge(self, operation: Operation) -> TypeGuard[Custom]:
        """Whether an operation only brings numbers into the form that an NPU takes, or gives."""
        ...


def operator_numbers(network: Numbered, partition: Partition) -> dict[int, int]:
    """Return the number of each group that is an operator, by group, in their order."""
    edges = edges_of(network)
    groups = (group for group in sorted(partition.groups) if group not in edges)
    return {group: number for number, group in enumerate(groups)}


def numbered(network: Numbered, placed: Placement) -> Placement:
    """Return a placement whose streams name operators by their numbers."""
    numbers = operator_numbers(network, placed.partition)
    by_place = {
        place: numbers[group] for place, group in network.group_of_place.items() if group in numbers
    }
    code = {groups: _renamed(region, by_place) for groups, region in placed.code.items()}
    return replace(placed, code=code)


def _renamed(region: RegionCode, by_place: Mapping[int, int]) -> RegionCode:
    origins = {offset: _numbered(origin, by_place) for offset, origin in region.origins.items()}
    return replace(region, origins=origins)


def _numbered(origin: Origin, by_place: Mapping[int, int]) -> Origin:
    place = origin.operator
    return origin if place is None else replace(origin, operator=by_place.get(place))


def edges_of(network: Numbered) -> set[int]:
    """Return the groups that are edges alone."""
    members: dict[int, list[Operation]] = {}
    for operation in network.graph:
        if operation.group is not None:
            members.setdefault(operation.group, []).append(operation)
    return {group for group, operations in members.items() if all(map(network.is_edge, operations))}
