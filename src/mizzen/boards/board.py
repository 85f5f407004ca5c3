"""What a board is: memories, an NPU, a console, and how the NPU reaches memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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


def _known(fact: Fact | None) -> Fact:
    """Return a fact that `require_firmware` has looked for."""
    assert fact is not None, "what firmware needs of a board is asked for first"
    return fact


class EnergyOf(Enum):
    """What a figure of energy is of; the value is its name in a board's file."""

    IDLE = "idle"
    MAC = "mac"
    SRAM = "sram"
    FLASH = "flash"
    DRAM = "dram"

    @property
    def unit(self) -> str:
        """What it is counted in."""
        match self:
            case EnergyOf.IDLE:
                return "mW"
            case EnergyOf.MAC:
                return "pJ"
            case _:
                return "pJ a byte"


@dataclass(frozen=True, slots=True)
class Energy:
    """A figure of what the board takes.

    value   of idle: mW while nothing is computed; of mac: pJ of a multiply-accumulate; of a
            memory: pJ of a byte that is read or written
    error   factor within which it is, 1 or more
    source  who measured it, and what of it was derived
    """

    of: EnergyOf
    value: float
    error: float
    source: str


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
        """Address that firmware is linked to, where the file says."""
        return _known(self.address)

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

    def has(self, accelerator: str) -> bool:
        """Whether it may be this accelerator, as ``ethos-u55-128``, or this product."""
        if accelerator in self.products:
            return True
        return accelerator in self.accelerators or (
            not self.accelerators and accelerator.startswith(self.products)
        )

    @property
    def base(self) -> int:
        """Address of its registers, where the file says."""
        return _known(self.address)

    @property
    def irq(self) -> int:
        """Number of its external interrupt, where the file says."""
        return _known(self.interrupt)


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
        """Clock, where the file says."""
        return _known(self.fastest)

    @property
    def interrupts(self) -> int:
        """External interrupts that it has, where the file says."""
        return _known(self.external)


@dataclass(frozen=True, slots=True)
class Sdk:
    """The vendor's software for a board, and how sources of ours join a project of it.

    title           what it is called
    source          where it comes from
    version         which one the facts were read in
    header          its header with the processor's functions
    print           writes as `printf` does; `print_header` declares it
    main            what the example is called
    npu_base        its names of the NPU's address and interrupt; None where it starts the NPU
    handler         the function that is the NPU's vector; None where there is none
    vector          sets an interrupt's handler; None where none does
    model_address   flash that the model is written to by itself; None where it is linked
    sections        of its linker script, by role; those that are not there are the compiler's own
    """

    title: str
    source: str
    version: str
    header: str
    print: str
    print_header: str
    main: str
    npu_base: str | None
    npu_irq: str | None
    handler: str | None
    vector: str | None
    model_address: int | None
    sections: Mapping[Role, str]


