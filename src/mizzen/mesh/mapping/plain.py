"""Plain placements of the same tiles, to compare the searched one with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.mapping.candidates import Candidate
from mizzen.mesh.mapping.chip_net import ChipNet, TreeRouter
from mizzen.mesh.mapping.chip_trees import demands_of, shares_of
from mizzen.mesh.mapping.mapping import Mapping
from mizzen.mesh.mapping.options import MappingOptions, Placement
from mizzen.mesh.mapping.positions import fold_of
from mizzen.mesh.mapping.routes import snake
from mizzen.mesh.mapping.splits import Floats


def hilbert(x: int, y: int, side: int) -> int:
    """Return how far along the Hilbert curve of a square, a power of two wide, a place lies."""
    along, half = 0, side // 2
    while half:
        right, up = int(bool(x & half)), int(bool(y & half))
        along += half * half * ((3 * right) ^ up)
        if not up:
            if right:
                x, y = side - 1 - x, side - 1 - y
            x, y = y, x
        half //= 2
    return along


def in_plain_parts(
    machine: Machine, net: ChipNet, candidate: Candidate, options: MappingOptions
) -> Candidate:
    """Return a candidate with the same tiles in the order of a Hilbert curve, or anywhere."""
    if candidate.block is None:
        return candidate
    fold = fold_of(net, candidate.block)
    side = 1 << max(machine.chip_columns, machine.chip_rows).bit_length()
    chips = sorted(
        (fold.index(place) for place in range(len(candidate.chips))),
        key=lambda chip: hilbert(int(machine.chip_x[chip]), int(machine.chip_y[chip]), side),
    )
    each = min(len(elements) for elements in snake(machine))
    seats = sorted(range(len(candidate.parts)), key=lambda at: (candidate.template.depths[at], at))
    if options.placement is Placement.RANDOM:
        np.random.default_rng(options.seed).shuffle(seats)
    parts = [0] * len(seats)
    for place, seat in enumerate(seats):
        parts[seat] = place // each
    shares = shares_of(candidate.template, parts)
    router = TreeRouter(net, fold)
    trees = router.route(demands_of(shares, chips), 1)
    return replace(candidate, parts=parts, chips=chips, shares=shares, trees=trees)


def anywhere(elements: list[int], parts: list[int], seed: int) -> list[int]:
    """Return elements of seats, exchanged within each part by lot."""
    random = np.random.default_rng(seed)
    exchanged = list(elements)
    for part in sorted(set(parts)):
        seats = [seat for seat, own in enumerate(parts) if own == part]
        for seat, other in zip(seats, random.permutation(seats).tolist(), strict=True):
            exchanged[seat] = elements[other]
    return exchanged


def link_seconds(mapping: Mapping) -> Floats:
    """Return for each link the time that it needs for an image of every replica."""
    machine = mapping.machine
    loads = np.zeros(len(machine.link_source))
    for message in mapping.messages:
        loads[list(message.links)] += message.size_bytes
    return loads / machine.link_bytes_per_s
