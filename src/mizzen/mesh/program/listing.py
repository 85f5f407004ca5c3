"""The program of an element as text: its memory, then what it does for each image."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.escaping import one_line
from mizzen.mesh.program.checker.findings import shown
from mizzen.mesh.program.program import (
    Compute,
    Copy,
    ElementProgram,
    Fetch,
    Give,
    Instruction,
    MeshProgram,
    Receive,
    Region,
    Send,
)

NAME_CHARACTERS = 40
"""Of a tensor's or a layer's name; longer ones keep their end."""


def listing(program: MeshProgram, element: int) -> str:
    """Return the program of an element as text, without a trailing newline.

    An element without a program has one line that says so.
    """
    name = program.machine.element_name(element)
    for candidate in program.elements:
        if candidate.element == element:
            return "\n".join(_Listing(program, candidate).lines())
    return f"{name} has no program"


class _Listing:
    def __init__(self, program: MeshProgram, element: ElementProgram) -> None:
        self.program = program
        self.network = program.network
        self.element = element

    def lines(self) -> Iterator[str]:
        """Return the lines: what the element is, its memory, its instructions."""
        program, element = self.program, self.element
        room = program.machine.kind_of(element.element).data_bytes
        computed = [each for each in element.instructions if isinstance(each, Compute)]
        cycles = sum(each.cycles for each in computed)
        yield (
            f"{program.machine.element_name(element.element)}: replica {element.replica} of "
            f"{program.replicas}, {cycles} cycles an image"
        )
        yield ""
        yield f"memory, {element.data_bytes} of {room} bytes"
        for index, region in enumerate(element.regions):
            yield f"  r{index:<3} {self._region(region)}"
        yield ""
        yield "for each image"
        for index, instruction in enumerate(element.instructions):
            yield f"  {index:<4} {self._instruction(instruction)}"

    def _tensor(self, index: int) -> str:
        return _short(self.network.tensors[index].name)

    def _region(self, region: Region) -> str:
        size = (
            f"{region.slot_bytes}" if region.slots == 1 else f"{region.slots} x {region.slot_bytes}"
        )
        head = f"0x{region.address:05x}  {region.kind.value:<9}  {size:>12}"
        if region.box is None:
            return head
        what = "partial sums" if region.tensor is None else self._tensor(region.tensor)
        return f"{head}  {what} {shown(region.box)}"

    def _instruction(self, instruction: Instruction) -> str:
        match instruction:
            case Fetch(tensor, region):
                return f"FETCH    r{region} <- input {self._tensor(tensor)}"
            case Receive(message, region, box):
                source = self.program.machine.element_name(self.program.routes[message].source)
                return f"RECEIVE  r{region} {shown(box)} <- message {message} from {source}"
            case Copy(source, target, box):
                return f"COPY     r{target} {shown(box)} <- r{source}"
            case Compute():
                return self._compute(instruction)
            case Send(message, region, box):
                route = self.program.routes[message]
                count = len(route.targets)
                where = (
                    self.program.machine.element_name(route.targets[0])
                    if count == 1
                    else f"{count} elements"
                )
                return (
                    f"SEND     r{region} {shown(box)} -> message {message} to {where}, "
                    f"{route.size_bytes} bytes"
                )
            case Give(tensor, region, box):
                return f"GIVE     r{region} {shown(box)} -> output {self._tensor(tensor)}"

    def _compute(self, compute: Compute) -> str:
        kernel = compute.kernel
        layer = self.network.layers[kernel.layer]
        taken = [f"r{each}" for each in compute.operands if each is not None]
        taken += [f"sums r{each}" for each in compute.sums]
        if compute.constants is not None:
            taken.append(f"constants r{compute.constants}")
        over = ""
        if kernel.channels is not None:
            over = f" over channels {kernel.channels[0]}:{kernel.channels[1]}"
        gives = " partial sums" if kernel.gives_sums else ""
        return (
            f"COMPUTE  r{compute.output} {shown(kernel.box)}{gives} <- {layer.kind.value} "
            f"{_short(layer.name)}({', '.join(taken)}){over}, {compute.cycles} cycles"
        )


def _short(name: str) -> str:
    text = one_line(name)
    return text if len(text) <= NAME_CHARACTERS else f"...{text[-NAME_CHARACTERS:]}"
