"""The NPU's registers as a driver sees them: one row each, for U55, U65 and U85.

Ref: Arm Ethos-U core driver 0.16: `ethosu55_interface.h`, `ethosu65_interface.h` and
`ethosu85_interface.h` (offsets, fields, reset values), `ethosu_device_u55_u65.c` and
`ethosu_device_u85.c` (how a driver uses them).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntFlag
from functools import cache

from mizzen.targets.ethos_u.machine.commands import ALL, U55_U65, U85, Arch
from mizzen.targets.ethos_u.machine.counters import EVENT_COUNTERS

WORD = 0xFFFF_FFFF
REGIONS = 8
"""Base pointers."""

WINDOW_BYTES = 0x2000
"""Size of the NPU's page of registers; U55 and U65 use the first half."""


class Access(Enum):
    """Who may do what; the rest is ignored when written, and zero when read."""

    READ = "read"
    WRITE = "write"
    BOTH = "read and write"


@dataclass(frozen=True, slots=True)
class Row:
    """One register of 32 bits.

    mask  bits that a write changes; the others stay zero
    """

    archs: tuple[Arch, ...]
    offset: int
    name: str
    access: Access
    reset: int = 0
    mask: int = WORD


def _array(
    archs: tuple[Arch, ...], offset: int, name: str, count: int, mask: int = WORD
) -> tuple[Row, ...]:
    """Return rows of registers that follow one another."""
    return tuple(
        Row(archs, offset + 4 * index, f"{name}{index}", Access.BOTH, 0, mask)
        for index in range(count)
    )


def _pointers() -> tuple[Row, ...]:
    """Return BASEP0 to BASEP7: low word, then high word, of which U55 has none."""
    pointers: list[Row] = []
    for index in range(REGIONS):
        low = 0x80 + 8 * index
        pointers.append(Row(ALL, low, f"BASEP{index}", Access.BOTH))
        pointers.append(Row(ALL, low + 4, f"BASEP{index}_HI", Access.BOTH, 0, 0xFF))
    return tuple(pointers)


def _identity(offset: int, words: tuple[int, ...], name: str, archs: tuple[Arch, ...]) -> list[Row]:
    return [
        Row(archs, offset + 4 * index, f"{name}{index}", Access.READ, word, 0)
        for index, word in enumerate(words)
    ]


PMU_U55, PMU_U85 = 0x180, 0x1180
"""Where the performance counters' control registers begin."""
EVENTS_U55, EVENTS_U85 = 0x300, 0x1300
TYPES_U55, TYPES_U85 = 0x380, 0x1380

RESET_ID: dict[Arch, int] = {Arch.U55: 0x1010_4201, Arch.U65: 0x1006_6001, Arch.U85: 0x2000_7001}
"""ID: architecture 1.1.0, 1.0.6 and 2.0.0."""

ROWS: tuple[Row, ...] = (
    Row(ALL, 0x00, "ID", Access.READ),
    Row(ALL, 0x04, "STATUS", Access.READ, 0x8),
    Row(ALL, 0x08, "CMD", Access.BOTH, 0xC, 0xFFFF_001F),
    Row(ALL, 0x0C, "RESET", Access.BOTH, 0, 0x3),
    Row(ALL, 0x10, "QBASE", Access.BOTH),
    Row(ALL, 0x14, "QBASE_HI", Access.BOTH, 0, 0xFF),
    Row(ALL, 0x18, "QREAD", Access.READ),
    Row(ALL, 0x1C, "QCONFIG", Access.BOTH, 0, 0x3),
    Row(ALL, 0x20, "QSIZE", Access.BOTH),
    Row(ALL, 0x24, "PROT", Access.READ, 0, 0x3),
    Row(ALL, 0x28, "CONFIG", Access.READ),
    Row(U55_U65, 0x2C, "LOCK", Access.BOTH),
    Row(U85, 0x30, "COND_STATUS", Access.READ),
    Row(U85, 0x38, "POWER_CTRL", Access.BOTH),
    Row(ALL, 0x3C, "REGIONCFG", Access.BOTH, 0, 0xFFFF),
    *_array(U55_U65, 0x40, "AXI_LIMIT", 4, 0xFFFF_00F3),
    *_array(U85, 0x40, "MEM_ATTR", 4, 0x7F),
    Row(U85, 0x50, "AXI_SRAM", Access.BOTH, 0, 0x0003_1F3F),
    Row(U85, 0x54, "AXI_EXT", Access.BOTH, 0, 0x0003_1F3F),
    *_pointers(),
    Row(U55_U65, 0x140, "CLKFORCE", Access.BOTH, 0, 0x3F),
    *_identity(0xFD0, (0x04, 0, 0, 0), "PIDR4_", ALL),
    *_identity(0xFE0, (0x80, 0xB5, 0x0B, 0), "PIDR", (Arch.U55,)),
    *_identity(0xFE0, (0x81, 0xB5, 0x0B, 0), "PIDR", (Arch.U65,)),
    *_identity(0xFE0, (0x82, 0xB5, 0x0B, 0), "PIDR", U85),
    *_identity(0xFF0, (0x0D, 0x90, 0x05, 0xB1), "CIDR", ALL),
)
"""Registers other than the performance counters'."""

