"""Seats cut into parts, by METIS if it is there, none with more seats than a chip has room for."""

from __future__ import annotations

import itertools
from functools import cache
from importlib.util import find_spec

from mizzen.diagnostics import Diagnostic, Severity, warn
from mizzen.mesh.mapping.template import Template

WEIGHT_BYTES = 16
"""METIS sums weights in 32 bits: bytes count in units of so many."""

NO_METIS = Diagnostic(
    "W518",
    "networks are cut between chips by a simpler way, which may cost more: the package pymetis is "
    "not installed",
    Severity.WARNING,
    help="pip install pymetis, where it has a wheel",
)

Weights = list[dict[int, int]]


def seat_weights(template: Template) -> Weights:
    """Return for each seat the bytes between it and others, as a graph.

    A flow to several seats is a path through all of them: as many of its edges are cut as it has
    parts more than one, as long as those of a part follow each other.
    """
    weights: Weights = [{} for _ in template.kinds]
    for flow in template.flows:
        ends = [flow.source, *flow.targets]
        seats = list(dict.fromkeys(template.tiles[tile].element for tile in ends))
        for one, other in itertools.pairwise(seats):
            weights[one][other] = weights[one].get(other, 0) + flow.size_bytes
            weights[other][one] = weights[other].get(one, 0) + flow.size_bytes
    return weights


def cut_seats(template: Template, parts: int, capacity: int, seed: int) -> list[int]:
    """Return the part of each seat: little between parts, and at most `capacity` seats in each.

    METIS cuts where the package pymetis is installed, else parts are grown one after the other.
    """
    weights = seat_weights(template)
    if has_metis():
        return repaired(_by_metis(weights, parts, seed), weights, parts, capacity)
    _say_once()
    return repaired(grown(weights, parts), weights, parts, capacity)


def has_metis() -> bool:
    """Whether METIS is there: it has no wheel for Windows, nor for Linux on arm64."""
    return find_spec("pymetis") is not None


@cache
def _say_once() -> None:
    """Say once that METIS is missing."""
    warn([NO_METIS], above=1)


def _by_metis(weights: Weights, parts: int, seed: int) -> list[int]:
    import pymetis

    starts, ends, sizes = [0], list[int](), list[int]()
    for edges in weights:
        ends += edges.keys()
        sizes += [max(1, size // WEIGHT_BYTES) for size in edges.values()]
        starts.append(len(ends))
    options = pymetis.Options(seed=seed)
    graph = pymetis.CSRAdjacency(starts, ends)
    _, found = pymetis.part_graph(parts, adjacency=graph, eweights=sizes, options=options)
    return list(found)


def grown(weights: Weights, parts: int) -> list[int]:
    """Return parts of one size: each takes the seat that it has the most bytes in common with."""
    at = [parts] * len(weights)
    left = set(range(len(weights)))
    for part in range(parts):
        near: dict[int, int] = {}
        for _ in range(-(-len(left) // (parts - part))):
            seat = max(near, key=lambda each: (near[each], -each)) if near else min(left)
            near.pop(seat, None)
            left.discard(seat)
            at[seat] = part
            for other, size in weights[seat].items():
                if other in left:
                    near[other] = near.get(other, 0) + size
    return at


def repaired(cut: list[int], weights: Weights, parts: int, capacity: int) -> list[int]:
    """Move seats out of parts that have too many, those first that cost least."""
    at = list(cut)
    members: list[set[int]] = [set() for _ in range(parts)]
    for seat, part in enumerate(at):
        members[part].add(seat)
    for part in range(parts):
        while len(members[part]) > capacity:
            moves = [
                (
                    _bytes_to(weights[seat], at, part) - _bytes_to(weights[seat], at, other),
                    seat,
                    other,
                )
                for seat in members[part]
                for other in range(parts)
                if len(members[other]) < capacity
            ]
            _, seat, other = min(moves)
            members[part].remove(seat)
            members[other].add(seat)
            at[seat] = other
    return at


def _bytes_to(edges: dict[int, int], at: list[int], part: int) -> int:
    return sum(size for other, size in edges.items() if at[other] == part)
