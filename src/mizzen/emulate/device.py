"""The NPU as a device on a bus: registers that are read and written, and an interrupt line.

Nothing here knows a processor. A write of CMD.run executes the queue at once; the interrupt line is
raised when it has ended. What the firmware does wrong shows as hardware would show it, in STATUS,
and as diagnostics beside.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mizzen.diagnostics import Diagnostic, Severity
from mizzen.emulate.counters import Counters
from mizzen.emulate.estimate import NO_CYCLES, Cycles, TimingModel, stream_estimate
from mizzen.emulate.guest import GuestMemory
from mizzen.emulate.queue import Executor, OnTime, Queue, Stop
from mizzen.emulate.registers import (
    FAULTING_CHANNEL_BIT,
    FAULTING_INTERFACE_BIT,
    FAULTS,
    HISTORY_BIT,
    HISTORY_MASK,
    POWER,
    REGIONS,
    RESET_ID,
    Access,
    Channel,
    Command,
    Row,
    Status,
    register_map,
)
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import Accelerator

KEPT_DIAGNOSTICS = 20
AFTER_ERROR = Diagnostic(
    "E432", "the NPU was started after an error, and must be reset before", Severity.WARNING
)
WHILE_RUNNING = Diagnostic(
    "E432", "the NPU was started while it runs, which does nothing", Severity.WARNING
)
KEPT_INVOCATIONS = 1000
"""Later ones are only counted."""
POLLS_WHILE_LATE = 100
"""Reads of STATUS that see a late NPU running before it ends."""


class Fault(Enum):
    """What may be made to go wrong; the value is its name on the command line."""

    PARSE_ERROR = "parse-error"
    BUS_ERROR = "bus-error"
    SILENT = "silent"
    WRONG_CONFIGURATION = "wrong-configuration"
    LATE_INTERRUPT = "late-interrupt"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of the NPU.

    cycles  an estimate of how long the NPU was busy
    status  the STATUS word when it ended
    """

    queue: Queue
    cycles: Cycles
    status: int

    def as_dict(self) -> dict[str, object]:
        """Return the invocation as JSON-ready data."""
        return {
            "stream_bytes": self.queue.size_bytes,
            "base_pointers": list(self.queue.pointers),
            "cycles": self.cycles.total,
            "mac_active_cycles": self.cycles.mac_active,
            "status": self.status,
            "ok": not self.status & FAULTS,
        }