PMU_ROWS: tuple[Row, ...] = (
    Row(ALL, 0x00, "PMCR", Access.BOTH, 0, 0xF),
    Row(ALL, 0x04, "PMCNTENSET", Access.BOTH),
    Row(ALL, 0x08, "PMCNTENCLR", Access.BOTH),
    Row(ALL, 0x0C, "PMOVSSET", Access.BOTH),
    Row(ALL, 0x10, "PMOVSCLR", Access.BOTH),
    Row(ALL, 0x14, "PMINTSET", Access.BOTH),
    Row(ALL, 0x18, "PMINTCLR", Access.BOTH),
    Row(ALL, 0x20, "PMCCNTR", Access.BOTH),
    Row(ALL, 0x24, "PMCCNTR_HI", Access.BOTH, 0, 0xFFFF),
    Row(ALL, 0x28, "PMCCNTR_CFG", Access.BOTH, 0, 0x03FF_03FF),
    Row(ALL, 0x2C, "PMCAXI_CHAN", Access.BOTH, 0, 0x7FF),
    Row(U85, 0x30, "PMCLUT", Access.BOTH),
)
"""The performance counters' control registers, from `PMU_U55` or `PMU_U85` on."""


@cache
def register_map(arch: Arch) -> dict[int, Row]:
    """Return the registers of an architecture by their offsets in bytes."""
    base, events, types = (
        (PMU_U85, EVENTS_U85, TYPES_U85) if arch is Arch.U85 else (PMU_U55, EVENTS_U55, TYPES_U55)
    )
    count = EVENT_COUNTERS[arch]
    registers = [
        *ROWS,
        *(
            Row(
                register.archs,
                base + register.offset,
                register.name,
                register.access,
                0,
                register.mask,
            )
            for register in PMU_ROWS
        ),
        *_array(ALL, events, "PMEVCNTR", count),
        *_array(ALL, types, "PMEVTYPER", count, 0x3FF),
    ]
    return {register.offset: register for register in registers if arch in register.archs}


class Status(IntFlag):
    """Single bits of STATUS."""

    RUNNING = 1 << 0
    IRQ_RAISED = 1 << 1
    BUS_ERROR = 1 << 2
    RESETTING = 1 << 3
    PARSE_ERROR = 1 << 4
    END_REACHED = 1 << 5
    PMU_IRQ_RAISED = 1 << 6


FAULTS = Status.BUS_ERROR | Status.PARSE_ERROR
"""After one of these the NPU needs a reset."""

FAULTING_INTERFACE_BIT, FAULTING_CHANNEL_BIT, HISTORY_BIT = 11, 12, 16
"""Lowest bits of the other fields of STATUS."""


class Channel(Enum):
    """What the NPU wanted of memory: STATUS.faulting_channel."""

    CMD_READ = 0
    IFM_READ = 1
    WEIGHT_READ = 2
    SBS_READ = 3
    MEM2MEM_READ = 4
    OFM_WRITE = 8
    MEM2MEM_WRITE = 9


class Command(IntFlag):
    """Single bits of CMD."""

    RUN = 1 << 0
    CLEAR_IRQ = 1 << 1
    CLOCK_OFF = 1 << 2
    POWER_OFF = 1 << 3
    STOP = 1 << 4


POWER = Command.CLOCK_OFF | Command.POWER_OFF
"""What a write to CMD leaves there to read."""
HISTORY_MASK = 0xFFFF << HISTORY_BIT
