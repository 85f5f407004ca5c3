"""Make the tables of a machine from the keys of its file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mizzen.diagnostics import MizzenError
from mizzen.documents import Form, Syntax
from mizzen.mesh.machine.machine import (
    Arrangement,
    CoreCosts,
    Dram,
    ElementKind,
    Energy,
    Host,
    LinkKind,
    MacArray,
    Machine,
    Overflow,
)

if TYPE_CHECKING:
    from mizzen.mesh.machine.file_format import ElementKeys, MachineKeys

FORM = Form(
    "a machine's file in TOML",
    Syntax.TOML,
    "E561",
    "E562",
    help="docs/reference/mesh-machines.md has every key with its unit and range",
    wording="{name}, {place}: must {must}",
)

BITS_PER_BYTE = 8
GIGA, MEGA, NANO, MIB = 1e9, 1e6, 1e-9, 1 << 20

LARGEST_MACHINE = 1 << 16
"""Elements; twice the largest that mapping times are measured for."""

SIDES = {
    Arrangement.SINGLE: (),
    Arrangement.GRID: ((1, 0), (0, 1), (-1, 0), (0, -1)),
    Arrangement.HEX_TORUS: ((1, 0), (1, 1), (0, 1), (-1, 0), (-1, -1), (0, -1)),
}
"""Steps in columns and rows to a chip's neighbours."""

Place = tuple[int, int]
Link = tuple[int, int, LinkKind]


def build(keys: MachineKeys, file: str, digest: str) -> Machine:
    """Return the machine that a file describes. E562 where its keys do not fit each other."""
    return _Building(keys, file).machine(digest)


