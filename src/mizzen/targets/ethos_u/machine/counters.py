"""What the NPU's performance counters can count.

A counter counts one event at a time, beside the counter of cycles. Numbers of U55 and U65 are the
same; U85 calls its ports SRAM and EXT, and has more units inside. Events of single ports of U85
(SRAM0 to SRAM3, EXT0, EXT1) and of ECC are left out.

Ref: ethos-u-core-driver, `pmu_ethosu.h` (names, less ``ETHOSU_PMU_``; how many counters);
`ethosu55_interface.h`, `ethosu65_interface.h`, `ethosu85_interface.h`, `enum pmu_event` (numbers).
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_u.machine.commands import ALL, U55_U65, U85, Arch

EVENT_COUNTERS: dict[Arch, int] = {Arch.U55: 4, Arch.U65: 4, Arch.U85: 8}
"""Events that are counted at once."""

CYCLE, NPU_ACTIVE, MAC_ACTIVE, OUTPUT_ACTIVE, DECODER_ACTIVE = 0x11, 0x23, 0x30, 0x40, 0x50
"""Numbers of the events that say which unit is at work."""
FIRST_READ, FIRST_WRITTEN, SECOND_READ, SECOND_WRITTEN = 0x82, 0x87, 0x182, 0x187
"""Numbers of the events that count beats: words as wide as a port, of AXI0 or SRAM and the other.

Ref: `ArchTraits.axi_bytes_per_cycle` has the width.
"""


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    archs   that have it
    number  to be written to PMEVTYPER
    name    in Arm's driver
    """

    archs: tuple[Arch, ...]
    number: int
    name: str


