"""The processor by QEMU, in its own process: a Cortex-M55 with everything around it.

The NPU's page is watched by the GDB stub. QEMU stops at an access, before it is made; the
instruction is taken apart, the access done here, and the processor set on after it. The interrupt
line is QEMU's own, so that interrupts come as they do.

Facts of QEMU 7.2 that matter: a watchpoint on a page stops before the access, the program counter
at the instruction; memory that is written through the stub does not reach devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.boards import Board
from mizzen.diagnostics import Diagnostic
from mizzen.emulate import thumb
from mizzen.emulate.console import Console
from mizzen.emulate.file_io import FileIo
from mizzen.emulate.gdb_client import STATUS_INDEX, ConnectionLostError
from mizzen.emulate.guest import Bytes, GuestMemory
from mizzen.emulate.image import Image, vector_table
from mizzen.emulate.processor import Deadline, End, Limits, Reason, deadlock, timed_out
from mizzen.emulate.qemu_process import QemuProcess
from mizzen.emulate.queue import TimeIsUpError
from mizzen.emulate.registers import WINDOW_BYTES
from mizzen.emulate.trace import NpuBus
from mizzen.emulate.unmasking import behind
from mizzen.targets.ethos_u.machine.commands import Arch

LOOK_SECONDS = 0.05
"""How long firmware is left alone before it is looked whether it waits for ever."""
IDLE_LOOKS = 6
"""Looks in a row that find the processor waiting at one place, with nothing pending."""
STEP_SECONDS = 1.0
"""How long the stop after one instruction may take to be told."""
BREAKPOINT = 0xBE
"""Upper byte of BKPT, which asks the host for something."""
NEAR_BYTES = 48
"""A loop around a wait is not longer."""
WFE, WFI = 0xBF20, 0xBF30
SYSTICK_CONTROL, TICKS = 0xE000_E010, 0x3
SP, PC = 13, 15
THUMB_BIT = 1 << 24


class QemuMemory(GuestMemory):
    """The board's memories; those that are not shared are moved through the stub."""

    def __init__(self, board: Board, process: QemuProcess) -> None:
        shared = process.shared(board)
        super().__init__(board, shared)
        self._shared = frozenset(shared)
        self._gdb = process.gdb

    def fetch(self, address: int, size_bytes: int) -> None:
        """Bring the processor's bytes here."""
        place = self._apart(address, size_bytes)
        if place is not None:
            data = self._gdb.read(address, len(place))
            place[: len(data)] = memoryview(data)

    def store(self, address: int, size_bytes: int) -> None:
        """Bring the bytes here to the processor."""
        place = self._apart(address, size_bytes)
        if place is not None:
            self._gdb.write(address, place.tobytes())

    def _apart(self, address: int, size_bytes: int) -> Bytes | None:
        located = self.bank(address)
        if located is None or located[0].memory.name in self._shared:
            return None
        return located[0].data[located[1] : located[1] + size_bytes]


@dataclass(slots=True)
class _Idle:
    """Looks that found the processor at the same wait."""

    looks: int = 0
    place: int = 0


