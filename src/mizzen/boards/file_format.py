"""The keys of a board's file, with types, ranges, and the characters of texts by where they go.

Names of memories become regions of linker scripts, `cpu.core` an option of compilers in make and
CMake, `cpu.qemu` one of QEMU, `title` and names of memory modes stand in comments.
"""

from __future__ import annotations

from typing import Annotated, Literal

from mizzen.boards.board import REGION_COUNT, EnergyOf, MemoryKind, UartKind
from mizzen.documents.model import (
    Entry,
    Identifier,
    Limits,
    Line,
    Many,
    Must,
    Section,
    Some,
    Text,
    Title,
    Word,
)

ADDRESS_LIMIT = 1 << 32
PAGE_BYTES = 0x1000
PORT_SETTINGS = 4
U85_PORTS = 2
Frequency = Annotated[int, Limits(ge=1, le=10**10)]
Interrupt = Annotated[int, Limits(ge=0, le=479)]
Anywhere = Annotated[
    int, Limits(ge=0, lt=ADDRESS_LIMIT), Must(f"be an address below {ADDRESS_LIMIT:#x}", hex)
]
Address = Annotated[Anywhere, Limits(multiple_of=PAGE_BYTES)]
Index = Annotated[int, Limits(ge=0, le=PORT_SETTINGS - 1)]
Four = Annotated[tuple[Entry, ...], Limits(max_length=PORT_SETTINGS)]
Header = Annotated[
    str,
    Limits(pattern=r"[A-Za-z0-9_][A-Za-z0-9_./-]*\.h", max_length=100),
    Must("be the name of a header, as device.h"),
]
SectionName = Annotated[
    str,
    Limits(pattern=r"[A-Za-z_.][A-Za-z0-9_.]*", max_length=100),
    Must("be letters, digits, '_' and '.'"),
]
Url = Annotated[
    str,
    Limits(pattern=r"https://[A-Za-z0-9._/-]+", max_length=200),
    Must("be an address of https"),
]
Factor = Annotated[float, Limits(ge=1, le=1e6)]
Product = Literal["ethos-u55", "ethos-u65", "ethos-u85"]


class CpuKeys(Section):
    """The processor."""

    core: Word
    interrupts: Annotated[int, Limits(ge=1, le=480)] | None = None
    clock_hz: Frequency | None = None
    qemu: Word | None = None


class MemoryKeys(Section):
    """A memory."""

    name: Identifier
    base: Address | None = None
    alias: Address | None = None
    size_kib: Annotated[int, Limits(ge=4, le=ADDRESS_LIMIT >> 10), Limits(multiple_of=4)]
    kind: MemoryKind
    writable: bool
    npu: bool


class PlacementKeys(Section):
    """What of firmware lies in which memory."""

    vectors: str
    code: str
    data: str
    stack: str


class NpuKeys(Section):
    """The NPU."""

    base: Address | None = None
    alias: Address | None = None
    irq: Interrupt | None = None
    products: Annotated[tuple[Product, ...], Limits(min_length=1, max_length=3)]
    accelerators: Some[Word] | None = None
    clock_hz: Frequency | None = None
    driver: Word | None = None


class UartKeys(Section):
    """The serial port of the console."""

    kind: UartKind
    base: Address
    alias: Address | None = None


class SdkKeys(Section):
    """The vendor's software."""

    title: Title
    source: Url
    version: Title
    header: Header
    print: Identifier
    print_header: Header
    main: Identifier
    npu_base: Identifier | None = None
    npu_irq: Identifier | None = None
    handler: Identifier | None = None
    vector: Identifier | None = None
    model_address: Anywhere | None = None
    model_section: SectionName | None = None
    arena_section: SectionName | None = None
    fast_section: SectionName | None = None


class PageKeys(Section):
    """How a network comes onto the board."""

    runtime: Literal["c", "tflm", "tflite"] = "tflm"
    files: Text
    memory: Text
    driver: Text
    measure: Text
    tried: Text


class WindowKeys(Section):
    """Registers that only keep what is written."""

    name: Identifier
    base: Anywhere
    alias: Anywhere | None = None
    size_bytes: Annotated[int, Limits(ge=4, le=PAGE_BYTES)]


class ModeKeys(Section):
    """What lies where in some memory modes of `vela.ini`."""

    names: Some[Word]
    model: str
    arena: str
    fast: str
    qconfig: Index | None = None
    regions: (
        Annotated[tuple[Index, ...], Limits(min_length=REGION_COUNT, max_length=REGION_COUNT)]
        | None
    ) = None


class PortsKeys(Section):
    """How a product drives its ports."""

    product: Product
    reads: Four[Annotated[int, Limits(ge=1, le=64)]]
    writes: Four[Annotated[int, Limits(ge=1, le=32)]]
    beats: Four[Annotated[int, Limits(ge=0, le=2)]]
    attributes: Four[Annotated[int, Limits(ge=0, le=127)]] | None = None


class EnergyKeys(Section):
    """A figure of what the board takes."""

    of: EnergyOf
    value: Annotated[float, Limits(gt=0, le=10**6)]
    error: Factor
    source: Line


class MeasuredMemoryKeys(Section):
    """What was measured of a memory."""

    name: Literal["Sram", "Dram", "OnChipFlash", "OffChipFlash"]
    bytes_per_cycle: Annotated[float, Limits(gt=0, le=1024)]
    read_latency_cycles: Annotated[int, Limits(ge=0, le=100_000)]
    write_latency_cycles: Annotated[int, Limits(ge=0, le=100_000)]
    bytes_per_cycle_error: Factor | None = None
    latency_error: Factor | None = None


class MeasuredKeys(Section):
    """What was measured of the memories, as the NPU sees them."""

    accelerator: Word
    system_config: Word
    source: Line
    memory: Some[MeasuredMemoryKeys]


class BoardKeys(Section):
    """A board's file, with what it inherits."""

    name: Word
    title: Title
    cpu: CpuKeys
    memory: Many[MemoryKeys] = ()
    placement: PlacementKeys | None = None
    npu: NpuKeys
    other_npu: Many[NpuKeys] = ()
    uart: UartKeys | None = None
    timing_adapter: Many[WindowKeys] = ()
    memory_mode: Some[ModeKeys]
    ports: Many[PortsKeys] = ()
    sdk: SdkKeys | None = None
    page: PageKeys | None = None
    measured: MeasuredKeys | None = None
    energy: Many[EnergyKeys] = ()
