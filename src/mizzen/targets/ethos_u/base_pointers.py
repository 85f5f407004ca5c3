"""The eight regions of a command stream: base pointers, AXI ports, and what must fit in them.

Every address of a stream counts from the base pointer of a region. A runtime gives the driver the
base pointers; the registers REGIONCFG and QCONFIG say which AXI port serves each region and the
stream itself, and firmware sets them at build time, because the compiler's memory mode decides
where regions lie. A wrong mapping changes no result, but the timing, or ends in a bus error.

Ref: Arm Ethos-U core driver, `ethosu_config_u55.h`, `ethosu_config_u65.h`, `ethosu_config_u85.h`
(defaults), `ethosu*_interface.h` (registers); ExecuTorch, `examples/arm` (values per memory mode).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import fail
from mizzen.isa import Register, bits, number
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.program import Program, RegionIndex, TensorAddress

REGION_COUNT = 8
"""Base pointers of every product (register BASEP0 to BASEP7)."""

BASE_ALIGNMENT_BYTES = 16
"""The driver refuses base pointers that are no multiple of this."""

ADDRESS_BITS: dict[Arch, int] = {Arch.U55: 32, Arch.U65: 40, Arch.U85: 40}
"""Width of an address on the AXI ports (register BASEP)."""


class Port(Enum):
    """An AXI port of the NPU, by the name that compilers' memory modes use."""

    SRAM = "Axi0"
    EXTERNAL = "Axi1"


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """Which port serves the read-only data, the arena (scratch), and the cache (fast scratch)."""

    constants: Port
    arena: Port
    cache: Port


MEMORY_MODES: dict[str, MemoryMap] = {
    "Sram_Only": MemoryMap(Port.SRAM, Port.SRAM, Port.SRAM),
    "Shared_Sram": MemoryMap(Port.EXTERNAL, Port.SRAM, Port.SRAM),
    "Dedicated_Sram": MemoryMap(Port.EXTERNAL, Port.EXTERNAL, Port.SRAM),
}
"""Memory modes that Vela's `vela.ini` names: const_mem_area, arena_mem_area, cache_mem_area."""


REGIONCFG = Register(
    "REGIONCFG",
    tuple(
        number(f"region{index}", bits(2 * index + 1, 2 * index), doc="Index of port attributes")
        for index in range(REGION_COUNT)
    ),
    doc="Port attributes of each region",
    source="ethosu55_interface.h, ethosu65_interface.h, ethosu85_interface.h: regioncfg_r",
)


@dataclass(frozen=True, slots=True)
class RegionConfiguration:
    """What firmware writes: QCONFIG for the command stream, and an index for each region.

    Indices 0 and 1 are attributes of the SRAM port, 2 and 3 of the external port, if the firmware
    leaves the driver's attributes as they are.
    """

    qconfig: int
    indices: tuple[int, ...]

    @property
    def regioncfg(self) -> int:
        """The REGIONCFG register."""
        values = {f"region{index}": value for index, value in enumerate(self.indices)}
        return REGIONCFG.pack(values)

    def port(self, region: int) -> Port:
        """Return the port that serves a region; E540 if there is no such region."""
        return _PORT_OF_INDEX[self.indices[require_region(region)]]

    @property
    def defines(self) -> tuple[str, ...]:
        """The settings as the core driver's preprocessor definitions."""
        regions = (f"NPU_REGIONCFG_{index}={value}" for index, value in enumerate(self.indices))
        return (f"NPU_QCONFIG={self.qconfig}", *regions)


_PORT_OF_INDEX = (Port.SRAM, Port.SRAM, Port.EXTERNAL, Port.EXTERNAL)
_READ_ONLY_INDEX = {Port.SRAM: 1, Port.EXTERNAL: 3}
_READ_WRITE_INDEX = {Port.SRAM: 0, Port.EXTERNAL: 3}

