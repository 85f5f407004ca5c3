"""The accelerators there are, and the configuration that a network is compiled for.

Tables of rows: accelerators, architectures, and what each takes when nothing else is asked for.
`EthosUConfiguration` is the configuration in force: every resolved number, and where it came from.

Ref: Arm Ethos-U55, U65 and U85 product briefs and technical reference manuals (MACs, ports);
Vela 5.2.0, architecture_features.py (bus widths, address ranges) and the CONFIG words it writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import Diagnostic
from mizzen.targets.ethos_u.machine.commands import Arch


class Port(Enum):
    """A bus of the NPU; the value is its name in `vela.ini`."""

    AXI0 = "Axi0"
    AXI1 = "Axi1"


class Memory(Enum):
    """A kind of memory behind a port; the value is its name in `vela.ini`."""

    SRAM = "Sram"
    DRAM = "Dram"
    ON_CHIP_FLASH = "OnChipFlash"
    OFF_CHIP_FLASH = "OffChipFlash"


class Optimise(Enum):
    """What the compiler tries for; the value is its name on the command line."""

    PERFORMANCE = "Performance"
    SIZE = "Size"


class TensorAllocator(Enum):
    """How the compiler places tensors in memory; the value is its name on the command line."""

    LINEAR = "LinearAlloc"
    GREEDY = "Greedy"
    HILL_CLIMB = "HillClimb"


class Feature(Enum):
    """What the compiler may do, and can be told to leave; the value is the command line's word.

    Ref: Vela 5.2.0, ``--disable-chaining`` and its like.
    """

    CHAINING = "chaining"
    """Several operations as one, on U85."""
    FAST_WEIGHTS = "fwd"
    """Weights in the format that U85 decodes fast."""
    CASCADING = "cascading"
    """Operations one after the other by stripes, so that maps between them are never whole."""
    BUFFERING = "buffering"
    """Weights brought to SRAM while the operation before is at work."""
    INPUT_REUSE = "ifm-reuse"
    """An operation's result in the place of what it takes."""


class Generator(Enum):
    """Whose code a network gets; the value is its name on the command line."""

    OWN = "own"
    VELA = "vela"
    """Arm's compiler's, for TFLite and TOSA files as they are."""
    BEST = "best"
    """Of both networks, whole as they are, the better one's."""


class Search(Enum):
    """How long to look for a good schedule; the value is its name on the command line."""

    FAST = "fast"
    THOROUGH = "thorough"


@dataclass(frozen=True, slots=True)
class ArchTraits:
    """What the accelerators of one architecture share.

    axi_bytes_per_cycle    width of one port
    address_bits           width of an address on a port
    second_port_writes     whether Axi1 can be written; on U55 it is read-only (TRM, AXI M1)
    system_config          taken when none is asked for, like `memory_mode`
    """

    arch: Arch
    axi_bytes_per_cycle: int
    address_bits: int
    second_port_writes: bool
    system_config: str
    memory_mode: str

    @property
    def largest_address(self) -> int:
        """One past the largest byte offset that a port can reach."""
        return 1 << self.address_bits


