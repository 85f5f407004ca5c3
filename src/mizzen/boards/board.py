"""What a board is: memories, an NPU, a console, and how the NPU reaches memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

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


Fact = TypeVar("Fact")


def _known(fact: Fact | None, what: str, where: str) -> Fact:
    """Return a fact of a board's file; E441 for what firmware needs and it does not say."""
    if fact is None:
        raise fail(
            "E441",
            f"firmware needs {what}, which the board's file does not say",
            help=f"give {where}, in a file of your own that inherits the board's",
        )
    return fact


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory.

    address       that firmware is linked to; None where the board's file does not say
    alias         the same bytes in the other security state; None if there is no other address
    npu           whether the NPU's ports reach it
    """

    name: str
    address: int | None
    alias: int | None
    size_bytes: int
    kind: MemoryKind
    writable: bool
    npu: bool

    @property
    def base(self) -> int:
        """Address that firmware is linked to. E441 where the file does not say."""
        return _known(self.address, f"the address of {self.name}", "base in its [[memory]]")

    @property
    def bases(self) -> tuple[int, ...]:
        """Every address at which the memory begins."""
        return (self.base,) if self.alias is None else (self.base, self.alias)


@dataclass(frozen=True, slots=True)
class Npu:
    """What the NPU is, and where; None where the board's file does not say.

    address, alias  registers, as firmware is linked to them and in the other security state
    interrupt       number of its external interrupt
    products        architectures that the board may have, as ``ethos-u55``
    accelerators    configurations that it may have, as ``ethos-u55-128``; empty for any of these
    clock_hz        the fastest that it runs at
    driver          version of Arm's core driver that the board's software has
    """

    address: int | None
    alias: int | None
    interrupt: int | None
    products: tuple[str, ...]
    accelerators: tuple[str, ...] = ()
    clock_hz: int | None = None
    driver: str | None = None

    @property
    def base(self) -> int:
        """Address of its registers. E441 where the file does not say."""
        return _known(self.address, "the address of the NPU's registers", "base in [npu]")

    @property
    def irq(self) -> int:
        """Number of its external interrupt. E441 where the file does not say."""
        return _known(self.interrupt, "the NPU's interrupt", "irq in [npu]")


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
    queue    QCONFIG: the index of port settings that the command stream is read with
    regions  REGIONCFG: the index of each region; empty where the file does not say
    """

    names: tuple[str, ...]
    places: Mapping[Role, str]
    queue: int | None
    regions: tuple[int, ...]

    @property
    def qconfig(self) -> int:
        """The QCONFIG word. E441 where the file does not say."""
        return _known(self.queue, "the port of the command stream", "qconfig in [[memory_mode]]")

    @property
    def regioncfg(self) -> int:
        """The REGIONCFG word: two bits a region, region 0 lowest. E441 where nothing says so."""
        regions = _known(self.regions or None, "the ports of regions", "regions in [[memory_mode]]")
        return sum(index << 2 * region for region, index in enumerate(regions))


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

    core      as compilers name it, ``cortex-m55``
    external  interrupts that it has; None where the board's file does not say
    fastest   clock in Hz; None where the file does not say
    qemu      machine of qemu-system-arm that has the same map; None if none has
    """

    core: str
    external: int | None
    fastest: int | None
    qemu: str | None

    @property
    def clock_hz(self) -> int:
        """Clock. E441 where the file does not say."""
        return _known(self.fastest, "the processor's clock", "clock_hz in [cpu]")

    @property
    def interrupts(self) -> int:
        """External interrupts that it has. E441 where the file does not say."""
        return _known(self.external, "how many interrupts the processor has", "interrupts in [cpu]")


@dataclass(frozen=True, slots=True)
class Board:
    """One board, as its file says it.

    places   memory of each role that firmware has; empty where the file places none
    console  None where the file does not say
    """

    name: str
    title: str
    cpu: Cpu
    memories: tuple[Memory, ...]
    places: Mapping[Role, str]
    npu: Npu
    console: Uart | None
    timing_adapters: tuple[Window, ...]
    modes: tuple[MemoryMode, ...]
    ports: tuple[Ports, ...]

    @property
    def uart(self) -> Uart:
        """The console's serial port. E441 where the file does not say."""
        return _known(self.console, f"the console of {self.name}", "a table [uart]")

    def memory(self, role: Role, mode: MemoryMode | None = None) -> Memory:
        """Return the memory of a role in a memory mode, the first one's by default."""
        chosen = mode or self.modes[0]
        name = (self.places if role in OF_BOARD else chosen.places).get(role)
        chosen_name = _known(name, f"the memory of {role.value} on {self.name}", "a [placement]")
        return next(memory for memory in self.memories if memory.name == chosen_name)

    def mode(self, name: str) -> MemoryMode:
        """Return how a memory mode is laid out. E415 if the board does not say."""
        chosen = next((mode for mode in self.modes if name in mode.names), None)
        if chosen is None:
            known = ", ".join(name for mode in self.modes for name in mode.names)
            raise fail("E415", f"the memory mode on {self.name} must be {known}, not {name!r}")
        return chosen

    def require_npu(self, accelerator: str) -> None:
        """Refuse an accelerator, as ``ethos-u55-128``, that the board has not.

        E415 for another product, E442 for another configuration of one that it has.
        """
        if not accelerator.startswith(self.npu.products):
            known = ", ".join(self.npu.products)
            raise fail("E415", f"the NPU on {self.name} must be of {known}, not {accelerator!r}")
        known = self.npu.accelerators
        if known and accelerator not in known and accelerator not in self.npu.products:
            raise fail(
                "E442",
                f"the NPU on {self.name} must be {', '.join(known)}, not {accelerator!r}",
                help=f"compile the network with --accelerator-config {known[0]}",
            )

    def ports_of(self, accelerator: str) -> Ports:
        """Return the port settings for an accelerator. E415, E442 if not there, E441 if unsaid."""
        self.require_npu(accelerator)
        own = next((each for each in self.ports if accelerator.startswith(each.product)), None)
        return _known(own, f"the NPU's ports on {self.name}", "a table [[ports]]")