DRIVER_DEFAULTS: dict[Arch, RegionConfiguration] = {
    Arch.U55: RegionConfiguration(2, (3, 0, 1, 1, 1, 1, 1, 1)),
    Arch.U65: RegionConfiguration(2, (3, 2, 1, 1, 1, 1, 1, 1)),
    Arch.U85: RegionConfiguration(2, (3, 0, 1, 1, 1, 1, 1, 1)),
}
"""NPU_QCONFIG and NPU_REGIONCFG_n where firmware says nothing: Shared_Sram, U65 Dedicated_Sram."""


def region_configuration(memory: MemoryMap) -> RegionConfiguration:
    """Return the registers that fit a memory mode.

    The command stream lies with the read-only data. Regions 3 and up are inputs and outputs where
    a runtime passes them, which lie in the arena.
    """
    stream = _READ_ONLY_INDEX[memory.constants]
    arena = _READ_WRITE_INDEX[memory.arena]
    cache = _READ_WRITE_INDEX[memory.cache]
    spare = (arena,) * (REGION_COUNT - len(RegionIndex))
    return RegionConfiguration(stream, (stream, arena, cache, *spare))


@dataclass(frozen=True, slots=True)
class PortAttributes:
    """One product's port: its name there, the registers of its attributes, driver's defaults.

    registers            register of each REGIONCFG index that belongs to the port
    outstanding_reads    transactions
    outstanding_writes   transactions
    """

    name: str
    registers: tuple[str, str]
    outstanding_reads: int
    outstanding_writes: int


PORTS: dict[Arch, dict[Port, PortAttributes]] = {
    Arch.U55: {
        Port.SRAM: PortAttributes("M0", ("AXI_LIMIT0", "AXI_LIMIT1"), 32, 16),
        Port.EXTERNAL: PortAttributes("M1", ("AXI_LIMIT2", "AXI_LIMIT3"), 32, 16),
    },
    Arch.U65: {
        Port.SRAM: PortAttributes("M0", ("AXI_LIMIT0", "AXI_LIMIT1"), 64, 32),
        Port.EXTERNAL: PortAttributes("M1", ("AXI_LIMIT2", "AXI_LIMIT3"), 64, 32),
    },
    Arch.U85: {
        Port.SRAM: PortAttributes("SRAM", ("MEM_ATTR0", "MEM_ATTR1"), 12, 16),
        Port.EXTERNAL: PortAttributes("EXT", ("MEM_ATTR2", "MEM_ATTR3"), 64, 32),
    },
}
"""The ports of each product, with the core driver's default limits."""


def base_pointers(inputs: int, outputs: int) -> tuple[str, ...]:
    """Say what each base pointer is for a TFLite operator of so many real inputs and outputs.

    A runtime passes the operator's tensors after the payload in their order, as many as there are
    regions. Streams address inputs and outputs through the scratch region, where they lie.
    """
    roles = ["read-only data", "scratch", "fast scratch"]
    roles += [f"input {index}" for index in range(inputs)]
    roles += [f"output {index}" for index in range(outputs)]
    return tuple(roles[:REGION_COUNT])


def require_region(region: int) -> int:
    """Return `region` back if it is one; E540 if not."""
    if not 0 <= region < REGION_COUNT:
        raise fail("E540", f"a region must be in 0..{REGION_COUNT - 1}, not {region}")
    return region


def require_memory(program: Program) -> None:
    """Check that constants, inputs and outputs lie inside the regions of a program.

    E540 for a region that does not exist or has no size, E541 for contents beyond its end.
    """
    for region, contents in program.constants.items():
        _require_inside(program, region, 0, contents.nbytes, "constants")
    _require_placements(program, program.inputs, "input")
    _require_placements(program, program.outputs, "output")


def _require_placements(program: Program, placements: Sequence[TensorAddress], word: str) -> None:
    for placement in placements:
        what = f'{word} "{placement.name}"'
        _require_inside(program, placement.region, placement.offset, placement.size_bytes, what)


def _require_inside(program: Program, region: int, offset: int, size: int, what: str) -> None:
    limit = program.region_bytes.get(require_region(region))
    if limit is None:
        raise fail("E540", f"{what} lies in region {region}, which the program does not have")
    if offset < 0 or offset + size > limit:
        message = (
            f"{what} must lie inside the {limit} bytes of region {region}, "
            f"not at {offset}..{offset + size}"
        )
        raise fail("E541", message)