@dataclass(frozen=True, slots=True)
class Page:
    """What people do to bring a network onto the board: paragraphs in Markdown.

    runtime  that most networks take there, as `mizzen export --to` takes it
    files    where the files go, and how the project is built
    memory   where model and arena lie
    driver   how the NPU is started
    measure  how long an inference takes
    tried    how far this was followed by those who wrote it
    """

    runtime: str
    files: str
    memory: str
    driver: str
    measure: str
    tried: str


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """What was measured of a memory.

    name             in `vela.ini`: Sram, Dram, OnChipFlash, OffChipFlash
    bytes_per_cycle  at most, in a cycle of the NPU's clock; latencies are in such cycles
    rate_error, latency_error  factors by which they may well be more or less; None for one that
                     the counts did not tell, which is the system configuration's
    """

    name: str
    bytes_per_cycle: float
    read_latency_cycles: int
    write_latency_cycles: int
    rate_error: float | None = None
    latency_error: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of a board's memories, as one NPU of it sees them.

    system_config  section of `vela.ini` that has all else of the memories
    source         the log, and what was measured
    """

    accelerator: str
    system_config: str
    source: str
    memories: tuple[MeasuredMemory, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """One board, as its file says it.

    places   memory of each role that firmware has; empty where the file places none
    npus     those that the processor drives, the preferred one first
    console  None where the file does not say: what firmware writes goes to the debugger
    sdk      the vendor's software, which firmware is built in; None where there is none
    page     how a network comes onto it; None where nobody wrote that
    measured what the memories are like, as measured; None where nobody measured
    energy   figures of what it takes; empty where there is none with a source
    """

    name: str
    title: str
    cpu: Cpu
    memories: tuple[Memory, ...]
    places: Mapping[Role, str]
    npus: tuple[Npu, ...]
    console: Uart | None
    timing_adapters: tuple[Window, ...]
    modes: tuple[MemoryMode, ...]
    ports: tuple[Ports, ...]
    sdk: Sdk | None = None
    page: Page | None = None
    measured: Measured | None = None
    energy: tuple[Energy, ...] = ()

    @property
    def npu(self) -> Npu:
        """The NPU that is taken where nobody asks for another."""
        return self.npus[0]

    @property
    def mapped(self) -> tuple[Memory, ...]:
        """The memories that the file gives an address."""
        return tuple(memory for memory in self.memories if memory.address is not None)

    @property
    def accelerators(self) -> tuple[str, ...]:
        """The configurations of its NPUs, as ``ethos-u55-128``; empty where no file says."""
        return tuple(name for npu in self.npus for name in npu.accelerators)

    @property
    def products(self) -> tuple[str, ...]:
        """The products of its NPUs, as ``ethos-u55``, each once."""
        return tuple(dict.fromkeys(name for npu in self.npus for name in npu.products))

    @property
    def own_accelerator(self) -> str:
        """The first NPU that it has; of a product without a size, 256 MACs, which each one has."""
        return self.accelerators[0] if self.accelerators else f"{self.npu.products[0]}-256"

    def for_npu(self, accelerator: str) -> Board:
        """Return the board with the NPU for an accelerator first. E415, E442 if it has none."""
        self.require_npu(accelerator)
        chosen = next(npu for npu in self.npus if npu.has(accelerator))
        return replace(self, npus=(chosen, *(npu for npu in self.npus if npu is not chosen)))

    def memory(self, role: Role, mode: MemoryMode | None = None) -> Memory:
        """Return the memory of a role in a memory mode, the first one's by default."""
        chosen = mode or self.modes[0]
        name = _known((self.places if role in OF_BOARD else chosen.places).get(role))
        return next(memory for memory in self.memories if memory.name == name)

    def mode(self, name: str) -> MemoryMode:
        """Return how a memory mode is laid out. E415 if the board does not say."""
        chosen = self.mode_of(name)
        if chosen is None:
            known = ", ".join(name for mode in self.modes for name in mode.names)
            raise fail("E415", f"the memory mode on {self.name} must be {known}, not {name!r}")
        return chosen

    def mode_of(self, name: str) -> MemoryMode | None:
        """Return how a memory mode is laid out, None if the board does not say."""
        return next((mode for mode in self.modes if name in mode.names), None)

    def mode_like(self, name: str) -> str:
        """Return the memory mode to take where none is asked for: this one, else the first."""
        return self.modes[0].names[0] if self.mode_of(name) is None else name

    def require_npu(self, accelerator: str) -> None:
        """Refuse an accelerator, as ``ethos-u55-128``, that the board has not.

        E415 for another product, E442 for another configuration of one that it has.
        """
        if any(npu.has(accelerator) for npu in self.npus):
            return
        if not accelerator.startswith(self.products):
            known = ", ".join(self.products)
            raise fail(
                "E415",
                f"the NPU on {self.name} must be of {known}, not {accelerator!r}",
                help=f"compile the network with --accelerator-config {self.own_accelerator}",
            )
        known = self.accelerators
        raise fail(
            "E442",
            f"the NPU on {self.name} must be {' or '.join(known)}, not {accelerator!r}",
            help=f"compile the network with --accelerator-config {known[0]}",
        )

    def ports_of(self, accelerator: str) -> Ports:
        """Return the port settings for an accelerator. E415, E442 if the board has it not."""
        self.require_npu(accelerator)
        return next(each for each in self.ports if accelerator.startswith(each.product))
