"""What lies in the memory of elements: whether it fits, where, and what may use elements at all."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.mesh.machine import ElementKind, cycles
from mizzen.mesh.network.boxes import elements_of
from mizzen.mesh.network.network import LayerKind, held_bytes
from mizzen.mesh.network.regions import work_of
from mizzen.mesh.program.checker.findings import Finding, Rule
from mizzen.mesh.program.checker.view import View
from mizzen.mesh.program.program import (
    ALIGNMENT_BYTES,
    SUM_BYTES,
    Compute,
    ElementProgram,
    RegionKind,
)

WITH_SCRATCH = frozenset({LayerKind.GENERAL, LayerKind.REDUCTION})


def element_findings(view: View) -> Iterator[Finding]:
    """Return the elements that no program may lie on."""
    machine = view.program.machine
    for element in view.program.elements:
        for flags, state in (
            (machine.element_dead, "it is dead"),
            (machine.element_reserved, "it is reserved for management"),
        ):
            if flags[element.element]:
                must = "an element with a program must be usable"
                yield Finding(Rule.ELEMENTS, view.place(element), must, state)


def memory_findings(view: View) -> Iterator[Finding]:
    """Return the regions that do not fit, lie on something else, or are not aligned."""
    for element in view.program.elements:
        room = view.program.machine.kind_of(element.element).data_bytes
        if element.data_bytes > room:
            must = f"programs must need at most {room} bytes of data memory"
            came = f"this one needs {element.data_bytes}: {element.data_bytes - room} too many"
            yield Finding(Rule.CAPACITY, view.place(element), must, came)
        yield from _overlaps(view, element)
        yield from _sizes(view, element)


def _overlaps(view: View, element: ElementProgram) -> Iterator[Finding]:
    order = sorted(range(len(element.regions)), key=lambda index: element.regions[index].address)
    before, end = -1, 0
    for index in order:
        region = element.regions[index]
        if region.address % ALIGNMENT_BYTES:
            must = f"region {index} must begin at a multiple of {ALIGNMENT_BYTES} bytes"
            yield Finding(Rule.REGIONS, view.place(element), must, f"not at {region.address}")
        if region.address < end and region.end > region.address:
            must = f"region {index} must begin after region {before}, at {end} or later"
            yield Finding(Rule.OVERLAP, view.place(element), must, f"not at {region.address}")
        if region.end > end:
            before, end = index, region.end


def _sizes(view: View, element: ElementProgram) -> Iterator[Finding]:
    for index, region in enumerate(element.regions):
        if region.box is not None:
            need = elements_of(region.box) * view.item_bytes(region)
            if region.slot_bytes < need:
                must = f"a slot of region {index} must have {need} bytes"
                yield Finding(Rule.REGIONS, view.place(element), must, f"not {region.slot_bytes}")


def compute_findings(view: View) -> Iterator[Finding]:
    """Return tiles without room for their constants or their work, or with other costs."""
    for element, place, compute in view.computes():
        yield from _held(view, element, place, compute)
        yield from _costs(view, element, place, compute)


def _held(view: View, element: ElementProgram, place: int, compute: Compute) -> Iterator[Finding]:
    kernel = compute.kernel
    layer = view.layer(kernel)
    start, stop = kernel.channels or (0, layer.input_channels)
    across = kernel.box[-1][1] - kernel.box[-1][0] if kernel.box else 1
    need = held_bytes(layer, across, stop - start)
    have = 0
    if compute.constants is not None:
        region = element.regions[compute.constants]
        have = region.slot_bytes if region.kind is RegionKind.CONSTANTS else 0
    if have < need:
        must = f"{layer.name} must have {need} bytes of constants"
        yield Finding(Rule.REGIONS, view.place(element, place), must, f"not {have}")
    if layer.kind in WITH_SCRATCH:
        needed = view.needed(kernel.layer, kernel.box, kernel.channels)
        taken = dict(zip(layer.inputs, needed, strict=True)).values()
        elements = sum(elements_of(box) for box in taken if box is not None)
        need = SUM_BYTES * (elements + elements_of(kernel.box))
        kept = [each for each in element.regions if each.kind is RegionKind.SCRATCH]
        have = max((each.slot_bytes for each in kept), default=0)
        if have < need:
            must = f"{layer.name} must have {need} bytes of scratch"
            yield Finding(Rule.REGIONS, view.place(element, place), must, f"not {have}")


def _costs(view: View, element: ElementProgram, place: int, compute: Compute) -> Iterator[Finding]:
    kernel = compute.kernel
    layer = view.layer(kernel)
    work = work_of(view.network, layer, kernel.box, kernel.channels, kernel.adds_sums)
    kind: ElementKind = view.program.machine.kind_of(element.element)
    if compute.work != work:
        must = f"the work of {layer.name} must be {work}"
        yield Finding(Rule.COSTS, view.place(element, place), must, f"not {compute.work}")
    elif compute.cycles != cycles(kind, work):
        must = f"{layer.name} must take {cycles(kind, work)} cycles"
        yield Finding(Rule.COSTS, view.place(element, place), must, f"not {compute.cycles}")
