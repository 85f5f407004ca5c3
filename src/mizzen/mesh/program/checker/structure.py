"""Whether all that a program names exists: elements, regions, tensors, layers, messages, boxes.

Everything else is checked only where this holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mizzen.mesh.network.boxes import Box
from mizzen.mesh.network.network import LayerKind
from mizzen.mesh.program.checker.findings import Finding, Rule, shown
from mizzen.mesh.program.program import (
    Compute,
    Copy,
    ElementProgram,
    Fetch,
    Give,
    Instruction,
    Kernel,
    MeshProgram,
    Receive,
    Region,
    RegionKind,
    Send,
)

MOST_BYTES = 1 << 32
"""Addresses of an element have 32 bits."""

WITH_BOX = frozenset({RegionKind.INPUT, RegionKind.OUTPUT, RegionKind.SUMS})

OF_TENSORS = frozenset({RegionKind.INPUT, RegionKind.OUTPUT})


def structure_findings(program: MeshProgram) -> Iterator[Finding]:
    """Return the places that a program names and does not have."""
    if program.replicas < 1:
        yield _finding("program", "replicas must be at least 1", f"not {program.replicas}")
    seen: set[int] = set()
    for place, element in enumerate(program.elements):
        name = f"elements[{place}]"
        if not 0 <= element.element < program.machine.elements:
            must = f"the element must be below {program.machine.elements}"
            yield _finding(name, must, f"not {element.element}")
        elif element.element in seen:
            yield _finding(name, "an element must have one program", f"{element.element} has two")
        if not 0 <= element.replica < program.replicas:
            must = f"the replica must be below {program.replicas}"
            yield _finding(name, must, f"not {element.replica}")
        seen.add(element.element)
        yield from _StructureCheck(program, element, name).findings()
    yield from _routes(program)


def _finding(place: str, must: str, came: str) -> Finding:
    return Finding(Rule.STRUCTURE, place, must, came)


def _routes(program: MeshProgram) -> Iterator[Finding]:
    elements, links = program.machine.elements, len(program.machine.link_source)
    for index, route in enumerate(program.routes):
        for element in (route.source, *route.targets):
            if not 0 <= element < elements:
                must = f"elements must be below {elements}"
                yield _finding(f"routes[{index}]", must, f"not {element}")
        for link in route.links:
            if not 0 <= link < links:
                must = f"links must be below {links}"
                yield _finding(f"routes[{index}].links", must, f"not {link}")


class _StructureCheck:
    def __init__(self, program: MeshProgram, element: ElementProgram, name: str) -> None:
        self.program = program
        self.network = program.network
        self.element = element
        self.name = name

    def findings(self) -> Iterator[Finding]:
        for index, region in enumerate(self.element.regions):
            yield from self._region(f"{self.name}.regions[{index}]", region)
        for index, instruction in enumerate(self.element.instructions):
            place = f"{self.name}.instructions[{index}]"
            yield from self._instruction(place, instruction)

    def _region(self, place: str, region: Region) -> Iterator[Finding]:
        numbers = {
            "address": (region.address, 0),
            "slot_bytes": (region.slot_bytes, 0),
            "slots": (region.slots, 1),
        }
        for name, (value, least) in numbers.items():
            if not least <= value < MOST_BYTES:
                must = f"must be from {least} to {MOST_BYTES - 1}"
                yield _finding(f"{place}.{name}", must, f"not {value}")
        tensor, box = region.tensor, region.box
        if tensor is not None and not 0 <= tensor < len(self.network.tensors):
            must = f"must be below {len(self.network.tensors)}"
            yield _finding(f"{place}.tensor", must, f"not {tensor}")
            return
        if tensor is not None and region.kind not in OF_TENSORS:
            must = f"{region.kind.value} must have no tensor"
            yield _finding(f"{place}.tensor", must, f"not {tensor}")
        if (box is None) == (region.kind in WITH_BOX):
            must = f"{region.kind.value} must have {'a' if region.kind in WITH_BOX else 'no'} box"
            yield _finding(f"{place}.box", must, f"not {shown(box)}")
        if box is not None:
            yield from self._box(f"{place}.box", box, tensor)

    def _box(self, place: str, box: Box, tensor: int | None) -> Iterator[Finding]:
        shape = None if tensor is None else self.network.tensors[tensor].shape
        extents = shape or tuple(stop for _, stop in box)
        if len(extents) != len(box) or any(
            not 0 <= start < stop <= extent
            for (start, stop), extent in zip(box, extents, strict=True)
        ):
            must = f"must lie within {list(shape)}" if shape is not None else "must not be empty"
            yield _finding(place, must, f"not {shown(box)}")

    def _instruction(self, place: str, instruction: Instruction) -> Iterator[Finding]:
        match instruction:
            case Fetch():
                yield from self._regions(place, [instruction.region])
                yield from self._tensor(place, instruction.tensor, self.network.inputs)
            case Receive() | Send():
                yield from self._regions(place, [instruction.region])
                if not 0 <= instruction.message < len(self.program.routes):
                    must = f"the message must be below {len(self.program.routes)}"
                    yield _finding(place, must, f"not {instruction.message}")
                yield from self._box(f"{place}.box", instruction.box, None)
            case Copy():
                yield from self._regions(place, [instruction.source, instruction.target])
                yield from self._box(f"{place}.box", instruction.box, None)
            case Give():
                yield from self._regions(place, [instruction.region])
                yield from self._tensor(place, instruction.tensor, self.network.outputs)
                yield from self._box(f"{place}.box", instruction.box, None)
            case Compute():
                operands = [each for each in instruction.operands if each is not None]
                held = [] if instruction.constants is None else [instruction.constants]
                named = [*operands, *instruction.sums, *held, instruction.output]
                yield from self._regions(place, named)
                yield from self._kernel(place, instruction)

    def _regions(self, place: str, regions: list[int]) -> Iterator[Finding]:
        count = len(self.element.regions)
        for region in regions:
            if not 0 <= region < count:
                yield _finding(place, f"regions must be below {count}", f"not {region}")

    def _tensor(self, place: str, tensor: int, known: tuple[int, ...]) -> Iterator[Finding]:
        if tensor not in known:
            must = f"the tensor must be one of {', '.join(map(str, known))}"
            yield _finding(place, must, f"not {tensor}")

    def _kernel(self, place: str, instruction: Compute) -> Iterator[Finding]:
        kernel = instruction.kernel
        if not 0 <= kernel.layer < len(self.network.layers):
            must = f"the layer must be below {len(self.network.layers)}"
            yield _finding(place, must, f"not {kernel.layer}")
            return
        layer = self.network.layers[kernel.layer]
        yield from self._box(f"{place}.kernel.box", kernel.box, layer.output)
        if len(instruction.operands) != len(layer.inputs):
            must = f"{layer.name} must have {len(layer.inputs)} operands"
            yield _finding(place, must, f"not {len(instruction.operands)}")
        yield from self._channels(f"{place}.kernel.channels", kernel)

    def _channels(self, place: str, kernel: Kernel) -> Iterator[Finding]:
        layer: Any = self.network.layers[kernel.layer]
        if kernel.channels is None:
            return
        start, stop = kernel.channels
        if layer.kind is not LayerKind.CONVOLUTION or not 0 <= start < stop <= layer.input_channels:
            must = f"must lie within 0:{layer.input_channels} of a convolution"
            yield _finding(place, must, f"not {start}:{stop}")
