"""Elements for the seats of a template: near to whom they send to, away from busy links."""

from __future__ import annotations

import numpy as np

from mizzen.mesh.machine.machine import LinkKind, Machine
from mizzen.mesh.mapping.candidates import Candidate
from mizzen.mesh.mapping.chip_net import ChipNet
from mizzen.mesh.mapping.exchanging import Exchange
from mizzen.mesh.mapping.positions import fold_of
from mizzen.mesh.mapping.routes import Routes, snake
from mizzen.mesh.mapping.splits import Floats

SHARPNESS = 4.0
"""How much longer the busiest link counts than an idle one."""
IDLE = 0.35
"""Share of a period that the busiest link of a chip may work without being looked at."""

Load = dict[int, float]


class Seating:
    """Searches the elements of a template's seats on the chips of the first replica."""

    def __init__(self, machine: Machine, net: ChipNet, best: Candidate) -> None:
        self.machine, self.net, self.best = machine, net, best
        self.routes = Routes(machine, net)
        self.router: list[int] = machine.element_router.tolist()
        self.trees = {
            flow: tree
            for share, tree in zip(best.shares, best.trees, strict=True)
            for flow in share.flows
        }
        self.copies = fold_of(net, best.block) if best.block else list(range(machine.chips))
        order = sorted(range(len(best.parts)), key=lambda seat: (best.template.depths[seat], seat))
        self.seats: list[list[int]] = [[] for _ in best.chips]
        for seat in order:
            self.seats[best.parts[seat]].append(seat)

    def in_order(self) -> list[int]:
        """Return the element of each seat in the order of layers along each chip."""
        placed = [0] * len(self.best.parts)
        chips = snake(self.machine)
        kinds = self.machine.element_kind.tolist()
        for part, seats in enumerate(self.seats):
            free = {
                kind: [at for at in chips[self.best.chips[part]] if kinds[at] == kind]
                for kind in set(self.best.template.kinds)
            }
            for seat in seats:
                placed[seat] = free[self.best.template.kinds[seat]].pop(0)
        return placed

    def searched(self, rounds: int) -> list[int]:
        """Return elements after exchanges, in rounds in which busy links count as longer."""
        elements = self.in_order()
        loads = self.loads(elements)
        best, least = elements, self.busiest_s(loads)
        weights: Load = {}
        for _ in range(rounds):
            busy = self._busy(loads)
            if not busy:
                break
            elements = list(elements)
            for part in busy:
                self._exchange(part, elements, weights)
            loads = weights = self.loads(elements)
            most = self.busiest_s(loads)
            if most < least:
                best, least = elements, most
        return best

    def loads(self, elements: list[int]) -> Load:
        """Return the bytes of each link for an image, those of all copies on the first one."""
        template, loads = self.best.template, dict[int, float]()
        at = [self.router[elements[tile.element]] for tile in template.tiles]
        for index, flow in enumerate(template.flows):
            targets = [at[target] for target in flow.targets]
            for link in self.routes.links(at[flow.source], targets, self.trees.get(index, ())):
                loads[link] = loads.get(link, 0.0) + flow.size_bytes
        return self._folded(loads)

    def busiest_s(self, loads: Load) -> float:
        """Return the time that the busiest link of a chip needs for an image."""
        return max((self._seconds(link, load) for link, load in loads.items()), default=0.0)

    def _seconds(self, link: int, load: float) -> float:
        if self.machine.link_kind[link] != LinkKind.ON_CHIP:
            return 0.0
        return load / float(self.machine.link_bytes_per_s[link])

    def _folded(self, loads: Load) -> Load:
        """Return the loads that a chip has of all replicas, for the chips of the first."""
        if self.best.block is None:
            return loads
        home = {self.copies[chip]: chip for chip in self.best.chips}
        folded: Load = {}
        for link, load in loads.items():
            router = self.routes.source[link]
            chip = self.routes.chip[router]
            other = home[self.copies[chip]]
            same = self.routes.translated(link, other)
            folded[same] = folded.get(same, 0.0) + load
        return folded

    def _busy(self, loads: Load) -> list[int]:
        """Return the parts with links that matter."""
        part_of = {chip: part for part, chip in enumerate(self.best.chips)}
        limit = IDLE * self.best.period_s
        busy = {
            part_of[self.routes.chip[self.routes.source[link]]]
            for link, load in loads.items()
            if self._seconds(link, load) > limit
        }
        return sorted(busy)

    def _exchange(self, part: int, elements: list[int], loads: Load) -> None:
        """Exchange the elements of the seats of a part."""
        seats, chip = self.seats[part], self.best.chips[part]
        first = self.routes.first_router(chip)
        exchange = self._asked(part, elements, first)
        places = exchange.search(self._distances(chip, loads))
        before = [elements[seat] for seat in seats]
        for seat, place in zip(seats, places.tolist(), strict=True):
            elements[seat] = before[place]

    def _distances(self, chip: int, loads: Load) -> Floats:
        """Return how far routers of a chip are, busy links counting more."""
        routers = self.routes.routers_of(chip)
        most = max(loads.values(), default=1.0)
        distances = np.zeros((len(routers), len(routers)))
        for number, source in enumerate(routers):
            for router, (before, link) in self.routes.tree(source).items():
                longer = 1 + SHARPNESS * (loads.get(link, 0.0) / most) ** 3
                distances[number, router - routers[0]] = (
                    distances[number, before - routers[0]] + longer
                )
        return distances

    def _asked(self, part: int, elements: list[int], first: int) -> Exchange:
        """Return the bytes that a part's seats send to each other, and through the chip's gates."""
        seats = self.seats[part]
        number = {seat: at for at, seat in enumerate(seats)}
        count = len(self.routes.routers_of(self.best.chips[part]))
        between = np.zeros((len(seats), len(seats)))
        leaving, entering = np.zeros((len(seats), count)), np.zeros((len(seats), count))
        tiles = self.best.template.tiles
        for index, flow in enumerate(self.best.template.flows):
            source = number.get(tiles[flow.source].element)
            inside = {
                number[tiles[at].element] for at in flow.targets if tiles[at].element in number
            }
            if source is None and not inside:
                continue
            out, into = self._gates(part, index)
            each = flow.size_bytes / max(1, len(inside)) ** 0.5
            for target in inside:
                if source is not None:
                    between[source, target] += each
                elif into is not None:
                    entering[target, into - first] += each
            if source is not None:
                for gate in out:
                    leaving[source, gate - first] += flow.size_bytes
        kinds = np.array([self.best.template.kinds[seat] for seat in seats])
        routers = np.array([self.router[elements[seat]] - first for seat in seats])
        return Exchange(between, leaving, entering, kinds, routers)

    def _gates(self, part: int, flow: int) -> tuple[list[int], int | None]:
        """Return the routers where a flow leaves the chip of a part, and where it comes in."""
        chip, out, into = self.best.chips[part], list[int](), None
        for step in self.trees.get(flow, ()):
            link = self.net.link_at[step]
            if step[0] == chip:
                out.append(self.routes.source[link])
            if self.net.target_of[step] == chip:
                into = self.routes.target[link]
        return out, into


def moved_to(
    machine: Machine, first: list[int], before: list[int], chips: list[int], parts: list[int]
) -> list[int]:
    """Return the elements of another replica's seats, around what is dead there.

    `first` are those of the first replica, whose parts are on the chips `before`.
    """
    per_chip = machine.elements // machine.chips
    usable = snake(machine)
    wanted = [
        element + (chips[part] - before[part]) * per_chip
        for element, part in zip(first, parts, strict=True)
    ]
    alive = {chip: set(usable[chip]) for chip in chips}
    taken = {element for element in wanted if element in alive[element // per_chip]}
    moved: list[int] = []
    for element in wanted:
        chip = element // per_chip
        if element in alive[chip]:
            moved.append(element)
            continue
        spare = [other for other in usable[chip] if other not in taken]
        moved.append(min(spare, key=lambda other, at=element: (abs(other - at), other)))
        taken.add(moved[-1])
    return moved


def shared_chip(elements: list[int], best: Candidate, place: int) -> list[int]:
    """Return those of a chip's elements that one of its replicas has: a stretch, in order."""
    each = len(elements) // best.way.sharing
    return elements[place * each : place * each + len(best.parts)]
