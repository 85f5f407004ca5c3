"""What every element, link and port has to do, and what is busiest: no waiting, no contention."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from mizzen.mesh.machine.machine import Floats, Ints, LinkKind, Machine
from mizzen.mesh.network.boxes import elements_of
from mizzen.mesh.program.program import (
    Compute,
    Copy,
    ElementProgram,
    Fetch,
    Give,
    MeshProgram,
    Receive,
    Region,
    Send,
)
from mizzen.mesh.simulation.bound import array_bound, host_bound

PICO = 1e-12


class Resource(Enum):
    """What limits the throughput."""

    ELEMENT = "element"
    LINK = "link"
    PORT_IN = "port into the network"
    PORT_OUT = "port out of the network"


@dataclass(frozen=True, slots=True)
class Load:
    """How long a resource is busy for an image of every replica."""

    resource: Resource
    name: str
    seconds: float


@dataclass(frozen=True, eq=False)
class Estimate:
    """Throughput, latency, energy and loads of a mapped network.

    period_s            time in which every replica takes one more image
    images_per_s        of all replicas
    latency_s           of an image through empty machine, its longest chain of waiting
    energy_j            of an image, idle power included
    element_s, link_s   busy time of each in a period; ports in `port_in_s`, `port_out_s` by router
    bound_per_s         images a second that no mapping can pass: `array_bound`
    host_fed_per_s      when every input comes through the host's port; None without a host
    bottleneck          what is busy all the time
    """

    period_s: float
    images_per_s: float
    latency_s: float
    energy_j: float
    element_s: Floats
    link_s: Floats
    port_in_s: Floats
    port_out_s: Floats
    bound_per_s: float
    host_fed_per_s: float | None
    bottleneck: Load

    @property
    def bound_ratio(self) -> float:
        """Throughput over the bound."""
        return self.images_per_s / self.bound_per_s


def estimate(program: MeshProgram) -> Estimate:
    """Return the loads of a program's resources, from sums alone."""
    machine = program.machine
    element_s = _element_seconds(program)
    link_bytes, in_bytes, out_bytes = _bytes(program)
    link_s = link_bytes / machine.link_bytes_per_s if len(link_bytes) else link_bytes
    ports = in_bytes / machine.port_bytes_per_s, out_bytes / machine.port_bytes_per_s
    bottleneck = _bottleneck(machine, element_s, link_s, *ports)
    images = program.replicas / max(bottleneck.seconds, np.finfo(float).tiny)
    host = host_bound(program.network, machine)
    return Estimate(
        bottleneck.seconds,
        images,
        _latency(program),
        _energy(program, link_bytes, in_bytes, out_bytes, images),
        element_s,
        link_s,
        *ports,
        array_bound(program.network, machine),
        None if host is None else min(host, images),
        bottleneck,
    )


def instruction_cycles(machine: Machine, program: ElementProgram, instruction: object) -> float:
    """Return the cycles for which an instruction keeps an element busy."""
    match instruction:
        case Compute():
            return instruction.cycles
        case Copy():
            return elements_of(instruction.box) * machine.kind_of(program.element).core.movement
        case _:
            return 0.0


def _element_seconds(program: MeshProgram) -> Floats:
    machine = program.machine
    seconds = np.zeros(machine.elements)
    for element in program.elements:
        cycles = sum(
            instruction_cycles(machine, element, instruction)
            for instruction in element.instructions
        )
        seconds[element.element] = cycles / machine.kind_of(element.element).clock_hz
    return seconds


def _bytes(program: MeshProgram) -> tuple[Floats, Floats, Floats]:
    """Return bytes over each link, and into and out of the network at each router, for an image."""
    machine = program.machine
    sizes = np.array([route.size_bytes for route in program.routes], np.float64)
    lengths = [len(route.links) for route in program.routes]
    links = np.array([link for route in program.routes for link in route.links], np.int64)
    routers = machine.element_router
    sources = routers[np.array([route.source for route in program.routes], np.int64)]
    pairs = [
        (router, index)
        for index, route in enumerate(program.routes)
        for router in {int(routers[target]) for target in route.targets}
    ]
    out, message = np.array(pairs, np.int64).reshape(-1, 2).T
    return (
        _sums(links, np.repeat(sizes, lengths), len(machine.link_source)),
        _sums(sources, sizes, len(machine.router_chip)),
        _sums(out, sizes[message], len(machine.router_chip)),
    )


def _sums(places: Ints, weights: Floats, count: int) -> Floats:
    return np.bincount(places, weights, count).astype(np.float64)


