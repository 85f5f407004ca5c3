"""Ways to share a machine between replicas, each with the best template found for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mizzen.mesh.machine.machine import LinkKind, Machine
from mizzen.mesh.mapping.chip_net import ChipNet, Step, TreeRouter
from mizzen.mesh.mapping.chip_trees import Share, bytes_between, demands_of, shares_of
from mizzen.mesh.mapping.cutting import cut_seats
from mizzen.mesh.mapping.depths import Buffering
from mizzen.mesh.mapping.groups import Chips, Group, Groups, GroupSearch
from mizzen.mesh.mapping.options import MappingOptions, Placement
from mizzen.mesh.mapping.planning import plan_stages, settled
from mizzen.mesh.mapping.positions import Block, Positions, blocks_of, fold_of
from mizzen.mesh.mapping.routes import snake
from mizzen.mesh.mapping.splits import Split
from mizzen.mesh.mapping.stages import Problem, Stages, problem_of, stage_of
from mizzen.mesh.mapping.template import Template, template_of
from mizzen.mesh.network.network import Network

CROSSINGS = (2.0, 3.0, 4.0)
"""Links' worth of bytes that may come into a chip in a period: what is tried."""
STARTS = 3
"""Arrangements of the parts that positions are searched from."""
ROUNDS = 4
"""How often trees are routed again."""
LOST = 0.75
"""A chip with fewer than this share of the elements of another is left out."""

