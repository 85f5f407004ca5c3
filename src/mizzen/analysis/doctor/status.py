"""The STATUS register, bit by bit, and what of it is a fault.

Ref: Ethos-U core driver 0.16, ethosu55_interface.h and ethosu85_interface.h (status_r).
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.analysis.doctor.causes import Cause
from mizzen.targets.ethos_u.machine.commands import ALL, U55_U65, U85, Arch


@dataclass(frozen=True, slots=True)
class StatusBit:
    """A bit of STATUS: what it says when it is set, and the fault that it is, if it is one."""

    archs: tuple[Arch, ...]
    bit: int
    name: str
    meaning: str
    cause: Cause | None = None


BITS = (
    StatusBit(ALL, 0, "state", "the NPU is running"),
    StatusBit(ALL, 1, "irq_raised", "its interrupt is raised"),
    StatusBit(ALL, 2, "bus_status", "a memory answered with an error", Cause.UNREACHED),
    StatusBit(ALL, 3, "reset_status", "a reset is under way", Cause.NPU_NOT_THERE),
    StatusBit(ALL, 4, "cmd_parse_error", "the stream could not be parsed", Cause.STREAM_UNREADABLE),
    StatusBit(ALL, 5, "cmd_end_reached", "the end of the stream was reached"),
    StatusBit(ALL, 6, "pmu_irq_raised", "a counter raised the interrupt"),
    StatusBit(U55_U65, 7, "wd_fault", "the weights could not be decoded", Cause.WEIGHTS_DAMAGED),
    StatusBit(ALL, 8, "ecc_fault", "the NPU's memory had an ECC fault", Cause.HARDWARE),
    StatusBit(U85, 9, "branch_fault", "a branch left the stream", Cause.STREAM_BRANCH),
)
"""Bits of STATUS, lowest first."""

CHANNELS = {
    0: "the command stream",
    1: "an input feature map",
    2: "weights",
    3: "scales and biases",
    4: "the source of a transfer",
    5: "an input feature map",
    6: "the indices of a transfer",
    8: "an output feature map",
    9: "the destination of a transfer",
}
"""What the NPU wanted of memory, by faulting_channel; 8 and 9 were written, the others read."""

COMMANDS, WRITTEN = 0, (8, 9)
CONSTANTS = (0, 2, 3)
"""Channels of what lies in the model."""
_WAITS = ("state", "irq_raised")
_INTERFACE_BIT, _CHANNEL_BIT, _HISTORY_BIT = 11, 12, 16


@dataclass(frozen=True, slots=True)
class StatusReading:
    """A STATUS word in words.

    bits       those that are set, lowest first
    interface  port of the bus error, channel what was wanted; None without a bus error
    history    interrupts that the stream raised, 16 bits
    unknown    whether bits are set that this product has not
    """

    word: int
    bits: tuple[StatusBit, ...]
    interface: int | None
    channel: int | None
    history: int
    unknown: bool

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The faults, as the bits are; without one, an NPU that runs or that nobody answered."""
        faults = tuple(bit.cause for bit in self.bits if bit.cause is not None)
        waits = any(bit.name in _WAITS for bit in self.bits)
        return (Cause.NO_INTERRUPT,) if waits and not faults else faults

    @property
    def wanted(self) -> str | None:
        """What the NPU wanted of the memory that did not answer."""
        if self.channel is None:
            return None
        what = CHANNELS.get(self.channel, f"channel {self.channel}")
        return f"{'writing' if self.channel in WRITTEN else 'reading'} {what}"

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "word": f"{self.word:#010x}",
            "bits": [bit.name for bit in self.bits],
            "interface": self.interface,
            "channel": self.channel,
            "wanted": self.wanted,
            "irq_history": self.history,
            "unknown_bits": self.unknown,
        }

    def __str__(self) -> str:
        said = [bit.meaning for bit in self.bits]
        if self.wanted is not None:
            said.append(f"on port {self.interface}, {self.wanted}")
        if self.unknown:
            said.append("bits are set that this product has not: is it the STATUS register?")
        return "; ".join(said) or "the NPU is stopped, and nothing is wrong"


def read_status(word: int, arch: Arch | None = None) -> StatusReading:
    """Take a STATUS word apart; bits of every product where it is not known."""
    known = [bit for bit in BITS if arch is None or arch in bit.archs]
    bits = tuple(bit for bit in known if word >> bit.bit & 1)
    failed = any(bit.cause is Cause.UNREACHED for bit in bits)
    low = word & (1 << _INTERFACE_BIT) - 1
    return StatusReading(
        word,
        bits,
        word >> _INTERFACE_BIT & 1 if failed else None,
        word >> _CHANNEL_BIT & 0xF if failed else None,
        word >> _HISTORY_BIT,
        low != sum(1 << bit.bit for bit in bits),
    )