def _bottleneck(
    machine: Machine, element_s: Floats, link_s: Floats, port_in_s: Floats, port_out_s: Floats
) -> Load:
    resources = [
        (Resource.ELEMENT, element_s, machine.element_name),
        (Resource.LINK, link_s, machine.link_name),
        (Resource.PORT_IN, port_in_s, machine.router_name),
        (Resource.PORT_OUT, port_out_s, machine.router_name),
    ]
    loads = [
        Load(resource, name(int(np.argmax(seconds))), float(np.max(seconds)))
        for resource, seconds, name in resources
        if len(seconds)
    ]
    return max(loads, key=lambda load: load.seconds)


def _latency(program: MeshProgram) -> float:
    """Return the time of one image through an empty machine, over the longest chain of waiting."""
    machine = program.machine
    arrival: dict[int, float] = {}
    places = [0] * len(program.elements)
    now = [0.0] * len(program.elements)
    waiting: dict[int, list[int]] = {}
    pending = list(range(len(program.elements)))
    while pending:
        index = pending.pop()
        element = program.elements[index]
        clock = machine.kind_of(element.element).clock_hz
        while places[index] < len(element.instructions):
            instruction = element.instructions[places[index]]
            if isinstance(instruction, Receive):
                if instruction.message not in arrival:
                    waiting.setdefault(instruction.message, []).append(index)
                    break
                now[index] = max(now[index], arrival[instruction.message])
            now[index] += instruction_cycles(machine, element, instruction) / clock
            if isinstance(instruction, Send):
                arrival[instruction.message] = now[index] + _transfer(program, instruction.message)
                pending += waiting.pop(instruction.message, [])
            places[index] += 1
    return max(now, default=0.0)


def _transfer(program: MeshProgram, message: int) -> float:
    """Return the time of a message over its longest path, nothing else on its links."""
    machine, route = program.machine, program.routes[message]
    slowest = machine.port_bytes_per_s
    if route.links:
        links = np.array(route.links)
        slowest = min(slowest, float(machine.link_bytes_per_s[links].min()))
    return route.size_bytes / slowest + _deepest(machine, route.links)


def _deepest(machine: Machine, links: tuple[int, ...]) -> float:
    """Return the latency of the longest path through a tree of links, whose root comes first."""
    depth: dict[int, float] = {}
    left = list(links)
    targets = {int(machine.link_target[link]) for link in links}
    depth.update((int(machine.link_source[link]), 0.0) for link in links)
    for router in targets:
        depth.pop(router, None)
    while left:
        known = [link for link in left if int(machine.link_source[link]) in depth]
        if not known:
            break
        for link in known:
            start = depth[int(machine.link_source[link])]
            depth[int(machine.link_target[link])] = start + float(machine.link_latency_s[link])
        left = [link for link in left if link not in set(known)]
    return max(depth.values(), default=0.0)


def _energy(
    program: MeshProgram, link_bytes: Floats, in_bytes: Floats, out_bytes: Floats, images: float
) -> float:
    """Return joules an image: multiplications, memory, routers, links, and idle power."""
    machine, rates = program.machine, program.machine.energy
    macs, memory = 0, 0
    for element in program.elements:
        for instruction in element.instructions:
            memory += _memory_bytes(element.regions, instruction)
            if isinstance(instruction, Compute):
                macs += instruction.work.macs
    between = machine.link_kind == LinkKind.BETWEEN_CHIPS
    hops = float(link_bytes.sum() + in_bytes.sum() + out_bytes.sum())
    moved = hops * rates.router_byte_pj + float(link_bytes[between].sum()) * rates.chip_link_byte_pj
    dynamic = macs * rates.mac_pj + memory * rates.memory_byte_pj + moved
    return dynamic * PICO / program.replicas + rates.idle_w / images


def _memory_bytes(regions: tuple[Region, ...], instruction: object) -> int:
    """Return the bytes that an instruction reads and writes, each once."""
    match instruction:
        case Compute(operands=operands, sums=sums, constants=constants, output=output):
            read = [*operands, *sums, constants, output]
            return sum(regions[place].slot_bytes for place in read if place is not None)
        case Copy(source=source, box=box):
            return 2 * elements_of(box) * item_bytes(regions[source])
        case Send(region=place, box=box) | Receive(region=place, box=box):
            return elements_of(box) * item_bytes(regions[place])
        case Fetch(region=place) | Give(region=place):
            return regions[place].slot_bytes
        case _:
            return 0


def item_bytes(region: Region) -> int:
    """Return the bytes of an element of a region's box."""
    assert region.box is not None
    return region.slot_bytes // max(1, elements_of(region.box))