class _Building:
    def __init__(self, keys: MachineKeys, file: str) -> None:
        self.keys = keys
        self.file = file
        self.kinds = tuple(_kind(name, given) for name, given in keys.element.items())
        self.kind_index = {kind.name: index for index, kind in enumerate(self.kinds)}
        self.arrangement = Arrangement(keys.board.arrangement)
        self.chips = self._chip_places()
        self.places = self._router_places()
        self.elements = self._elements_of_chip()

    def machine(self, digest: str) -> Machine:
        """Return the machine."""
        chips, routers = len(self.chips), len(self.places)
        elements = [(router, kind) for router, kinds in enumerate(self.elements) for kind in kinds]
        if chips * len(elements) > LARGEST_MACHINE:
            raise self.wrong("chip", f"at most {LARGEST_MACHINE} elements", chips * len(elements))
        if self.keys.chip.reserved >= len(elements):
            raise self.wrong("chip.reserved", f"below {len(elements)}", self.keys.chip.reserved)
        router_of = [chip * routers + router for chip in range(chips) for router, _ in elements]
        reserved = np.zeros((chips, len(elements)), bool)
        reserved[:, len(elements) - self.keys.chip.reserved :] = True
        links = list(self._links())
        machine = Machine(
            name=self.keys.name,
            description=self.keys.description,
            kinds=self.kinds,
            element_kind=np.array([kind for _ in range(chips) for _, kind in elements], np.int64),
            element_router=np.array(router_of, np.int64),
            element_dead=np.zeros(chips * len(elements), bool),
            element_reserved=reserved.reshape(-1),
            router_chip=np.repeat(np.arange(chips), routers),
            router_x=np.tile([x for x, _ in self.places], chips),
            router_y=np.tile([y for _, y in self.places], chips),
            chip_x=np.array([x for x, _ in self.chips], np.int64),
            chip_y=np.array([y for _, y in self.chips], np.int64),
            link_source=np.array([source for source, _, _ in links], np.int64),
            link_target=np.array([target for _, target, _ in links], np.int64),
            link_kind=np.array([int(kind) for _, _, kind in links], np.int64),
            link_bytes_per_s=np.array([self._rate(kind) for _, _, kind in links], np.float64),
            link_latency_s=np.array([self._latency(kind) for _, _, kind in links], np.float64),
            link_dead=np.zeros(len(links), bool),
            port_bytes_per_s=self._cycles_to_rate(self.keys.links.port_bytes_per_cycle),
            arrangement=self.arrangement,
            chip_columns=self.keys.board.columns,
            chip_rows=self.keys.board.rows,
            drams=tuple(self._drams()),
            host=self._host(),
            energy=self._energy(),
            digest=digest,
        )
        return self._without_dead(machine)

    def wrong(self, place: str, must: str, came: object) -> MizzenError:
        """Return the error for keys that do not fit each other."""
        return FORM.error(self.file, place, f"be {must}", came)

    def _chip_places(self) -> list[Place]:
        board = self.keys.board
        if self.arrangement is Arrangement.SINGLE and (board.columns, board.rows) != (1, 1):
            came = f"{board.columns} x {board.rows}"
            raise self.wrong("board", "1 x 1 chips where the arrangement is single", came)
        return [(x, y) for y in range(board.rows) for x in range(board.columns)]

    def _router_places(self) -> list[Place]:
        chip = self.keys.chip
        for place in chip.missing:
            self._require_place("chip.missing", place)
        places = [(x, y) for y in range(chip.rows) for x in range(chip.columns)]
        return [place for place in places if place not in set(chip.missing)] or self._no_router()

    def _no_router(self) -> list[Place]:
        raise self.wrong("chip.missing", "fewer than all places of the grid", "all of them")

    def _require_place(self, key: str, place: Place) -> None:
        chip = self.keys.chip
        if place[0] >= chip.columns or place[1] >= chip.rows:
            raise self.wrong(key, f"within {chip.columns} x {chip.rows}", list(place))

    def _elements_of_chip(self) -> list[list[int]]:
        chip = self.keys.chip
        usual = [self._kind("chip.element", chip.element)] * chip.elements_per_router
        of_router = [usual for _ in self.places]
        for entry in chip.router:
            kinds = [self._kind("chip.router.elements", name) for name in entry.elements]
            of_router[self._router("chip.router.at", entry.at)] = kinds
        return of_router

    def _kind(self, key: str, name: str) -> int:
        if name not in self.kind_index:
            raise self.wrong(key, f"one of {', '.join(self.kind_index)}", name)
        return self.kind_index[name]

    def _router(self, key: str, place: Place) -> int:
        """Return the index of a router in its chip."""
        self._require_place(key, place)
        if place not in self.places:
            raise self.wrong(key, "a place with a router", list(place))
        return self.places.index(place)

    def _links(self) -> Iterator[Link]:
        yield from self._links_on_chips()
        yield from self._links_between_chips()

    def _links_on_chips(self) -> Iterator[Link]:
        index = {place: router for router, place in enumerate(self.places)}
        for chip in range(len(self.chips)):
            first = chip * len(self.places)
            for (x, y), router in index.items():
                for step_x, step_y in SIDES[Arrangement.GRID]:
                    other = index.get((x + step_x, y + step_y))
                    if other is not None:
                        yield first + router, first + other, LinkKind.ON_CHIP

    def _links_between_chips(self) -> Iterator[Link]:
        board, routers = self.keys.board, len(self.places)
        sides = SIDES[self.arrangement]
        gates = [self._gate(step) for step in sides]
        linked: set[tuple[int, int]] = set()
        for chip, (x, y) in enumerate(self.chips):
            for side, (step_x, step_y) in enumerate(sides):
                place = (x + step_x, y + step_y)
                if self.arrangement is Arrangement.HEX_TORUS:
                    place = (place[0] % board.columns, place[1] % board.rows)
                elif place not in self.chips:
                    continue
                other = place[1] * board.columns + place[0]
                if other == chip or (chip, other) in linked:
                    continue
                linked.add((chip, other))
                opposite = sides.index((-step_x, -step_y))
                yield (
                    chip * routers + gates[side],
                    other * routers + gates[opposite],
                    LinkKind.BETWEEN_CHIPS,
                )

    def _gate(self, step: Place) -> int:
        """Return the router at the middle of a chip's side, or at its corner, nearest to one."""
        chip = self.keys.chip
        target = ((chip.columns - 1) * (1 + step[0]) / 2, (chip.rows - 1) * (1 + step[1]) / 2)

        def distance(place: Place) -> tuple[float, Place]:
            return abs(place[0] - target[0]) + abs(place[1] - target[1]), place

        return self.places.index(min(self.places, key=distance))

    def _cycles_to_rate(self, bytes_per_cycle: float) -> float:
        return bytes_per_cycle * self.keys.links.clock_mhz * MEGA

    def _rate(self, kind: LinkKind) -> float:
        board = self.keys.board
        if kind is LinkKind.ON_CHIP:
            return self._cycles_to_rate(self.keys.links.bytes_per_cycle)
        return board.gbit_per_s * GIGA * board.efficiency / BITS_PER_BYTE

    def _latency(self, kind: LinkKind) -> float:
        links = self.keys.links
        hop = links.hop_cycles / (links.clock_mhz * MEGA)
        return hop if kind is LinkKind.ON_CHIP else self.keys.board.latency_ns * NANO

    def _drams(self) -> Iterator[Dram]:
        keys = self.keys.dram
        if keys is None:
            return
        router = self._router("dram.router", keys.router)
        rate = keys.gbit_per_s * GIGA * keys.efficiency / BITS_PER_BYTE
        for chip in range(len(self.chips)):
            yield Dram(chip * len(self.places) + router, keys.size_mib * MIB, rate)

    def _host(self) -> Host | None:
        keys = self.keys.host
        if keys is None:
            return None
        if keys.chip >= len(self.chips):
            raise self.wrong("host.chip", f"below {len(self.chips)}", keys.chip)
        router = keys.chip * len(self.places) + self._router("host.router", keys.router)
        return Host(router, keys.gbit_per_s * GIGA * keys.efficiency / BITS_PER_BYTE)

    def _energy(self) -> Energy:
        keys = self.keys.energy
        return Energy(
            keys.mac_pj,
            keys.memory_byte_pj,
            keys.router_byte_pj,
            keys.chip_link_byte_pj,
            keys.dram_byte_pj,
            keys.idle_w_per_chip * len(self.chips),
            keys.source,
        )

    def _without_dead(self, machine: Machine) -> Machine:
        dead = self.keys.dead
        if not (dead.chips or dead.elements or dead.links):
            return machine
        elements, links = machine.element_dead.copy(), machine.link_dead.copy()
        for chip in dead.chips:
            if chip >= machine.chips:
                raise self.wrong("dead.chips", f"below {machine.chips}", chip)
            elements |= machine.element_chip == chip
        names = {machine.element_name(index): index for index in range(machine.elements)}
        for name in dead.elements:
            if name not in names:
                like = f"elements like {machine.element_name(0)!r}"
                raise self.wrong("dead.elements", like, name)
            elements[names[name]] = True
        ends = {machine.link_name(index): index for index in range(len(machine.link_source))}
        for name in dead.links:
            if name not in ends:
                like = machine.link_name(0) if ends else "none: the machine has no links"
                raise self.wrong("dead.links", f"links like {like!r}", name)
            links[ends[name]] = True
        return replace(machine, element_dead=elements, link_dead=links)


def _kind(name: str, keys: ElementKeys) -> ElementKind:
    array = keys.array and MacArray(
        keys.array.rows,
        keys.array.columns,
        keys.array.accumulator_bits,
        Overflow(keys.array.overflow),
        min(keys.array.depthwise_columns, keys.array.columns),
    )
    core = CoreCosts(**keys.core.as_dict())
    return ElementKind(
        name,
        keys.clock_mhz * MEGA,
        keys.code_bytes,
        keys.stack_bytes,
        keys.data_bytes,
        array,
        core,
        keys.npu,
    )
