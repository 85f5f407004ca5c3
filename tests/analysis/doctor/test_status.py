"""STATUS is read bit by bit, for each product."""

from __future__ import annotations

import pytest

from mizzen.analysis.doctor import Cause, read_status
from mizzen.analysis.doctor.status import BITS
from mizzen.emulate.registers import (
    FAULTING_CHANNEL_BIT,
    FAULTING_INTERFACE_BIT,
    HISTORY_BIT,
    Channel,
    Status,
)
from mizzen.targets.ethos_u.machine.commands import Arch


@pytest.mark.parametrize(
    ("word", "arch", "text", "causes"),
    [
        (0x804, Arch.U65, "a memory answered with an error; on port 1, reading the command stream",
         (Cause.UNREACHED,)),
        (0x8004, Arch.U55, "a memory answered with an error; on port 0, writing an output feature "
         "map", (Cause.UNREACHED,)),
        (0x1_0010, Arch.U55, "the stream could not be parsed", (Cause.STREAM_UNREADABLE,)),
        (0x82, Arch.U55, "its interrupt is raised; the weights could not be decoded",
         (Cause.WEIGHTS_DAMAGED,)),
        (0x200, Arch.U85, "a branch left the stream", (Cause.STREAM_BRANCH,)),
        (0x100, Arch.U85, "the NPU's memory had an ECC fault", (Cause.HARDWARE,)),
        (0x8, Arch.U55, "a reset is under way", (Cause.NPU_NOT_THERE,)),
        (0xFFFF_0022, Arch.U55, "its interrupt is raised; the end of the stream was reached",
         (Cause.NO_INTERRUPT,)),
        (0x1, Arch.U85, "the NPU is running", (Cause.NO_INTERRUPT,)),
        (0x0, Arch.U55, "the NPU is stopped, and nothing is wrong", ()),
        (0x80, Arch.U85, "bits are set that this product has not: is it the STATUS register?", ()),
    ],
)  # fmt: skip
def test_a_word_in_words(word: int, arch: Arch, text: str, causes: tuple[Cause, ...]) -> None:
    reading = read_status(word, arch)
    assert str(reading) == text
    assert reading.causes == causes


def test_bits_are_those_of_the_emulated_npu() -> None:
    names = {
        "RUNNING": "state", "IRQ_RAISED": "irq_raised", "BUS_ERROR": "bus_status",
        "RESETTING": "reset_status", "PARSE_ERROR": "cmd_parse_error",
        "END_REACHED": "cmd_end_reached", "PMU_IRQ_RAISED": "pmu_irq_raised",
    }  # fmt: skip
    places = {bit.name: 1 << bit.bit for bit in BITS}
    assert {name: Status[name].value for name in names} == {
        name: places[own] for name, own in names.items()
    }


@pytest.mark.parametrize("channel", list(Channel))
def test_what_the_npu_wanted_is_the_channel(channel: Channel) -> None:
    word = (
        Status.BUS_ERROR
        | 1 << FAULTING_INTERFACE_BIT
        | channel.value << FAULTING_CHANNEL_BIT
        | 5 << HISTORY_BIT
    )
    reading = read_status(word)
    assert (reading.interface, reading.channel, reading.history) == (1, channel.value, 5)
    wanted = reading.wanted
    assert wanted is not None
    assert wanted.startswith("writing" if channel.name.endswith("WRITE") else "reading")
