"""Links of a message: along rows, then columns of each chip, around what is dead or missing."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mizzen.diagnostics import fail
from mizzen.mesh.machine.machine import LinkKind, Machine
from mizzen.mesh.mapping.chip_net import ChipNet, Step

Hop = tuple[int, int]
"""The router before, and the link from it."""


class Routes:
    """Trees of links from routers to others; those of a router are found once."""

    def __init__(self, machine: Machine, net: ChipNet) -> None:
        self.machine, self.net = machine, net
        self.chip: list[int] = machine.router_chip.tolist()
        self.x: list[int] = machine.router_x.tolist()
        self.y: list[int] = machine.router_y.tolist()
        self.source: list[int] = machine.link_source.tolist()
        self.target: list[int] = machine.link_target.tolist()
        self.leaving: list[list[Hop]] = [[] for _ in self.chip]
        live = (machine.link_kind == LinkKind.ON_CHIP) & ~machine.link_dead
        for link in np.flatnonzero(live).tolist():
            self.leaving[self.source[link]].append((self.target[link], link))
        self.of_chip: list[list[int]] = [[] for _ in range(machine.chips)]
        for router, chip in enumerate(self.chip):
            self.of_chip[chip].append(router)
        ends = zip(self.source, self.target, strict=True)
        self.by_ends = {pair: link for link, pair in enumerate(ends)}
        self.trees: dict[int, dict[int, Hop]] = {}

    def first_router(self, chip: int) -> int:
        """Return the first router of a chip; those of a chip follow each other."""
        return self.routers_of(chip)[0]

    def routers_of(self, chip: int) -> list[int]:
        """Return the routers of a chip."""
        return self.of_chip[chip]

    def translated(self, link: int, chip: int) -> int:
        """Return the link of another chip, of the same shape, at the place of a link of a chip."""
        source, target = self.source[link], self.target[link]
        if self.chip[source] != self.chip[target]:
            return link
        shift = self.first_router(chip) - self.first_router(self.chip[source])
        return self.by_ends[source + shift, target + shift]

    def links(self, source: int, targets: Iterable[int], tree: Iterable[Step]) -> tuple[int, ...]:
        """Return the links from a router to others, over the links between chips of a tree."""
        entry = {self.chip[source]: source}
        exits: dict[int, list[int]] = {}
        links: dict[int, None] = {}
        for step in tree:
            link = self.net.link_at[step]
            exits.setdefault(step[0], []).append(self.source[link])
            entry[self.net.target_of[step]] = self.target[link]
            links[link] = None
        for target in targets:
            exits.setdefault(self.chip[target], []).append(target)
        for chip, routers in exits.items():
            if chip not in entry:
                raise self._cut_off(source, routers[0])
            for router in routers:
                self._add_path(links, entry[chip], router)
        return tuple(links)

    def _add_path(self, links: dict[int, None], source: int, target: int) -> None:
        hops = self.tree(source)
        while target != source:
            if target not in hops:
                raise self._cut_off(source, target)
            target, link = hops[target]
            if link in links:
                return
            links[link] = None

    def _cut_off(self, source: int, target: int) -> Exception:
        names = self.machine.router_name(source), self.machine.router_name(target)
        return fail(
            "E518",
            f"{names[0]} must reach {names[1]} over live links, but does not",
            help="declare the elements of what is cut off dead",
        )

    def tree(self, source: int) -> dict[int, Hop]:
        """Return for each router of a chip the hop to it: the last along a column, if it may be."""
        if source not in self.trees:
            self.trees[source] = self._found_tree(source)
        return self.trees[source]

    def _found_tree(self, source: int) -> dict[int, Hop]:
        hops: dict[int, Hop] = {}
        seen, border = {source}, [source]
        while border:
            offers: dict[int, list[tuple[bool, int, int]]] = {}
            for router in border:
                for other, link in self.leaving[router]:
                    if other not in seen:
                        along_row = self.x[other] != self.x[router]
                        offers.setdefault(other, []).append((along_row, router, link))
            for other, ways in offers.items():
                _, router, link = min(ways)
                hops[other] = router, link
            seen |= offers.keys()
            border = sorted(offers)
        return hops


def snake(machine: Machine) -> list[list[int]]:
    """Return for each chip its usable elements, router after router, to and fro along columns."""
    chip, router = machine.element_chip, machine.element_router
    of_chip: list[list[int]] = [[] for _ in range(machine.chips)]
    x = machine.router_x[router]
    y = machine.router_y[router]
    order = np.lexsort((np.arange(len(router)), np.where(x % 2 == 0, y, -y), x))
    usable = ~(machine.element_dead | machine.element_reserved)
    for element in order[usable[order]].tolist():
        of_chip[int(chip[element])].append(element)
    return of_chip