TRAITS: dict[Arch, ArchTraits] = {
    traits.arch: traits
    for traits in (
        #          arch      bytes bits writes system configuration          memory mode
        ArchTraits(Arch.U55, 8, 32, False, "Ethos_U55_High_End_Embedded", "Shared_Sram"),
        ArchTraits(Arch.U65, 16, 40, True, "Ethos_U65_High_End", "Dedicated_Sram_384KB"),
        ArchTraits(Arch.U85, 16, 40, True, "Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
    )
}
"""Architectures, with the pair of system configuration and memory mode that each takes by default.

The pairs are those of ExecuTorch's `EthosUCompileSpec`, because a board's firmware is built for
such a pair. Vela's own defaults differ for U65 (Ethos_U65_Client_Server) and for U85
(Dedicated_Sram_384KB); whatever is in force is always shown.
"""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One product configuration.

    macs            8-bit multiply-accumulates per cycle, over all cores
    shram_kib       shared buffer over all cores in KiB; None for U85, which has none
    weight_streams  streams that the weights of one operation are divided into
    config_word     the CONFIG register that a driver finds, and that the payload must name
    """

    name: str
    arch: Arch
    macs: int
    cores: int
    shram_kib: int | None
    weight_streams: int
    config_word: int

    @property
    def traits(self) -> ArchTraits:
        """What it shares with all of its architecture."""
        return TRAITS[self.arch]

    @property
    def macs_per_core(self) -> int:
        """8-bit multiply-accumulates per cycle of one core."""
        return self.macs // self.cores


ACCELERATORS: dict[str, Accelerator] = {
    accelerator.name: accelerator
    for accelerator in (
        #           name, arch, macs, cores, shared KiB, weight streams, CONFIG
        Accelerator("ethos-u55-32", Arch.U55, 32, 1, 16, 1, 0x0000_1005),
        Accelerator("ethos-u55-64", Arch.U55, 64, 1, 16, 1, 0x0000_1006),
        Accelerator("ethos-u55-128", Arch.U55, 128, 1, 24, 1, 0x0000_1807),
        Accelerator("ethos-u55-256", Arch.U55, 256, 1, 48, 1, 0x0000_3008),
        Accelerator("ethos-u65-256", Arch.U65, 256, 1, 48, 1, 0x1000_3008),
        Accelerator("ethos-u65-512", Arch.U65, 512, 2, 96, 2, 0x1000_6009),
        Accelerator("ethos-u85-128", Arch.U85, 128, 1, None, 1, 0x2000_0117),
        Accelerator("ethos-u85-256", Arch.U85, 256, 1, None, 1, 0x2000_0118),
        Accelerator("ethos-u85-512", Arch.U85, 512, 1, None, 2, 0x2000_1119),
        Accelerator("ethos-u85-1024", Arch.U85, 1024, 1, None, 4, 0x2000_251A),
        Accelerator("ethos-u85-2048", Arch.U85, 2048, 1, None, 4, 0x2000_261B),
    )
}
"""Every name that `--accelerator-config` takes."""


@dataclass(frozen=True, slots=True)
class MemoryTiming:
    """The memory behind a port, as seen from the NPU.

    clock_scale      the memory's clock over the NPU's
    ports            ports of this kind in use
    burst_bytes      longest burst
    latencies        in cycles of the NPU
    max_reads        outstanding reads and writes; None where not given
    """

    memory: Memory
    clock_scale: float = 1.0
    ports: int = 1
    burst_bytes: int = 1
    read_latency_cycles: int = 0
    write_latency_cycles: int = 0
    max_reads: int | None = None
    max_writes: int | None = None


@dataclass(frozen=True, slots=True)
class SystemConfig:
    """A resolved `System_Config` section: the NPU's clock and what is behind its ports."""

    name: str
    core_clock_hz: float
    axi0: MemoryTiming
    axi1: MemoryTiming

    def behind(self, port: Port) -> MemoryTiming:
        """Return the memory behind a port."""
        return self.axi0 if port is Port.AXI0 else self.axi1


@dataclass(frozen=True, slots=True)
class MemoryMode:
    """A resolved `Memory_Mode` section: through which port the NPU reaches what.

    constants   weights and other read-only data
    arena       feature maps
    cache       the SRAM that stages what the arena or the constants hold
    arena_cache_size_bytes  as the section gives it; None where it does not
    """

    name: str
    constants: Port
    arena: Port
    cache: Port
    arena_cache_size_bytes: int | None

    @property
    def spills(self) -> bool:
        """Whether feature maps live outside the cache and are staged in it."""
        return self.arena is not self.cache


@dataclass(frozen=True, slots=True)
class Setting:
    """One resolved value: its name in `vela.ini` or on the command line, and who set it."""

    name: str
    value: str | int | float
    source: str

    def as_dict(self) -> dict[str, object]:
        """Return the setting as JSON-ready data."""
        return {"name": self.name, "value": self.value, "source": self.source}


@dataclass(frozen=True, slots=True)
class EthosUConfiguration:
    """The configuration in force.

    files                   the `vela.ini` files read, in order
    arena_cache_size_bytes  SRAM the compiler plans with: command line, memory mode, or everything
    ignore_ops              types of operators that stay on the CPU because the user said so
    settings                every value, and where it came from
    warnings                what is in doubt about the combination
    tensor_alignment_bytes  of tensors that the CPU reads or writes, a power of two
    disabled                what the compiler must leave
    rewrites                exact rewrites of TFLite networks before they are compiled, in order
    generator               whose code it is to be, on U55 and U65; U85 has Vela's
    search                  how long to look for a schedule of our own
    """

    accelerator: Accelerator
    system: SystemConfig
    mode: MemoryMode
    files: tuple[str, ...]
    optimise: Optimise
    arena_cache_size_bytes: int
    ignore_ops: tuple[str, ...]
    settings: tuple[Setting, ...]
    warnings: tuple[Diagnostic, ...] = ()
    tensor_allocator: TensorAllocator = TensorAllocator.HILL_CLIMB
    tensor_alignment_bytes: int = 16
    disabled: tuple[Feature, ...] = ()
    rewrites: tuple[str, ...] = ()
    generator: Generator = Generator.OWN
    search: Search = Search.FAST

    def memory(self, port: Port) -> Memory:
        """Return the kind of memory behind a port."""
        return self.system.behind(port).memory

    def bandwidth_bytes_per_second(self, port: Port) -> float:
        """Return the peak bandwidth of a port."""
        timing = self.system.behind(port)
        per_cycle = self.accelerator.traits.axi_bytes_per_cycle * timing.ports
        return per_cycle * timing.clock_scale * self.system.core_clock_hz

    def as_dict(self) -> dict[str, object]:
        """Return the configuration as JSON-ready data."""
        return {
            "accelerator": self.accelerator.name,
            "system_config": self.system.name,
            "memory_mode": self.mode.name,
            "optimise": self.optimise.value,
            "files": list(self.files),
            "settings": [setting.as_dict() for setting in self.settings],
        }