class NpuDevice:
    """The registers of one NPU, and what its queue does to the board's memory.

    fault    what to make go wrong, in every invocation
    timing   how long the NPU is busy
    on_time  called with the seconds that an operation takes about; it may raise to end the run
    """

    def __init__(
        self,
        accelerator: Accelerator,
        memory: GuestMemory,
        fault: Fault | None = None,
        timing: TimingModel = stream_estimate,
        on_time: OnTime = lambda _seconds: None,
    ) -> None:
        self.accelerator = accelerator
        self.invocations: list[Invocation] = []
        self.invocation_count = 0
        self.diagnostics: list[Diagnostic] = []
        self._fault = fault
        self._rows = register_map(accelerator.arch)
        self._executor = Executor(accelerator, memory, timing, on_time)
        self._counters = Counters(accelerator.arch)
        self._values: dict[str, int] = {}
        self._status: int = Status.RESETTING
        self._history = 0
        self._where = 0
        self._late: tuple[Queue, int] | None = None
        self._protection = 0
        self._reset()

    @property
    def irq(self) -> bool:
        """Whether the interrupt line is raised."""
        return bool(self._status & Status.IRQ_RAISED) or self._counters.interrupts

    @property
    def is_late(self) -> bool:
        """Whether an invocation will end that has not yet."""
        return self._late is not None

    def name(self, offset: int) -> str:
        """Return the name of the register at an offset, or the offset where there is none."""
        register = self._rows.get(offset & ~3)
        return register.name if register else f"{offset:#06x}"

    def read(self, offset: int, size_bytes: int = 4) -> int:
        """Return the value that a load of 1, 2 or 4 bytes reads; 0 where there is no register."""
        register = self._rows.get(offset & ~3)
        if register is None or register.access is Access.WRITE:
            return 0
        return self._read(register) >> 8 * (offset & 3) & (1 << 8 * size_bytes) - 1

    def write(self, offset: int, value: int, size_bytes: int = 4) -> None:
        """Do what a store does; one of less than a word changes only its bytes."""
        register = self._rows.get(offset & ~3)
        if register is None or register.access is Access.READ:
            return
        if size_bytes < 4:
            shift, width = 8 * (offset & 3), (1 << 8 * size_bytes) - 1
            value = self._read(register) & ~(width << shift) | (value & width) << shift
        self._write(register, value & register.mask)

    def finish(self) -> None:
        """End an invocation that is late."""
        if self._late is not None:
            queue, _ = self._late
            self._late = None
            self._end(queue, self._executor.execute(queue))

    def _read(self, register: Row) -> int:
        match register.name:
            case "ID":
                return RESET_ID[self.accelerator.arch]
            case "CONFIG":
                return self._config()
            case "STATUS":
                return self._read_status()
            case "QREAD":
                return self._where
            case "PROT":
                return self._protection
            case name if name.startswith("PM"):
                return self._counters.read(name)
            case name:
                return self._values.get(name, register.reset)

    def _write(self, register: Row, value: int) -> None:
        match register.name:
            case "CMD":
                self._command(value)
            case "RESET":
                self._values.clear()
                self._protection = value
                self._reset()
            case name if name.startswith("PM"):
                self._counters.write(name, value)
            case name:
                self._values[name] = value

    def _config(self) -> int:
        """Return CONFIG; a wrong one says another number of multipliers."""
        word = self.accelerator.config_word
        return word ^ 1 if self._fault is Fault.WRONG_CONFIGURATION else word

    def _reset(self) -> None:
        self._status = Status.RESETTING
        self._history = 0
        self._where = 0
        self._late = None
        self._counters.reset()

    def _read_status(self) -> int:
        """Return STATUS. The reset that a driver asks for has ended when it looks again."""
        if self._late is not None:
            queue, polls = self._late
            self._late = (queue, polls - 1)
            if polls == 0:
                self.finish()
        word = self._status_word
        self._status &= ~int(Status.RESETTING)
        return word

    @property
    def _status_word(self) -> int:
        counters = int(Status.PMU_IRQ_RAISED) if self._counters.interrupts else 0
        return int(self._status) | counters | self._history << HISTORY_BIT

    def _command(self, value: int) -> None:
        self._values["CMD"] = value & POWER
        if value & HISTORY_MASK:
            self._history &= ~(value >> HISTORY_BIT)
        if value & Command.CLEAR_IRQ:
            self._status &= ~int(Status.IRQ_RAISED)
        if value & Command.RUN:
            self._start()

    def _start(self) -> None:
        if self._status & FAULTS:
            self._say(AFTER_ERROR)
            return
        if self._status & Status.RUNNING:
            self._say(WHILE_RUNNING)
            return
        self._status = Status.RUNNING
        queue = self._queue()
        match self._fault:
            case Fault.SILENT:
                self._note(queue, NO_CYCLES)
            case Fault.LATE_INTERRUPT:
                self._late = (queue, POLLS_WHILE_LATE)
            case Fault.PARSE_ERROR:
                self._end(queue, Stop(0, malformed=True))
            case Fault.BUS_ERROR:
                self._end(queue, Stop(0, channel=Channel.CMD_READ))
            case _:
                self._end(queue, self._executor.execute(queue))

    def _queue(self) -> Queue:
        wide = self.accelerator.arch is not Arch.U55

        def address(name: str) -> int:
            high = self._values.get(f"{name}_HI", 0) if wide else 0
            return self._values.get(name, 0) | high << 32

        pointers = tuple(address(f"BASEP{region}") for region in range(REGIONS))
        return Queue(address("QBASE"), self._values.get("QSIZE", 0), pointers)

    def _end(self, queue: Queue, stop: Stop) -> None:
        self._where = stop.read_bytes
        self._history |= stop.history
        self._status = Status.IRQ_RAISED
        if stop.channel is not None:
            self._status |= Status.BUS_ERROR
            self._status |= self._interface(stop) << FAULTING_INTERFACE_BIT
            self._status |= stop.channel.value << FAULTING_CHANNEL_BIT
        elif stop.malformed:
            self._status |= Status.PARSE_ERROR
        else:
            self._status |= Status.END_REACHED
        self._counters.count(stop.cycles)
        self._note(queue, stop.cycles)
        if stop.reason is not None:
            self._say(stop.reason)

    def _note(self, queue: Queue, cycles: Cycles) -> None:
        self.invocation_count += 1
        if len(self.invocations) < KEPT_INVOCATIONS:
            self.invocations.append(Invocation(queue, cycles, self._status_word))

    def _interface(self, stop: Stop) -> int:
        """Return the port of a region: QCONFIG and REGIONCFG give 0 and 1 to the first."""
        if stop.region is None:
            index = self._values.get("QCONFIG", 0)
        else:
            index = self._values.get("REGIONCFG", 0) >> 2 * stop.region & 3
        if self.accelerator.arch is Arch.U85:
            return self._values.get(f"MEM_ATTR{index}", 0) >> 2 & 1
        return index >> 1

    def _say(self, diagnostic: Diagnostic) -> None:
        """Say the same only once."""
        if diagnostic not in self.diagnostics and len(self.diagnostics) < KEPT_DIAGNOSTICS:
            self.diagnostics.append(diagnostic)
