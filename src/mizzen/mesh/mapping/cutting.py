"""Seats cut into parts by METIS, with the capacity of a chip held to the last element."""

from __future__ import annotations

import itertools

from mizzen.mesh.mapping.template import Template

WEIGHT_BYTES = 16
"""METIS sums weights in 32 bits: bytes count in units of so many."""

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


def cut_by_metis(template: Template, parts: int, capacity: int, seed: int) -> list[int]:
    """Return the part of each seat: little between parts, and at most `capacity` seats in each."""
    import pymetis

    weights = seat_weights(template)
    starts, ends, sizes = [0], list[int](), list[int]()
    for edges in weights:
        ends += edges.keys()
        sizes += [max(1, size // WEIGHT_BYTES) for size in edges.values()]
        starts.append(len(ends))
    options = pymetis.Options(seed=seed)
    graph = pymetis.CSRAdjacency(starts, ends)
    _, cut = pymetis.part_graph(parts, adjacency=graph, eweights=sizes, options=options)
    return repaired(list(cut), weights, parts, capacity)


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
