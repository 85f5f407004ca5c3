"""The program of an element, its memory, and the routes of messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.machine.work import Work
from mizzen.mesh.network.boxes import Box
from mizzen.mesh.network.network import Network

ALIGNMENT_BYTES = 16
"""Regions begin at multiples of it."""

SUM_BYTES = 4
"""Of an element of a partial sum."""


class RegionKind(Enum):
    """What a part of an element's memory is for."""

    CONSTANTS = "constants"
    INPUT = "input"
    OUTPUT = "output"
    SUMS = "sums"
    SCRATCH = "scratch"


@dataclass(frozen=True, slots=True)
class Region:
    """Part of an element's data memory: `slots` boxes of a tensor, one after the other.

    address   of the first byte, from the begin of the data memory; a multiple of 16
    box       which box of `tensor` a slot holds, dense, the last axis fastest; None for constants
              and scratch, of which `slot_bytes` are kept
    tensor    index in the network; None for partial sums (32-bit), constants and scratch
    """

    kind: RegionKind
    address: int
    slot_bytes: int
    slots: int
    tensor: int | None = None
    box: Box | None = None

    @property
    def end(self) -> int:
        """The address after the last slot."""
        return self.address + self.slot_bytes * self.slots


@dataclass(frozen=True, slots=True)
class Kernel:
    """The tile that a `Compute` computes: a box of a layer's output, over some input channels.

    `channels` is None for a layer without weights to sum over. `adds_sums` is how many partial sums
    it adds; a tile that `gives_sums` gives its own, 32 bits an element, without bias and what
    follows.
    """

    layer: int
    box: Box
    channels: tuple[int, int] | None
    adds_sums: int
    gives_sums: bool


@dataclass(frozen=True, slots=True)
class Fetch:
    """Take a box of a network's input from outside into a region."""

    tensor: int
    region: int


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait until a message of this image is in its region, at `box` in the tensor's coordinates."""

    message: int
    region: int
    box: Box


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy a box from the region of a tile to that of another tile of the same element."""

    source: int
    target: int
    box: Box


@dataclass(frozen=True, slots=True)
class Compute:
    """Compute a tile. The slots of its operands and sums are free afterwards, and senders know it.

    operands  regions of the layer's inputs, in their order; None for an input of which the tile
              needs nothing
    sums      regions of partial sums
    constants region of weights, bias, scaling and tables; None for a tile without
    """

    kernel: Kernel
    operands: tuple[int | None, ...]
    sums: tuple[int, ...]
    constants: int | None
    output: int
    work: Work
    cycles: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send a box of a region as a message, once each of its targets has a slot for it."""

    message: int
    region: int
    box: Box


@dataclass(frozen=True, slots=True)
class Give:
    """Give a box of a network's output to the outside."""

    tensor: int
    region: int
    box: Box


Instruction = Fetch | Receive | Copy | Compute | Send | Give


@dataclass(frozen=True, slots=True)
class ElementProgram:
    """What one element holds and does, image after image of its replica."""

    element: int
    replica: int
    regions: tuple[Region, ...]
    instructions: tuple[Instruction, ...]

    @property
    def data_bytes(self) -> int:
        """Bytes of data memory up to the end of the last region."""
        return max((region.end for region in self.regions), default=0)


@dataclass(frozen=True, slots=True)
class Route:
    """Where a message goes: from an element over links, each once, to elements."""

    source: int
    targets: tuple[int, ...]
    links: tuple[int, ...]
    size_bytes: int


Streams = dict[tuple[str, Kernel], bytes]


@dataclass(frozen=True, eq=False)
class MeshProgram:
    """The programs of all elements of a mapped network, and the routes of all messages.

    Image `n` is replica ``n % replicas``'s; a message's index is its place in `routes`.

    streams  the artifact of a tile, by the accelerator that an element is and the tile; tiles
             without one are computed by the element itself
    """

    machine: Machine
    network: Network
    replicas: int
    elements: tuple[ElementProgram, ...]
    routes: tuple[Route, ...]
    streams: dict[tuple[str, Kernel], bytes] = field(
        default_factory=dict[tuple[str, Kernel], bytes]
    )
