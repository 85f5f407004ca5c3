"""The keys of a machine's file, with their units and ranges."""

from __future__ import annotations

from typing import Annotated, Literal

from mizzen.documents.model import Limits, Line, Rows, Section, Word, key

FORMAT = 1
"""The version that a file's first key names."""

LARGEST_SIDE = 256
Count = Annotated[int, Limits(ge=1, le=1 << 16)]
Bytes = Annotated[int, Limits(ge=0, le=1 << 40)]
Rate = Annotated[float, Limits(gt=0, le=1e6)]
Cost = Annotated[float, Limits(ge=0, le=1e6)]
Share = Annotated[float, Limits(gt=0, le=1)]
Side = Annotated[int, Limits(ge=1, le=LARGEST_SIDE)]
Place = tuple[
    Annotated[int, Limits(ge=0, lt=LARGEST_SIDE)], Annotated[int, Limits(ge=0, lt=LARGEST_SIDE)]
]
"""Column and row."""


class ArrayKeys(Section):
    """An output-stationary array of multipliers."""

    rows: Count = key(description="output pixels at a time")
    columns: Count = key(description="output channels at a time")
    accumulator_bits: Annotated[int, Limits(ge=16, le=64)]
    overflow: Literal["wrap", "saturate"]
    depthwise_columns: Count = key(default=1, description="columns that work where depthwise")


class CoreKeys(Section):
    """Cycles of the element's core for what the array does not do."""

    pointwise: Cost = key(description="cycles an output element, an operand")
    partial_sum: Cost = key(description="cycles a partial sum added")
    pooling: Cost = key(description="cycles an element of the window")
    movement: Cost = key(description="cycles an element moved")
    general: Cost = key(description="cycles an element read by any other operation")
    multiply: Cost = key(description="cycles a multiply-accumulate on the core")
    task: Cost = key(description="cycles to begin a tile")


class ElementKeys(Section):
    """A kind of processing element."""

    clock_mhz: Rate
    code_bytes: Bytes
    stack_bytes: Bytes
    data_bytes: Annotated[int, Limits(ge=64, le=1 << 32)]
    array: ArrayKeys | None = None
    core: CoreKeys
    npu: Word | None = key(default=None, description="accelerator configuration")


class RouterKeys(Section):
    """Routers whose elements are other than the chip's usual ones."""

    at: Place
    elements: Annotated[tuple[Word, ...], Limits(max_length=64)]


class ChipKeys(Section):
    """The grid of routers of every chip."""

    columns: Side
    rows: Side
    missing: Rows[Place] = key(default=(), description="places of the grid without a router")
    element: Word = key(description="the kind at every router")
    elements_per_router: Annotated[int, Limits(ge=1, le=64)] = 1
    router: Rows[RouterKeys] = ()
    reserved: Annotated[int, Limits(ge=0, le=1 << 12)] = key(
        default=0, description="elements a chip kept for management, the last ones"
    )


class LinkKeys(Section):
    """Links between neighbouring routers of a chip, and between a router and its elements."""

    clock_mhz: Rate
    bytes_per_cycle: Rate
    port_bytes_per_cycle: Rate
    hop_cycles: Cost


class BoardKeys(Section):
    """How chips are linked."""

    arrangement: Literal["single", "grid", "hex-torus"] = "single"
    columns: Side = 1
    rows: Side = 1
    gbit_per_s: Rate = key(default=1.0, description="of a link, each direction")
    efficiency: Share = key(default=1.0, description="payload of what a link carries")
    latency_ns: Cost = 0.0


class DramKeys(Section):
    """Memory of each chip."""

    router: Place
    size_mib: Count
    gbit_per_s: Rate
    efficiency: Share = 1.0


class HostKeys(Section):
    """Where inputs come in and outputs go out."""

    chip: Annotated[int, Limits(ge=0)] = 0
    router: Place
    gbit_per_s: Rate
    efficiency: Share = 1.0


class EnergyKeys(Section):
    """Energy in picojoules, idle power of a chip in watts."""

    mac_pj: Cost
    memory_byte_pj: Cost
    router_byte_pj: Cost
    chip_link_byte_pj: Cost
    dram_byte_pj: Cost
    idle_w_per_chip: Cost
    source: Annotated[Line, Limits(min_length=1)]


class DeadKeys(Section):
    """What does not work: chips, elements and links by name, as listings write them."""

    chips: Rows[Annotated[int, Limits(ge=0, le=1 << 16)]] = ()
    elements: Rows[Line] = key(default=(), description="`chip 3, router 2,4, element 1`")
    links: Rows[Line] = key(default=(), description="`chip 3, router 2,4 -> chip 3, router 2,5`")


class MachineKeys(Section):
    """A machine's file."""

    format: Literal[1]
    name: Word
    description: Line = ""
    source: Line = key(default="", description="where the figures come from")
    element: Annotated[dict[Word, ElementKeys], Limits(min_length=1, max_length=1024)]
    chip: ChipKeys
    links: LinkKeys
    board: BoardKeys = BoardKeys()
    dram: DramKeys | None = None
    host: HostKeys | None = None
    energy: EnergyKeys
    dead: DeadKeys = DeadKeys()
