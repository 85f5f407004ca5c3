"""The NPU's performance counters: cycles, and events as far as an estimate knows them.

The events are those of `mizzen.targets.ethos_u.machine.counters`.

Ref: Arm Ethos-U core driver 0.16, `ethosu_pmu.c`; `ethosu55_interface.h` (control registers). The
cycle counter is bit 31 of the enable and overflow registers, event counter i is bit i.
"""

from __future__ import annotations

from mizzen.emulate.estimate import Cycles
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.counters import EVENT_COUNTERS

CYCLE_COUNTER = 1 << 31
COUNT_ENABLE, EVENT_RESET, CYCLE_RESET = 1 << 0, 1 << 1, 1 << 2
COUNT_BIT = 11
"""Lowest bit of PMCR.num_event_cnt."""
CYCLE_MASK = (1 << 48) - 1
EVENT_MASK = (1 << 32) - 1


class Counters:
    """The counters and their control registers, by the registers' names."""

    def __init__(self, arch: Arch) -> None:
        self._count = EVENT_COUNTERS[arch]
        self._implemented = CYCLE_COUNTER | (1 << self._count) - 1
        self.reset()

    def reset(self) -> None:
        """Return to what a reset of the NPU leaves."""
        self._control = 0
        self._cycles = 0
        self._masks = {"CNTEN": 0, "OVS": 0, "INT": 0}
        self._events = [0] * self._count
        self._kept: dict[str, int] = {}

    @property
    def interrupts(self) -> bool:
        """Whether a counter that may interrupt has overflowed."""
        return bool(self._masks["OVS"] & self._masks["INT"])

    def read(self, name: str) -> int:
        """Return the value of a register."""
        match name:
            case "PMCR":
                return self._control | self._count << COUNT_BIT
            case "PMCCNTR":
                return self._cycles & EVENT_MASK
            case "PMCCNTR_HI":
                return self._cycles >> 32
            case _ if name.startswith("PMEVCNTR"):
                return self._events[int(name[8:])]
            case _ if name[2:-3] in self._masks:
                return self._masks[name[2:-3]]
            case _:
                return self._kept.get(name, 0)

    def write(self, name: str, value: int) -> None:
        """Write a register; the value has only bits that it keeps."""
        match name:
            case "PMCR":
                self._write_control(value)
            case "PMCCNTR":
                self._cycles = self._cycles & ~EVENT_MASK | value
            case "PMCCNTR_HI":
                self._cycles = self._cycles & EVENT_MASK | value << 32
            case _ if name.startswith("PMEVCNTR"):
                self._events[int(name[8:])] = value
            case _ if name[2:-3] in self._masks:
                old = self._masks[name[2:-3]]
                new = old | value if name.endswith("SET") else old & ~value
                self._masks[name[2:-3]] = new & self._implemented
            case _:
                self._kept[name] = value

    def count(self, cycles: Cycles) -> None:
        """Add what an invocation took, to the counters that are enabled."""
        if not self._control & COUNT_ENABLE:
            return
        enabled = self._masks["CNTEN"]
        if enabled & CYCLE_COUNTER:
            total = self._cycles + cycles.total
            self._cycles = total & CYCLE_MASK
            self._masks["OVS"] |= CYCLE_COUNTER if total > CYCLE_MASK else 0
        for index in range(self._count):
            if enabled >> index & 1:
                event = self._kept.get(f"PMEVTYPER{index}", 0)
                total = self._events[index] + cycles.events.get(event, 0)
                self._events[index] = total & EVENT_MASK
                self._masks["OVS"] |= 1 << index if total > EVENT_MASK else 0

    def _write_control(self, value: int) -> None:
        if value & EVENT_RESET:
            self._events = [0] * self._count
        if value & CYCLE_RESET:
            self._cycles = 0
        self._control = value & ~(EVENT_RESET | CYCLE_RESET)
