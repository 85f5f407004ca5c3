"""A machine of many elements, in tables: one row an element, a router, a link, a chip."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class Overflow(Enum):
    """What an accumulator does past its range: wrapping sums can be cut, saturating ones cannot."""

    WRAP = "wrap"
    SATURATE = "saturate"


class LinkKind(IntEnum):
    """Between two routers of a chip, or of two chips."""

    ON_CHIP = 0
    BETWEEN_CHIPS = 1


class Arrangement(Enum):
    """How chips are linked: not, to four neighbours, or to six on a torus."""

    SINGLE = "single"
    GRID = "grid"
    HEX_TORUS = "hex-torus"


@dataclass(frozen=True, slots=True)
class MacArray:
    """An output-stationary array: `rows` output pixels by `columns` output channels a cycle.

    The sums are `accumulator_bits` wide; `depthwise_columns` of the columns work in a depthwise
    convolution, whose channels share no input.
    """

    rows: int
    columns: int
    accumulator_bits: int
    overflow: Overflow
    depthwise_columns: int = 1

    @property
    def macs_per_cycle(self) -> int:
        """Multiply-accumulates in a cycle when all of the array works."""
        return self.rows * self.columns


@dataclass(frozen=True, slots=True)
class CoreCosts:
    """Cycles of the element's core for what its array does not do."""

    pointwise: float
    """An output element of an elementwise chain, an operand."""
    partial_sum: float
    """A partial sum added."""
    pooling: float
    """An element of a pooling window."""
    movement: float
    """A byte moved."""
    general: float
    """An element of any other operation."""
    multiply: float
    """A multiply-accumulate on the core, for elements without an array."""
    task: float
    """What it costs to begin a tile: control, and set-up of the array."""


@dataclass(frozen=True, slots=True)
class ElementKind:
    """A kind of element: a core, its memory in bytes, an array of multipliers or none.

    `data_bytes` is what programs have: weights, buffers, scratch. Code and stack lie beside it.
    `npu` names an accelerator configuration where the array is an NPU of its own.
    """

    name: str
    clock_hz: float
    code_bytes: int
    stack_bytes: int
    data_bytes: int
    array: MacArray | None
    core: CoreCosts
    npu: str | None = None


@dataclass(frozen=True, slots=True)
class Dram:
    """Memory of a chip, behind one of its routers."""

    router: int
    size_bytes: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Host:
    """Where inputs come in and outputs go out."""

    router: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Energy:
    """Energy in picojoules, and power in watts, each with its source."""

    mac_pj: float
    memory_byte_pj: float
    router_byte_pj: float
    chip_link_byte_pj: float
    dram_byte_pj: float
    idle_w: float
    """Of the whole machine."""
    source: str


@dataclass(frozen=True, eq=False)
class Machine:
    """Elements at routers, links between routers, chips. Every array has one row for each.

    element_kind, element_router            index into `kinds`, index of a router
    element_dead, element_reserved          does not work; is kept for management
    router_chip, router_x, router_y         chip, and place in the chip's grid
    chip_x, chip_y                          place in the arrangement
    link_source, link_target, link_kind     routers, `LinkKind`; a link has one direction
    link_bytes_per_s, link_latency_s        payload; time from one router to the next
    link_dead                               does not work
    port_bytes_per_s                        each way between a router and its elements, shared
    """

    name: str
    description: str
    kinds: tuple[ElementKind, ...]
    element_kind: Ints
    element_router: Ints
    element_dead: Flags
    element_reserved: Flags
    router_chip: Ints
    router_x: Ints
    router_y: Ints
    chip_x: Ints
    chip_y: Ints
    link_source: Ints
    link_target: Ints
    link_kind: Ints
    link_bytes_per_s: Floats
    link_latency_s: Floats
    link_dead: Flags
    port_bytes_per_s: float
    arrangement: Arrangement
    chip_columns: int
    chip_rows: int
    drams: tuple[Dram, ...]
    host: Host | None
    energy: Energy
    digest: str
    """SHA-256 of what the file says, dead elements and links included."""

    @property
    def elements(self) -> int:
        """How many elements there are, usable or not."""
        return len(self.element_kind)

    @property
    def chips(self) -> int:
        """How many chips there are."""
        return len(self.chip_x)

    @cached_property
    def usable(self) -> Ints:
        """The elements that programs may lie on, in rising order."""
        return np.flatnonzero(~(self.element_dead | self.element_reserved))

    @cached_property
    def element_chip(self) -> Ints:
        """The chip of each element."""
        return self.router_chip[self.element_router]

    @cached_property
    def links_of(self) -> dict[tuple[int, int], int]:
        """Live links by source and target router."""
        live = np.flatnonzero(~self.link_dead)
        sources: Any = self.link_source[live].tolist()
        targets: Any = self.link_target[live].tolist()
        return dict(zip(zip(sources, targets, strict=True), live.tolist(), strict=True))

    def kind_of(self, element: int) -> ElementKind:
        """Return the kind of an element."""
        return self.kinds[int(self.element_kind[element])]

    def element_name(self, element: int) -> str:
        """Return ``chip 3, router 2,4, element 1`` of an element's index."""
        router = int(self.element_router[element])
        first = int(np.searchsorted(self.element_router, router))
        return f"{self.router_name(router)}, element {element - first}"

    def router_name(self, router: int) -> str:
        """Return ``chip 3, router 2,4`` of a router's index."""
        place = f"{self.router_x[router]},{self.router_y[router]}"
        return f"chip {self.router_chip[router]}, router {place}"

    def link_name(self, link: int) -> str:
        """Return ``chip 3, router 2,4 -> chip 3, router 2,5`` of a link's index."""
        source, target = int(self.link_source[link]), int(self.link_target[link])
        return f"{self.router_name(source)} -> {self.router_name(target)}"