EVENTS: tuple[Event, ...] = (
    Event(ALL, CYCLE, "CYCLE"),
    Event(ALL, 0x20, "NPU_IDLE"),
    Event(ALL, 0x21, "CC_STALLED_ON_BLOCKDEP"),
    Event(U55_U65, 0x22, "CC_STALLED_ON_SHRAM_RECONFIG"),
    Event(ALL, NPU_ACTIVE, "NPU_ACTIVE"),
    Event(ALL, MAC_ACTIVE, "MAC_ACTIVE"),
    Event(U55_U65, 0x31, "MAC_ACTIVE_8BIT"),
    Event(U55_U65, 0x32, "MAC_ACTIVE_16BIT"),
    Event(ALL, 0x33, "MAC_DPU_ACTIVE"),
    Event(U55_U65, 0x34, "MAC_STALLED_BY_WD_ACC"),
    Event(U85, 0x34, "MAC_STALLED_BY_W_OR_ACC"),
    Event(U55_U65, 0x35, "MAC_STALLED_BY_WD"),
    Event(U85, 0x35, "MAC_STALLED_BY_W"),
    Event(ALL, 0x36, "MAC_STALLED_BY_ACC"),
    Event(ALL, 0x37, "MAC_STALLED_BY_IB"),
    Event(U55_U65, 0x38, "MAC_ACTIVE_32BIT"),
    Event(U55_U65, 0x39, "MAC_STALLED_BY_INT_W"),
    Event(U55_U65, 0x3A, "MAC_STALLED_BY_INT_ACC"),
    Event(ALL, OUTPUT_ACTIVE, "AO_ACTIVE"),
    Event(U55_U65, 0x41, "AO_ACTIVE_8BIT"),
    Event(U55_U65, 0x42, "AO_ACTIVE_16BIT"),
    Event(U55_U65, 0x43, "AO_STALLED_BY_OFMP_OB"),
    Event(U85, 0x43, "AO_STALLED_BY_BS_OR_OB"),
    Event(U55_U65, 0x44, "AO_STALLED_BY_OFMP"),
    Event(U85, 0x44, "AO_STALLED_BY_BS"),
    Event(ALL, 0x45, "AO_STALLED_BY_OB"),
    Event(U55_U65, 0x46, "AO_STALLED_BY_ACC_IB"),
    Event(U85, 0x46, "AO_STALLED_BY_AB_OR_CB"),
    Event(U55_U65, 0x47, "AO_STALLED_BY_ACC"),
    Event(U85, 0x47, "AO_STALLED_BY_AB"),
    Event(U55_U65, 0x48, "AO_STALLED_BY_IB"),
    Event(U85, 0x48, "AO_STALLED_BY_CB"),
    Event(ALL, DECODER_ACTIVE, "WD_ACTIVE"),
    Event(ALL, 0x51, "WD_STALLED"),
    Event(U55_U65, 0x52, "WD_STALLED_BY_WS"),
    Event(ALL, 0x53, "WD_STALLED_BY_WD_BUF"),
    Event(U55_U65, 0x54, "WD_PARSE_ACTIVE"),
    Event(U85, 0x54, "WD_STALLED_BY_WS_FC"),
    Event(U55_U65, 0x55, "WD_PARSE_STALLED"),
    Event(U85, 0x55, "WD_STALLED_BY_WS_TC"),
    Event(U55_U65, 0x56, "WD_PARSE_STALLED_IN"),
    Event(U55_U65, 0x57, "WD_PARSE_STALLED_OUT"),
    Event(U55_U65, 0x80, "AXI0_RD_TRANS_ACCEPTED"),
    Event(U85, 0x80, "SRAM_RD_TRANS_ACCEPTED"),
    Event(U55_U65, 0x81, "AXI0_RD_TRANS_COMPLETED"),
    Event(U85, 0x81, "SRAM_RD_TRANS_COMPLETED"),
    Event(U55_U65, FIRST_READ, "AXI0_RD_DATA_BEAT_RECEIVED"),
    Event(U85, FIRST_READ, "SRAM_RD_DATA_BEAT_RECEIVED"),
    Event(U55_U65, 0x83, "AXI0_RD_TRAN_REQ_STALLED"),
    Event(U85, 0x83, "SRAM_RD_TRAN_REQ_STALLED"),
    Event(U55_U65, 0x84, "AXI0_WR_TRANS_ACCEPTED"),
    Event(U85, 0x84, "SRAM_WR_TRANS_ACCEPTED"),
    Event(U55_U65, FIRST_WRITTEN, "AXI0_WR_DATA_BEAT_WRITTEN"),
    Event(U85, FIRST_WRITTEN, "SRAM_WR_DATA_BEAT_WRITTEN"),
    Event(U55_U65, 0x88, "AXI0_WR_TRAN_REQ_STALLED"),
    Event(U85, 0x88, "SRAM_WR_TRAN_REQ_STALLED"),
    Event(U55_U65, 0x89, "AXI0_WR_DATA_BEAT_STALLED"),
    Event(U85, 0x89, "SRAM_WR_DATA_BEAT_STALLED"),
    Event(U55_U65, 0x180, "AXI1_RD_TRANS_ACCEPTED"),
    Event(U85, 0x180, "EXT_RD_TRANS_ACCEPTED"),
    Event(U55_U65, 0x181, "AXI1_RD_TRANS_COMPLETED"),
    Event(U85, 0x181, "EXT_RD_TRANS_COMPLETED"),
    Event(U55_U65, SECOND_READ, "AXI1_RD_DATA_BEAT_RECEIVED"),
    Event(U85, SECOND_READ, "EXT_RD_DATA_BEAT_RECEIVED"),
    Event(U55_U65, 0x183, "AXI1_RD_TRAN_REQ_STALLED"),
    Event(U85, 0x183, "EXT_RD_TRAN_REQ_STALLED"),
    Event(U55_U65, 0x184, "AXI1_WR_TRANS_ACCEPTED"),
    Event(U85, 0x184, "EXT_WR_TRANS_ACCEPTED"),
    Event(U55_U65, SECOND_WRITTEN, "AXI1_WR_DATA_BEAT_WRITTEN"),
    Event(U85, SECOND_WRITTEN, "EXT_WR_DATA_BEAT_WRITTEN"),
    Event(U55_U65, 0x188, "AXI1_WR_TRAN_REQ_STALLED"),
    Event(U85, 0x188, "EXT_WR_TRAN_REQ_STALLED"),
    Event(U55_U65, 0x189, "AXI1_WR_DATA_BEAT_STALLED"),
    Event(U85, 0x189, "EXT_WR_DATA_BEAT_STALLED"),
)
"""The events; a number has one meaning on each architecture."""

MEASURED: tuple[int, ...] = (
    NPU_ACTIVE,
    MAC_ACTIVE,
    FIRST_READ,
    FIRST_WRITTEN,
    SECOND_READ,
    SECOND_WRITTEN,
    DECODER_ACTIVE,
    OUTPUT_ACTIVE,
)
"""What tells what an operation waits for, in the order in which it is measured."""


def event_of(number: int, arch: Arch) -> Event:
    """Return an event of the table by its number on an architecture."""
    return next(event for event in EVENTS if event.number == number and arch in event.archs)


def measured_sets(arch: Arch) -> tuple[tuple[Event, ...], ...]:
    """Return the measured events, so many together as an architecture counts in one inference."""
    count = EVENT_COUNTERS[arch]
    events = [event_of(number, arch) for number in MEASURED]
    return tuple(tuple(events[at : at + count]) for at in range(0, len(events), count))