class QemuProcessor:
    """A Cortex-M55 on a board, in a process that is stopped before its first instruction."""

    def __init__(
        self,
        board: Board,
        image: Image,
        memory: GuestMemory,
        bus: NpuBus,
        console: Console,
        process: QemuProcess,
    ) -> None:
        self._board, self._image, self._memory, self._bus = board, image, memory, bus
        self._process, self._gdb = process, process.gdb
        self.files = FileIo(process.gdb, console)
        self._code: dict[int, tuple[int, int]] = {}
        self._level = False
        self._idle = _Idle()
        self._unknown: int | None = None

    def run(self, limits: Limits, deadline: Deadline) -> End:
        """Run from reset until the firmware ends, or is ended."""
        try:
            self._start()
            return self._loop(deadline)
        except TimeIsUpError:
            return self._timed_out(limits)
        except ConnectionLostError:
            return self._lost()

    def _start(self) -> None:
        """Watch the NPU's page, and begin where the firmware's vector table says."""
        npu, wide = self._board.npu, self._bus.device.accelerator.arch is Arch.U85
        size = WINDOW_BYTES if wide else WINDOW_BYTES // 2
        for base in (npu.base, npu.alias):
            if base is not None:
                self._gdb.ask(f"Z4,{base:x},{size:x}")
        table = vector_table(self._image)
        words = self._gdb.read(table, 8)
        values = self._gdb.registers()
        values[SP] = int.from_bytes(words[:4], "little")
        values[PC] = int.from_bytes(words[4:], "little") & ~1
        values[STATUS_INDEX] |= THUMB_BIT
        self._gdb.set_registers(values)

    def _loop(self, deadline: Deadline) -> End:
        self._gdb.send("c")
        while True:
            deadline.check()
            packet = self._gdb.wait(min(LOOK_SECONDS, max(deadline.left_seconds, 0.001)))
            end = self._look() if packet is None else self._heed(packet)
            if end is not None:
                return end

    def _heed(self, packet: str) -> End | None:
        """Do what the processor was stopped for, and let it go on."""
        match packet[:1]:
            case "W":
                return End(Reason.EXITED, int(packet[1:3], 16))
            case "X":
                raise ConnectionLostError
            case "F":
                self._gdb.send(self.files.answer(packet))
                return None
            case "T" if "watch:" in packet:
                end = self._access()
            case _:
                end = self._look_closer()
        if end is None:
            self._gdb.send("c")
        return end

    def _access(self) -> End | None:
        """Make the access that the processor was stopped at, and go on after it."""
        values = self._gdb.registers()
        transfer, offset = self._access_at(values)
        if transfer is None or offset is None:
            return self._unknown_access(values[PC])
        self._unknown = None
        for index, register in enumerate(transfer.registers):
            at = offset + index * transfer.size_bytes
            if transfer.loads:
                values[register] = transfer.extended(self._bus.read(at, transfer.size_bytes))
            else:
                mask = (1 << 8 * transfer.size_bytes) - 1
                self._bus.write(at, values[register] & mask, transfer.size_bytes)
        if transfer.writeback is not None:
            values[transfer.writeback[0]] = transfer.writeback[1]
        values[PC] += transfer.length_bytes
        values[STATUS_INDEX] = behind(values[STATUS_INDEX])
        self._gdb.set_registers(values)
        self._set_interrupt()
        self._idle = _Idle()
        return None

    def _access_at(self, values: Sequence[int]) -> tuple[thumb.Transfer | None, int | None]:
        """Return the access that the next instruction is, and where in the NPU's registers."""
        first, second = self._instruction(values[PC])
        transfer = thumb.decode(first, second, values[PC], values.__getitem__)
        return transfer, None if transfer is None else self._offset(transfer.address)

    def _unknown_access(self, pc: int) -> End | None:
        """Go on from a stop at no access: an old one, reported late. At another one, end."""
        if self._unknown != pc:
            self._unknown = pc
            return None
        first, second = self._instruction(pc)
        message = (
            f"the processor reaches the NPU by an instruction that is not known here, "
            f"{first:04x} {second:04x} at {self._image.place(pc)}"
        )
        return End(Reason.FAULT, diagnostic=Diagnostic("E436", message))

    def _settle_access(self) -> End | None:
        """Make the accesses that the processor was stopped at by a look, not by the watch.

        QEMU may have seen such an access already and not told it; it would then let the next one
        pass, unmade. A step of an instruction that is none makes it tell, and forget.
        """
        stepped = False
        while not stepped:
            values = self._gdb.registers()
            _, offset = self._access_at(values)
            if offset is not None:
                end = self._access()
                if end is not None:
                    return end
            elif self._instruction(values[PC])[0] >> 8 == BREAKPOINT:
                stepped = True
            else:
                self._gdb.send("s")
                self._gdb.wait(STEP_SECONDS)
                stepped = True
        return None

    def _offset(self, address: int) -> int | None:
        npu = self._board.npu
        for base in (npu.base, npu.alias):
            if base is not None and base <= address < base + WINDOW_BYTES:
                return address - base
        return None

    def _instruction(self, pc: int) -> tuple[int, int]:
        if pc not in self._code:
            data = self._gdb.read(pc, 4).ljust(4, b"\0")
            self._code[pc] = int.from_bytes(data[:2], "little"), int.from_bytes(data[2:], "little")
        return self._code[pc]

    def _set_interrupt(self) -> None:
        if self._bus.device.irq != self._level:
            self._level = self._bus.device.irq
            self._process.set_interrupt(self._board.npu.irq, level=self._level)

    def _look(self) -> None:
        """Stop the processor, to look where it is."""
        self._gdb.interrupt()

    def _look_closer(self) -> End | None:
        """Let come what comes late; say so if the processor waits for what cannot come."""
        if self._access_at(self._gdb.registers())[1] is not None:
            return self._settle_access()
        if self._bus.device.is_late:
            self._bus.device.finish()
            self._bus.settle()
            self._set_interrupt()
            return None
        pc = self._gdb.registers()[PC]
        wait = self._wait_near(pc)
        if wait is None or self._level or self._ticks():
            self._idle = _Idle()
            return None
        if abs(pc - self._idle.place) > NEAR_BYTES:
            self._idle = _Idle(0, pc)
        self._idle.looks += 1
        if self._idle.looks < IDLE_LOOKS:
            return None
        ran = self._bus.device.invocation_count > 0
        return deadlock(self._image.place(wait), self._board.npu.irq, npu_ran=ran)

    def _wait_near(self, pc: int) -> int | None:
        """Return the address of a wait that the processor is at, or in a loop around."""
        for at in range(pc - 2, pc - NEAR_BYTES, -2):
            if self._instruction(at)[0] in {WFE, WFI}:
                return at
        return None

    def _ticks(self) -> bool:
        control = int.from_bytes(self._gdb.read(SYSTICK_CONTROL, 4), "little")
        return control & TICKS == TICKS

    def _timed_out(self, limits: Limits) -> End:
        place = "an unknown place"
        try:
            self._gdb.interrupt()
            while (packet := self._gdb.wait(1.0)) is not None:
                if packet.startswith("T"):
                    place = self._image.place(self._gdb.registers()[PC])
                    break
                if packet.startswith("F"):
                    self._gdb.send(self.files.answer(packet))
        except ConnectionLostError:
            pass
        return timed_out(limits, place)

    def _lost(self) -> End:
        code = self._process.exit_code()
        said = "is still there" if code is None else f"ended with {code}"
        message = (
            f"the processor could not go on: QEMU {said}, as it does where a fault has no handler"
        )
        return End(Reason.FAULT, diagnostic=Diagnostic("E436", message))
