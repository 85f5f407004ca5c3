"""Who does what in a program, as the rules ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np

from mizzen.mesh.network.boxes import Box, shape_of, slices, within
from mizzen.mesh.network.network import Layer, Network
from mizzen.mesh.network.regions import Span, needed_boxes
from mizzen.mesh.program.program import (
    SUM_BYTES,
    Compute,
    ElementProgram,
    Kernel,
    MeshProgram,
    Receive,
    Region,
    Send,
)

KEPT = 1 << 14
"""Boxes and how they are written, of which the answer is kept: replicas ask the same."""


@dataclass(frozen=True, slots=True)
class Sending:
    """A `Send`: the program that has it, and its place among the instructions."""

    element: ElementProgram
    place: int
    send: Send


@dataclass(frozen=True, slots=True)
class Receiving:
    """A `Receive`: the program that has it, and its place among the instructions."""

    element: ElementProgram
    place: int
    receive: Receive


@dataclass(eq=False)
class View:
    """A program whose structure holds.

    sends, receives  by message
    computed         the tiles that give a region, by element and region
    """

    program: MeshProgram
    sends: dict[int, list[Sending]] = field(default_factory=dict[int, list[Sending]])
    receives: dict[int, list[Receiving]] = field(default_factory=dict[int, list[Receiving]])
    computed: dict[tuple[int, int], list[Kernel]] = field(
        default_factory=dict[tuple[int, int], list[Kernel]]
    )

    def __post_init__(self) -> None:
        for element in self.program.elements:
            for place, instruction in enumerate(element.instructions):
                match instruction:
                    case Send(message):
                        self.sends.setdefault(message, []).append(
                            Sending(element, place, instruction)
                        )
                    case Receive(message):
                        receiving = Receiving(element, place, instruction)
                        self.receives.setdefault(message, []).append(receiving)
                    case Compute(kernel, output=output):
                        self.computed.setdefault((element.element, output), []).append(kernel)
                    case _:
                        pass
        self.needed = cache(self._needed)

    @property
    def network(self) -> Network:
        """The network."""
        return self.program.network

    def place(self, element: ElementProgram, instruction: int | None = None) -> str:
        """Return how an element, or one of its instructions, is called."""
        name = self.program.machine.element_name(element.element)
        return name if instruction is None else f"{name}, instruction {instruction}"

    def layer(self, kernel: Kernel) -> Layer:
        """Return the layer that a tile is of."""
        return self.network.layers[kernel.layer]

    def _needed(self, layer: int, box: Box, channels: Span | None) -> tuple[Box | None, ...]:
        return needed_boxes(self.network, self.network.layers[layer], box, channels)

    def item_bytes(self, region: Region) -> int:
        """Return the bytes of an element of a region."""
        if region.tensor is None:
            return SUM_BYTES
        return self.network.tensors[region.tensor].item_bytes

    def computes(self) -> Iterator[tuple[ElementProgram, int, Compute]]:
        """Return every `Compute` with its program and its place there."""
        for element in self.program.elements:
            for place, instruction in enumerate(element.instructions):
                if isinstance(instruction, Compute):
                    yield element, place, instruction


@lru_cache(KEPT)
def wrongly_written(box: Box, written: tuple[Box, ...]) -> tuple[int, int]:
    """Return how many elements of a box are not written, and how many more than once."""
    if written == (box,):
        return 0, 0
    count = np.zeros(shape_of(box), np.uint16)
    for each in written:
        common = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, each, strict=True))
        if all(start < stop for start, stop in common):
            count[slices(within(common, box))] += 1
    return int((count == 0).sum()), int((count > 1).sum())
