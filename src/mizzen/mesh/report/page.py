"""The page about a mapped network: throughput, layers, loads, memory, time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mizzen.mesh.machine.machine import Arrangement, Machine
from mizzen.mesh.program.program import Compute, MeshProgram, RegionKind
from mizzen.mesh.report.floor_plan import floor_plan
from mizzen.mesh.simulation import Activity, Estimate, Simulated
from mizzen.report.page import Bar, Facts, Lane, Note, Page, Section, Table, Timeline
from mizzen.report.words import short_name

SHOWN_ROWS = 100
"""Busiest elements, links and ports in a table; all of them are on the map."""

SHOWN_LANES = 40
MICRO = 1e6


def mesh_page(program: MeshProgram, estimate: Estimate, simulated: Simulated | None = None) -> Page:
    """Return the page about a program: `simulated` adds what events say, and a timeline."""
    machine, network = program.machine, program.network
    sections = [
        Section("Throughput", (Facts(tuple(_facts(program, estimate, simulated))),)),
        Section("Layers", (_layers(program, estimate),)),
        Section("Loads", (floor_plan(program, estimate), _loads(machine, estimate))),
        Section("Memory", (_memory(program),)),
    ]
    if simulated is not None and simulated.activities:
        sections.append(Section("Time", (_timeline(program, simulated),)))
    sections.append(Section("How to read this", (Note(_explanation(machine)),)))
    summary = (
        f"{estimate.images_per_s:,.0f} images a second in {program.replicas} "
        f"{'copy' if program.replicas == 1 else 'copies'} on {len(program.elements):,} of "
        f"{len(machine.usable):,} usable elements"
    )
    return Page(f"{network.name} on {machine.name}", summary, tuple(sections))


def _facts(
    program: MeshProgram, estimate: Estimate, simulated: Simulated | None
) -> Iterator[tuple[str, str]]:
    yield "Images a second", f"{estimate.images_per_s:,.0f}"
    yield (
        "Bound",
        f"{estimate.bound_per_s:,.0f}, of which that is {100 * estimate.bound_ratio:.1f} %",
    )
    if simulated is not None:
        yield "By events", f"{simulated.images_per_s:,.0f}"
        yield "Latency by events", f"{simulated.latency_s * MICRO:,.1f} us"
    if estimate.host_fed_per_s is not None:
        yield "Fed by the host", f"{estimate.host_fed_per_s:,.0f}"
    yield "Latency", f"{estimate.latency_s * MICRO:,.1f} us"
    yield "Energy of an image", f"{estimate.energy_j * 1e3:.3g} mJ"
    yield "Busiest", f"{estimate.bottleneck.resource.value} {estimate.bottleneck.name}"
    yield "Source of energies", program.machine.energy.source


def _layers(program: MeshProgram, estimate: Estimate) -> Table:
    """Return a row for each layer, of one replica."""
    by_layer: dict[int, list[tuple[int, int]]] = {}
    for element in program.elements:
        if element.replica == 0:
            for instruction in element.instructions:
                if isinstance(instruction, Compute):
                    by_layer.setdefault(instruction.kernel.layer, []).append(
                        (instruction.cycles, element.element)
                    )
    return Table(
        "Layers of one copy: tiles, the longest tile, and its share of the period",
        ("layer", "kind", "tiles", "elements", "longest tile (cycles)", "of the period"),
        tuple(_layer(program, estimate, layer, tiles) for layer, tiles in sorted(by_layer.items())),
        frozenset({5}),
        wide=frozenset({0}),
    )


def _layer(
    program: MeshProgram, estimate: Estimate, index: int, tiles: list[tuple[int, int]]
) -> tuple[str | int | float, ...]:
    layer = program.network.layers[index]
    longest, element = max(tiles)
    seconds = longest / program.machine.kind_of(element).clock_hz
    elements = len({element for _, element in tiles})
    share = seconds / estimate.period_s
    name = short_name(layer.name)
    return name, layer.kind.value, len(tiles), elements, longest, share


def _loads(machine: Machine, estimate: Estimate) -> Table:
    loads: list[tuple[str | float, ...]] = []
    for kind, seconds, name in (
        ("element", estimate.element_s, machine.element_name),
        ("link", estimate.link_s, machine.link_name),
        ("port in", estimate.port_in_s, machine.router_name),
        ("port out", estimate.port_out_s, machine.router_name),
    ):
        for index in np.argsort(-seconds, kind="stable")[:SHOWN_ROWS].tolist():
            loads.append((kind, name(index), float(seconds[index] / estimate.period_s)))
    return Table("Busiest", ("resource", "name", "busy"), tuple(loads), frozenset({2}))


def _memory(program: MeshProgram) -> Table:
    """Return the bytes of each kind of region, of all elements and of the fullest one."""
    held: dict[RegionKind, list[int]] = {kind: [] for kind in RegionKind}
    for element in program.elements:
        of_kind = dict.fromkeys(RegionKind, 0)
        for region in element.regions:
            of_kind[region.kind] += region.slot_bytes * region.slots
        for kind, size in of_kind.items():
            held[kind].append(size)
    whole = [element.data_bytes for element in program.elements]
    uses = [(kind.value, sum(sizes), max(sizes, default=0)) for kind, sizes in held.items()]
    uses.append(("all, as laid out", sum(whole), max(whole, default=0)))
    return Table("Bytes by use", ("use", "all elements", "fullest element"), tuple(uses))


def _timeline(program: MeshProgram, simulated: Simulated) -> Timeline:
    """Return the work of the elements of the first copy, those of the first layers first."""
    first = [each.element for each in program.elements if each.replica == 0]
    by_element: dict[int, list[Activity]] = {element: [] for element in first}
    for activity in simulated.activities:
        if activity.element in by_element:
            by_element[activity.element].append(activity)
    order = sorted(
        (element for element, activities in by_element.items() if activities),
        key=lambda element: min(each.start_s for each in by_element[element]),
    )
    step = max(1, -(-len(order) // SHOWN_LANES))
    lanes = tuple(
        Lane(
            program.machine.element_name(element),
            tuple(_bar(program, each) for each in by_element[element]),
        )
        for element in order[::step]
    )
    chosen = "each element" if step == 1 else f"one element of {step}"
    text = f"What {chosen} of the first copy computes; a colour is an image."
    return Timeline("Elements over time", text, "us", lanes)


def _bar(program: MeshProgram, activity: Activity) -> Bar:
    layer = activity.layer
    name = "copying" if layer is None else short_name(program.network.layers[layer].name)
    start, stop = activity.start_s * MICRO, activity.stop_s * MICRO
    title = f"{name}, image {activity.image}: {start:.2f} to {stop:.2f} us"
    return Bar(start, stop, activity.image, title)


def _explanation(machine: Machine) -> str:
    links = (
        " and by hexagonal links between chips"
        if machine.arrangement is (Arrangement.HEX_TORUS)
        else ""
    )
    return (
        "Every copy of the network takes its own images. The period is the time in which each copy "
        "takes one more: the busiest element, link or port is at work all of it. The bound is what "
        "all usable elements would give if their arrays never waited, whatever the mapping. All "
        f"figures are of a model of {machine.name}, whose elements are joined by links between "
        f"routers{links}; they are estimates, while what the programs compute is exact."
    )