Tree = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """How many replicas there are: `chips` chips for each, or `sharing` replicas on each chip.

    `lost` chips have too few elements that work; what would lie on them is left out.
    """

    replicas: int
    chips: int
    sharing: int
    buffering: Buffering
    lost: int = 0

    @property
    def working(self) -> int:
        """Replicas without a lost chip, at least."""
        return max(0, self.replicas - self.lost * self.sharing)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A template for a way, its parts on chips, and the period that it is expected to keep.

    parts  of each seat
    chips  of each part, in the first replica
    trees  of each share of flows that leave their part
    gap    how far from the least traffic the splits may be, as a share of it
    tiles_s  of the slowest tile
    """

    way: Way
    template: Template
    period_s: float
    parts: list[int]
    chips: list[int]
    block: Block | None
    shares: list[Share]
    trees: list[Tree]
    gap: float = 0.0
    tiles_s: float = 0.0

    @property
    def images_per_s(self) -> float:
        """Images a second of all replicas."""
        return self.way.working / self.period_s


def ways_of(machine: Machine, net: ChipNet, replicas: int | None) -> list[tuple[int, int, int]]:
    """Return replicas, chips of each, and replicas on a chip, for a number or all that fit."""
    ways = [
        (machine.chips // chips, chips, 1)
        for chips in range(1, machine.chips + 1)
        if chips in (1, machine.chips) or blocks_of(net, chips)
        if machine.chips % chips == 0
    ]
    lost = lost_chips(machine)
    every = enumerate(snake(machine))
    fewest = min(len(elements) for chip, elements in every if chip not in lost)
    if len(machine.kinds) == 1:
        ways += [(machine.chips * count, 1, count) for count in range(2, fewest + 1)]
    return [way for way in ways if replicas in (None, way[0])]


def lost_chips(machine: Machine) -> set[int]:
    """Return the chips that have far fewer elements than others."""
    counts = [len(elements) for elements in snake(machine)]
    return {chip for chip, count in enumerate(counts) if count < LOST * max(counts)}


class CandidateSearch:
    """Finds the best template for a way."""

    def __init__(self, network: Network, machine: Machine, net: ChipNet, options: MappingOptions):
        self.network, self.machine, self.net, self.options = network, machine, net, options
        self.elements = snake(machine)
        self.lost = lost_chips(machine)
        between = machine.link_bytes_per_s[machine.link_kind == LinkKind.BETWEEN_CHIPS]
        self.link_rate = float(between.min()) if len(between) else np.inf

        self.whole = {buffering: self._whole(buffering) for buffering in Buffering}

    def _whole(self, buffering: Buffering) -> Problem:
        """Return the network for all elements."""
        counts = tuple(self._of_kind(kind, self.machine.chips) for kind in self._kinds)
        return problem_of(self.network, self.machine, counts, buffering, self.options.sum_split)

    @property
    def _kinds(self) -> range:
        return range(len(self.machine.kinds))

    def _of_kind(self, kind: int, chips: int) -> int:
        """Return how many elements of a kind any so many chips have."""
        counts = [
            int((self.machine.element_kind[elements] == kind).sum())
            for chip, elements in enumerate(self.elements)
            if chip not in self.lost
        ]
        return min(counts) * chips

    def problem(self, way: Way) -> Problem:
        """Return the network for the elements that each replica has."""
        each = tuple(self._of_kind(kind, way.chips) // way.sharing for kind in self._kinds)
        return self.whole[way.buffering].on(each)

    def bounds(self) -> list[tuple[float, Way]]:
        """Return all ways that may fit, with images a second if links were free; best first."""
        ways: list[tuple[float, Way]] = []
        for buffering in Buffering:
            for replicas, chips, sharing in ways_of(self.machine, self.net, self.options.replicas):
                way = Way(replicas, chips, sharing, buffering, len(self.lost))
                stages = plan_stages(self.problem(way)) if way.working else None
                if stages:
                    ways.append((way.working / stages.period_s, way))
                elif sharing > 1:
                    break
        return sorted(ways, key=lambda each: (-each[0], each[1].replicas, -each[1].buffering))

    def candidates(self, way: Way) -> Iterator[Candidate]:
        """Yield templates for a way, with their expected periods."""
        options = self.options
        if way.chips == 1:
            stages = plan_stages(self.problem(way))
            if stages:
                stages, gap = settled(self.problem(way), stages, options.solver, options.seed)
                yield replace(self._on_one_chip(way, stages), gap=gap)
            return
        problem = self.problem(way)
        elements = problem.elements[0] // way.chips
        search = GroupSearch(problem, Chips(way.chips, elements, self.link_rate))
        for crossing in CROSSINGS:
            groups = search.least(crossing)
            if groups:
                groups, gap = search.chosen(groups, options.solver, options.seed)
                yield replace(self._on_chips(way, problem, groups), gap=gap)

    def _template(self, stages: Stages, way: Way) -> Template:
        return template_of(self.network, stages, way.buffering, self.options.multicast)

    def _on_one_chip(self, way: Way, stages: Stages) -> Candidate:
        template = self._template(stages, way)
        parts = [0] * len(template.kinds)
        return Candidate(way, template, stages.period_s, parts, [0], None, [], [])

    def _on_chips(self, way: Way, problem: Problem, groups: Groups) -> Candidate:
        stages = [
            stage_of(problem.choices[layer], layer, pick)
            for group in groups.groups
            for layer, pick in zip(range(group.first, group.last), group.picks, strict=True)
        ]
        template = self._template(Stages(tuple(stages), groups.period_s), way)
        parts = seat_parts(problem, groups)
        if self.options.placement is Placement.METIS:
            parts = self._cut(template, way)
        return self._connected(way, template, groups.period_s, parts)

    def _cut(self, template: Template, way: Way) -> list[int]:
        capacity = self.problem(way).elements[0] // way.chips
        return cut_seats(template, way.chips, capacity, self.options.seed)

    def improved(self, candidate: Candidate) -> Candidate:
        """Return a candidate whose links decide with parts cut by METIS, if that is better."""
        if candidate.block is None or candidate.period_s <= candidate.tiles_s:
            return candidate
        parts = self._cut(candidate.template, candidate.way)
        other = self._connected(candidate.way, candidate.template, candidate.tiles_s, parts)
        return other if other.period_s < candidate.period_s else candidate

    def _connected(
        self, way: Way, template: Template, tiles_s: float, parts: list[int]
    ) -> Candidate:
        """Return the parts of a template on chips, with links between them."""
        shares = shares_of(template, parts)
        best, least = None, np.inf
        for block, chips in self._positions(way, shares):
            router = TreeRouter(self.net, fold_of(self.net, block))
            trees = router.route(demands_of(shares, chips), ROUNDS)
            if router.most < least:
                best, least = (chips, block, trees), router.most
        assert best is not None
        period = max(tiles_s, least / self.link_rate)
        return Candidate(
            way, template, period, parts, best[0], best[1], shares, best[2], tiles_s=tiles_s
        )

    def _positions(self, way: Way, shares: list[Share]) -> Iterator[tuple[Block, list[int]]]:
        between = bytes_between(shares, way.chips)
        costed: list[tuple[float, int, Block, list[int]]] = []
        for block in blocks_of(self.net, way.chips)[:2]:
            fold = fold_of(self.net, block)
            positions = Positions(self.net, fold, between)
            for start in range(STARTS):
                at = np.array([fold.index(part) for part in range(way.chips)])
                if start:
                    np.random.default_rng(self.options.seed + start).shuffle(at)
                at = positions.search(at, 20)
                costed.append((positions.cost(at), len(costed), block, at.tolist()))
        for _, _, block, at in sorted(costed)[:2]:
            yield block, at


def seat_parts(problem: Problem, groups: Groups) -> list[int]:
    """Return the part of each seat: which chip of which group."""
    parts: list[int] = []
    first = 0
    for group in groups.groups:
        for layer, pick in zip(range(group.first, group.last), group.picks, strict=True):
            split = problem.choices[layer].splits[pick]
            parts += [first + part for part in _tile_parts(group, split)]
        first += group.cut.chips
    return parts


def _tile_parts(group: Group, split: Split) -> list[int]:
    """Return the chip of the group of each tile, in the order of its seats."""
    cut = group.cut
    lines, columns = (split.parts[1], split.parts[2]) if len(split.parts) == 4 else (1, 1)
    channels = split.parts[-1] if split.parts else 1
    return [
        ((line * cut.rows // lines) * cut.columns + column * cut.columns // columns) * cut.channels
        + channel * cut.channels // channels
        for line in range(lines)
        for column in range(columns)
        for channel in range(channels)
        for _ in range(split.sums)
    ]
