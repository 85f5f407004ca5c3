"""Chips and the links between them, and trees of links that share load evenly."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mizzen.mesh.machine.machine import Arrangement, LinkKind, Machine
from mizzen.mesh.mapping.splits import Floats

Step = tuple[int, int]
"""From a chip to a neighbour: the chip, and which of its sides."""


@dataclass(frozen=True, eq=False)
class ChipNet:
    """The live links between chips: `neighbours[chip]` has (chip, side, link) of each."""

    machine: Machine
    neighbours: tuple[tuple[tuple[int, int, int], ...], ...]
    sides: int

    @cached_property
    def link_at(self) -> dict[Step, int]:
        """The link at each side of each chip."""
        return {
            (chip, side): link
            for chip, neighbours in enumerate(self.neighbours)
            for _, side, link in neighbours
        }

    @cached_property
    def target_of(self) -> dict[Step, int]:
        """The chip behind each side of each chip."""
        return {
            (chip, side): other
            for chip, neighbours in enumerate(self.neighbours)
            for other, side, _ in neighbours
        }

    @property
    def is_torus(self) -> bool:
        """Whether every chip sees the same around it."""
        return self.machine.arrangement is Arrangement.HEX_TORUS

    def moved(self, chip: int, columns: int, rows: int) -> int:
        """Return the chip so many columns and rows on, around the torus."""
        machine = self.machine
        x = (int(machine.chip_x[chip]) + columns) % machine.chip_columns
        y = (int(machine.chip_y[chip]) + rows) % machine.chip_rows
        return self.chip_at[x, y]

    @cached_property
    def chip_at(self) -> dict[tuple[int, int], int]:
        """The chip at each place."""
        places = zip(self.machine.chip_x.tolist(), self.machine.chip_y.tolist(), strict=True)
        return {place: chip for chip, place in enumerate(places)}

    @cached_property
    def distances(self) -> Floats:
        """The fewest links between any two chips."""
        count = len(self.neighbours)
        distances = np.full((count, count), np.inf)
        for start in range(count):
            distances[start, start] = 0
            border = [start]
            while border:
                border = self._widened(distances[start], border)
        return distances

    def _widened(self, distances: Floats, border: list[int]) -> list[int]:
        wider: list[int] = []
        for chip in border:
            for other, _, _ in self.neighbours[chip]:
                if np.isinf(distances[other]):
                    distances[other] = distances[chip] + 1
                    wider.append(other)
        return wider


def chip_net(machine: Machine) -> ChipNet:
    """Return the chips of a machine and their links, dead ones and all."""
    neighbours: list[list[tuple[int, int, int]]] = [[] for _ in range(machine.chips)]
    sides: dict[tuple[int, int], int] = {}
    for link in np.flatnonzero(machine.link_kind == LinkKind.BETWEEN_CHIPS).tolist():
        source = int(machine.router_chip[machine.link_source[link]])
        target = int(machine.router_chip[machine.link_target[link]])
        x = int(machine.chip_x[target] - machine.chip_x[source]) % machine.chip_columns
        y = int(machine.chip_y[target] - machine.chip_y[source]) % machine.chip_rows
        side = sides.setdefault((x, y), len(sides))
        if target not in [other for other, _, _ in neighbours[source]]:
            neighbours[source].append((target, side, link))
    return ChipNet(machine, tuple(map(tuple, neighbours)), max(1, len(sides)))


@dataclass(frozen=True, slots=True)
class Demand:
    """Bytes that go from a chip to others for an image."""

    source: int
    targets: tuple[int, ...]
    size_bytes: int


class TreeRouter:
    """Finds trees for demands, each link once, so that the busiest link has little to carry.

    `fold` gives each chip the one that stands for it: on a torus the replicas of a network are
    translated copies, and what one loads its copies load as well.
    """

    def __init__(self, net: ChipNet, fold: list[int], closed: Iterable[int] = ()) -> None:
        self.net, self.fold = net, fold
        self.load = np.zeros((max(fold, default=0) + 1, net.sides))
        self.closed = set(closed)
        self.sharpness = 6.0

    @property
    def most(self) -> float:
        """Bytes of the busiest link."""
        return float(self.load.max())

    def route(self, demands: list[Demand], rounds: int) -> list[tuple[Step, ...]]:
        """Return a tree for each demand; those that are routed first are routed again."""
        trees: list[tuple[Step, ...]] = [() for _ in demands]
        order = sorted(range(len(demands)), key=lambda at: (-demands[at].size_bytes, at))
        best, least, before = trees, np.inf, self.load.copy()
        for _ in range(rounds):
            for at in order:
                self.add(trees[at], -demands[at].size_bytes)
                trees[at] = self.tree(demands[at].source, demands[at].targets)
                self.add(trees[at], demands[at].size_bytes)
            if self.most < least:
                best, least = list(trees), self.most
        self.load[:] = before
        for at, tree in enumerate(best):
            self.add(tree, demands[at].size_bytes)
        return best

    def add(self, tree: tuple[Step, ...], size_bytes: float) -> None:
        """Add bytes to the links of a tree."""
        for chip, side in tree:
            self.load[self.fold[chip], side] += size_bytes

    def tree(self, source: int, targets: tuple[int, ...]) -> tuple[Step, ...]:
        """Return a tree of links from a chip to others; nearest first, around busy links."""
        weights = np.exp(self.sharpness * self.load / max(self.most, 1.0)).tolist()
        inside, steps = {source}, list[Step]()
        left = set(targets) - inside
        while left:
            path = self._path(inside, left, weights)
            if not path:
                return ()
            for chip, side in path:
                inside.add(self.net.target_of[chip, side])
            steps += path
            left -= inside
        return tuple(steps)

    def _path(self, inside: set[int], left: set[int], weights: list[list[float]]) -> list[Step]:
        """Return the lightest path from a tree to the nearest of the chips left."""
        heap = [(0.0, chip) for chip in sorted(inside)]
        cost = dict.fromkeys(inside, 0.0)
        came: dict[int, Step] = {}
        while heap:
            far, chip = heapq.heappop(heap)
            if far > cost[chip]:
                continue
            if chip in left:
                return self._back(came, chip)
            of_chip = weights[self.fold[chip]]
            for other, side, link in self.net.neighbours[chip]:
                further = far + of_chip[side]
                if link not in self.closed and further < cost.get(other, np.inf):
                    cost[other] = further
                    came[other] = chip, side
                    heapq.heappush(heap, (further, other))
        return []

    def _back(self, came: dict[int, Step], chip: int) -> list[Step]:
        path: list[Step] = []
        while chip in came:
            path.append(came[chip])
            chip = came[chip][0]
        return path[::-1]
