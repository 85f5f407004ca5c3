"""The numbers of a PyTorch program's operators: those that the report lists, in their order.

A node's place in an exported program counts placeholders, and what only quantises. Reports, and the
commands of streams, name operators by their place among those that a user sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mizzen.compiler.codegen import RegionCode
from mizzen.compiler.placement import Placement
from mizzen.compiler.torch.placement import is_edge
from mizzen.diagnostics import Origin
from mizzen.frontends.torch.int_lowering.int_lower import Lowered
from mizzen.graph import Operation
from mizzen.partition import Partition


def operator_numbers(lowered: Lowered, partition: Partition) -> dict[int, int]:
    """Return the number of each group that is an operator, by group, in their order."""
    edges = _edges(lowered)
    groups = (group for group in sorted(partition.groups) if group not in edges)
    return {group: number for number, group in enumerate(groups)}


def numbered(lowered: Lowered, placed: Placement) -> Placement:
    """Return a placement whose streams name operators by their numbers."""
    numbers = operator_numbers(lowered, placed.partition)
    places = {node: place for place, node in enumerate(lowered.program.nodes)}
    by_place = {
        places[node]: numbers[group]
        for group, nodes in lowered.nodes.items()
        for node in nodes
        if group in numbers and node in places
    }
    code = {groups: _renamed(region, by_place) for groups, region in placed.code.items()}
    return replace(placed, code=code)


def _renamed(region: RegionCode, by_place: Mapping[int, int]) -> RegionCode:
    origins = {offset: _numbered(origin, by_place) for offset, origin in region.origins.items()}
    return replace(region, origins=origins)


def _numbered(origin: Origin, by_place: Mapping[int, int]) -> Origin:
    place = origin.operator
    return origin if place is None else replace(origin, operator=by_place.get(place))


def _edges(lowered: Lowered) -> set[int]:
    members: dict[int, list[Operation]] = {}
    for operation in lowered.graph:
        if operation.group is not None:
            members.setdefault(operation.group, []).append(operation)
    return {group for group, operations in members.items() if all(map(is_edge, operations))}
