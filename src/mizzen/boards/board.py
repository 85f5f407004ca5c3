"""What a board is: memories, an NPU, a console, and how the NPU reaches memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import fail

REGION_COUNT = 8
"""Base pointers of every Ethos-U, each with two bits in REGIONCFG."""


class MemoryKind(Enum):
    """What a memory is made of; the value is its name in a board's file."""

    TCM = "tcm"
    SRAM = "sram"
    FLASH = "flash"
    DRAM = "dram"


class Role(Enum):
    """What firmware keeps in a memory; the value is its name in a board's file.

    vectors, code, data and stack are placed by the board, the rest by a memory mode: the model
    (command streams and weights), the arena (feature maps), the fast memory that stages both.
    """

    VECTORS = "vectors"
    CODE = "code"
    DATA = "data"
    STACK = "stack"
    MODEL = "model"
    ARENA = "arena"
    FAST = "fast"


OF_BOARD = (Role.VECTORS, Role.CODE, Role.DATA, Role.STACK)
OF_MODE = (Role.MODEL, Role.ARENA, Role.FAST)


class UartKind(Enum):
    """A serial port's register layout; the value is its name in a board's file."""

    CMSDK = "cmsdk"
    PL011 = "pl011"


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory.

    base          address that firmware is linked to
    alias         the same bytes in the other security state; None if there is no other address
    npu           whether the NPU's ports reach it
    """

    name: str
    base: int
    alias: int | None
    size_bytes: int
    kind: MemoryKind
    writable: bool
    npu: bool

    @property
    def bases(self) -> tuple[int, ...]:
        """Every address at which the memory begins."""
        return (self.base,) if self.alias is None else (self.base, self.alias)


@dataclass(frozen=True, slots=True)
class Npu:
    """Where the NPU is.

    base, alias  registers, as firmware is linked to them and in the other security state
    irq          number of its external interrupt
    products     architectures that the board may have, as ``ethos-u55``
    """

    base: int
    alias: int | None
    irq: int
    products: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Uart:
    """The serial port that the console is on."""

    kind: UartKind
    base: int
    alias: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """A page of registers that only keep what is written, such as a timing adapter."""

    name: str
    base: int
    alias: int | None
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryMode:
    """How a compiler's memory mode is laid out on the board.

    names    memory modes of `vela.ini` that it is for
    places   memory of each role
    qconfig  QCONFIG: the index of port settings that the command stream is read with
    regions  REGIONCFG: the index of each region
    """

    names: tuple[str, ...]
    places: Mapping[Role, str]
    qconfig: int
    regions: tuple[int, ...]

    @property
    def regioncfg(self) -> int:
        """The REGIONCFG word: two bits a region, region 0 lowest."""
        return sum(index << 2 * region for region, index in enumerate(self.regions))


@dataclass(frozen=True, slots=True)
class PortLimits:
    """Transactions in flight and burst alignment of a port.

    beats  0 for 64 bytes, 1 for 128, 2 for 256
    """

    reads: int
    writes: int
    beats: int


@dataclass(frozen=True, slots=True)
class Ports:
    """How one product drives its ports: the four settings that QCONFIG and REGIONCFG index.

    limits  U55, U65: AXI_LIMIT0 to AXI_LIMIT3. U85: AXI_SRAM and AXI_EXT
    attributes  U85: MEM_ATTR0 to MEM_ATTR3; empty for others
    """

    product: str
    limits: tuple[PortLimits, ...]
    attributes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processor.

    core        as compilers name it, ``cortex-m55``
    interrupts  external interrupts that it has
    qemu        machine of qemu-system-arm that has the same map; None if none has
    """

    core: str
    interrupts: int
    clock_hz: int
    qemu: str | None


@dataclass(frozen=True, slots=True)
class Board:
    """One board, as its file says it."""

    name: str
    title: str
    cpu: Cpu
    memories: tuple[Memory, ...]
    places: Mapping[Role, str]
    npu: Npu
    uart: Uart
    timing_adapters: tuple[Window, ...]
    modes: tuple[MemoryMode, ...]
    ports: tuple[Ports, ...]

    def memory(self, role: Role, mode: MemoryMode | None = None) -> Memory:
        """Return the memory of a role in a memory mode, the first one's by default."""
        chosen = mode or self.modes[0]
        name = (self.places if role in OF_BOARD else chosen.places)[role]
        return next(memory for memory in self.memories if memory.name == name)

    def mode(self, name: str) -> MemoryMode:
        """Return how a memory mode is laid out. E415 if the board does not say."""
        found = next((mode for mode in self.modes if name in mode.names), None)
        if found is None:
            known = ", ".join(name for mode in self.modes for name in mode.names)
            raise fail("E415", f"the memory mode on {self.name} must be {known}, not {name!r}")
        return found

    def ports_of(self, accelerator: str) -> Ports:
        """Return the port settings for an accelerator, as ``ethos-u55-128``. E415 if not there."""
        found = next((row for row in self.ports if accelerator.startswith(row.product)), None)
        if found is None or found.product not in self.npu.products:
            known = ", ".join(self.npu.products)
            raise fail("E415", f"the NPU on {self.name} must be of {known}, not {accelerator!r}")
        return found
