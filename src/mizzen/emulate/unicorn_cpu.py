"""The processor by Unicorn, in this process: a Cortex-M33 core, and what it lacks around it.

Unicorn executes instructions; exceptions are taken and left here, with the frames that firmware
may look into. An interrupt is taken where it arises: at the store that starts the NPU, at one to
the interrupt controller, or at a wait. No hook runs for each instruction, which would cost a
hundredfold.

Ref: Arm Armv8-M Architecture Reference Manual (DDI0553), B3.18 to B3.22: exception entry, return,
stack frames.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait

from mizzen.boards import Board
from mizzen.boards.board import Uart
from mizzen.diagnostics import Diagnostic
from mizzen.emulate import thumb
from mizzen.emulate.console import Console
from mizzen.emulate.guest import GuestMemory
from mizzen.emulate.image import Image, vector_table
from mizzen.emulate.processor import Deadline, End, Limits, Reason, deadlock, timed_out
from mizzen.emulate.queue import TimeIsUpError
from mizzen.emulate.registers import WINDOW_BYTES
from mizzen.emulate.semihosting import Ended, Semihosting
from mizzen.emulate.serial_port import SerialPort
from mizzen.emulate.system_control import (
    DWT_PAGE,
    LOWEST_PRIORITY,
    PAGE,
    SVCALL,
    SystemControl,
)
from mizzen.emulate.trace import NpuBus
from mizzen.emulate.unicorn_engine import LR, PC, SP, Engine, EngineError
from mizzen.emulate.unmasking import WIDTHS, Unmasking, behind, holds, it_state, unmaskings

PAGE_BYTES = 0x1000
PRIVATE_PERIPHERALS = 0xE000_0000
SECURE_BIT = 0x1000_0000
"""Set in the address of a peripheral's other view."""
EXCEPTION_RETURN, BREAKPOINT, SUPERVISOR_CALL = 8, 7, 2
"""What Unicorn's interrupt hook says, the exceptions of the QEMU inside."""
SEMIHOSTING, WFE, WFI, YIELD = 0xBEAB, 0xBF20, 0xBF30, 0xBF10

FRAME_BYTES, EXTENDED_FRAME_BYTES = 0x20, 0x68
FPCA = 1 << 2
STACK_POINTER_SELECT = 1 << 1
ALIGNED_BIT = 1 << 9
THUMB_BIT = 1 << 24
IN_HANDLER, IN_THREAD, WITHOUT_FLOATS, ON_PROCESS_STACK = 0xF1, 0xF9, 1 << 4, 1 << 2
RETURN_CODE = 0xFFFF_FF00
TO_THREAD = 1 << 3
EXCEPTION_MASK = 0x1FF

IDLE_WAITS = 200
"""Waits for an event in a row, with nothing between that could make one, that are a deadlock. WFE
may wake for no reason, so firmware waits in a loop that looks again."""
SLICE_INSTRUCTIONS = 500_000
"""How often a run looks for what comes by itself: SysTick, a late NPU, an unmasked interrupt. No
clock says so: no two runs of a firmware differ. A slice takes about 2 ms."""
WATCH_SECONDS = 0.05
"""How often the end is called for once a run is over."""

M55_HINT = "run it with --cpu m55, or build it with -mcpu=cortex-m33"


class _StackError(Exception):
    """A stack pointer points to no memory."""

    def __init__(self, address: int) -> None:
        super().__init__(address)
        self.address = address


class UnicornProcessor:
    """A Cortex-M33 on a board, with firmware loaded. E424 if Unicorn is missing."""

    def __init__(
        self, board: Board, image: Image, memory: GuestMemory, bus: NpuBus, console: Console
    ) -> None:
        self.system = SystemControl(board.cpu.interrupts)
        self.semihosting = Semihosting(memory, console)
        self._board, self._image, self._memory, self._bus = board, image, memory, bus
        self._console = console
        self._engine = Engine()
        self._exception: int | None = None
        self._store: int | None = None
        self._bad: tuple[int, int] | None = None
        self._idle = 0
        self._sliced = False
        self._raised: BaseException | None = None
        self._unmaskings = unmaskings(image)
        self._engine.stop_at([*self._unmaskings])
        self._map()

    def run(self, limits: Limits, deadline: Deadline) -> End:
        """Run from reset until the firmware ends, or is ended."""
        self._reset()
        if limits.instructions is not None:
            self._engine.allow(limits.instructions)
        ended: Future[End] = Future()
        runner = threading.Thread(target=self._end, args=(limits, deadline, ended), daemon=True)
        runner.start()
        try:
            wait([ended], max(0.0, deadline.left_seconds))
        finally:
            self._stop(runner, deadline)
        return ended.result()

    def _stop(self, runner: threading.Thread, deadline: Deadline) -> None:
        """Bring the run to its end, if it has none yet: it does not look at the time by itself."""
        if runner.is_alive():
            deadline.call_off()
        while runner.is_alive():
            self._engine.stop()
            runner.join(WATCH_SECONDS)

    def _end(self, limits: Limits, deadline: Deadline, ended: Future[End]) -> None:
        """Run in a thread of its own: an interrupt comes to the one that waits, at once."""
        try:
            ended.set_result(self._loop(limits, deadline))
        except TimeIsUpError:
            ended.set_result(timed_out(limits, self._image.place(self._engine.pc)))
        except _StackError as error:
            where = f"{error.address:#010x}"
            ended.set_result(self._fault(f"cannot enter an exception: its stack is at {where}"))
        except BaseException as error:
            ended.set_exception(error)

    def _loop(self, limits: Limits, deadline: Deadline) -> End:
        while True:
            deadline.check()
            self._take_interrupt()
            end = self._go() or self._consider()
            if end is not None:
                return end
            if self._engine.used_up:
                message = f"the firmware did not end within {limits.instructions} instructions"
                return End(Reason.LIMIT, diagnostic=Diagnostic("E439", message))

    def _map(self) -> None:
        for bank in self._memory.banks:
            memory, pointer = bank.memory, bank.data.ctypes.data
            for base in memory.bases:
                self._engine.map_memory(base, memory.size_bytes, pointer, writable=memory.writable)
        self._map_devices()
        self._engine.on_exception(self._on_exception)
        self._engine.on_bad_access(self._on_bad_access)

    def _map_console(self, place: Uart) -> None:
        uart = SerialPort(place.kind, self._console)
        for base in (place.base, place.alias):
            self._map_device(
                base, PAGE_BYTES, lambda at, _: uart.read(at), lambda at, v, _: uart.write(at, v)
            )

    def _map_devices(self) -> None:
        board = self._board
        for base in (board.npu.base, board.npu.alias):
            self._map_device(base, WINDOW_BYTES, self._read_npu, self._write_npu)
        if board.console is not None:
            self._map_console(board.console)
        pages = {
            base & ~(PAGE_BYTES - 1)
            for adapter in board.timing_adapters
            for base in (adapter.base, adapter.alias)
            if base is not None
        }
        for page in pages:
            if page not in self._pages_of_npu:
                self._engine.map_storage(page, PAGE_BYTES)
        self._engine.map_storage(PRIVATE_PERIPHERALS, PAGE_BYTES)
        self._engine.map_storage(PRIVATE_PERIPHERALS + 2 * PAGE_BYTES, PAGE_BYTES)
        self._map_device(
            DWT_PAGE, PAGE_BYTES, lambda at, _: self.system.read_watch(at), lambda _at, _v, _s: None
        )
        self._map_device(PAGE, PAGE_BYTES, self.system.read, self._write_system)

    @property
    def _pages_of_npu(self) -> set[int]:
        npu = self._board.npu
        bases = [base for base in (npu.base, npu.alias) if base is not None]
        return {base + at for base in bases for at in range(0, WINDOW_BYTES, PAGE_BYTES)}

    def _map_device(
        self,
        base: int | None,
        size: int,
        read: Callable[[int, int], int],
        write: Callable[[int, int, int], None],
    ) -> None:
        if base is not None:
            self._engine.map_device(
                base,
                size,
                lambda offset, width: self._guarded(lambda: read(offset, width)) or 0,
                lambda offset, value, width: self._do(lambda: write(offset, value, width)),
            )

    def _do(self, access: Callable[[], None]) -> None:
        self._guarded(access)

    def _guarded(self, access: Callable[[], int | None]) -> int | None:
        """Do an access; what it raises ends the run, and goes on after Unicorn's own frames."""
        try:
            return access()
        except BaseException as error:
            self._raised = error
            self._engine.stop()
            return None

    def _read_npu(self, offset: int, size: int) -> int:
        value = self._bus.read(offset, size)
        self._after_npu()
        return value

    def _write_npu(self, offset: int, value: int, size: int) -> None:
        before = len(self._bus.device.invocations)
        self._bus.write(offset, value, size)
        self._idle = 0
        for invocation in self._bus.device.invocations[before:]:
            self.system.pass_time(invocation.cycles.total)
        self._after_npu()
        self._stop_at_store(self._board.npu.base + offset)

    def _after_npu(self) -> None:
        self.system.line(self._board.npu.irq, level=self._bus.device.irq)

    def _write_system(self, offset: int, value: int, size: int) -> None:
        self.system.write(offset, value, size)
        self._idle = 0
        self._stop_at_store(PAGE + offset)

    def _stop_at_store(self, address: int) -> None:
        """Look around after this store, if it made something that has to be seen to."""
        ticks = self.system.ticks and not self._sliced
        if self.system.reset_requested or self.system.waiting or self._bus.device.is_late or ticks:
            self._store = address
            self._engine.stop()

    def _go(self) -> End | None:
        """Run until something happens; say what, if it is the end."""
        self._exception, self._bad = None, None
        self._sliced = self._can_wait or self.system.waiting
        try:
            self._engine.run(SLICE_INSTRUCTIONS if self._sliced else 0)
        except EngineError:
            return self._on_error()
        return None

    def _pass_slice(self) -> None:
        """Let come what comes while the processor runs, once a slice is over."""
        if self._bus.device.is_late:
            self._finish_late()
        elif self.system.ticks:
            self.system.tick()

    def _finish_late(self) -> None:
        self._bus.device.finish()
        self._bus.settle()
        self._after_npu()

    def _consider(self) -> End | None:
        """Do what the processor was stopped for."""
        if self._raised is not None:
            raise self._raised
        store, self._store = self._store, None
        if store is not None:
            self._pass_store(store)
        if self.system.reset_requested:
            message = f"the firmware asked for a reset at {self._image.place(self._engine.pc)}"
            return End(Reason.FAULT, diagnostic=Diagnostic("E436", message))
        match self._exception:
            case None if store is not None:
                return None
            case None if self._engine.pc in self._unmaskings:
                return self._unmask(self._unmaskings[self._engine.pc])
            case None:
                return self._wait() if self._behind(WFI) else self._pass_slice()
            case value if value == BREAKPOINT:
                return self._breakpoint()
            case value if value == SUPERVISOR_CALL:
                self.system.pend(SVCALL)
                return None
            case value if value == EXCEPTION_RETURN:
                return self._leave()
            case _:
                return self._fault(
                    f"could not execute what is at {self._image.place(self._engine.pc)}"
                )

    def _behind(self, instruction: int) -> bool:
        return self._halfword(self._engine.pc - 2) == instruction

    def _pass_store(self, address: int) -> None:
        """Go past the store that the processor was stopped at, whose effect is there already.

        Unicorn stops with the program counter at the store, which would run again. In an IT block
        it stops after it.
        """
        pc = self._engine.pc
        transfer = thumb.decode(self._halfword(pc), self._halfword(pc + 2), pc, self._engine.core)
        if transfer is None or transfer.loads or not self._same_place(transfer, address):
            return
        self._engine.set_core(PC, pc + transfer.length_bytes)
        if transfer.writeback is not None:
            self._engine.set_core(*transfer.writeback)

    def _unmask(self, unmasking: Unmasking) -> None:
        """Do an instruction that lets interrupts in, so that they are taken right after it."""
        engine = self._engine
        status = engine.special("XPSR")
        state = it_state(status)
        if not state or holds(state >> 4, status):
            value = 0 if unmasking.register is None else engine.core(unmasking.register)
            for name in unmasking.names:
                engine.set_mask(name, value & WIDTHS[name])
        engine.set_core(PC, engine.pc + unmasking.length_bytes)
        if state:
            engine.set_special("XPSR", behind(status))

    def _same_place(self, transfer: thumb.Transfer, address: int) -> bool:
        start, end = (value & ~SECURE_BIT for value in (transfer.address, transfer.end))
        return start <= address & ~SECURE_BIT < end

    def _on_exception(self, number: int) -> None:
        self._exception = number

    def _on_bad_access(self, address: int, size: int) -> None:
        self._bad = (address, size)

    def _on_error(self) -> End | None:
        """Unicorn stops at waits as at instructions that it does not know, one after them."""
        if self._raised is not None:
            raise self._raised
        if self._bad is not None:
            return self._bad_access(*self._bad)
        if self._behind(WFE):
            return self._wait_for_event()
        if self._behind(YIELD):
            return None
        words = f"{self._halfword(self._engine.pc):04x} {self._halfword(self._engine.pc + 2):04x}"
        message = f"has no instruction {words}, at {self._image.place(self._engine.pc)}"
        return self._fault(message, M55_HINT, code="E422")

    def _bad_access(self, address: int, size: int) -> End:
        pc, transfer = self._culprit(address)
        bank = self._memory.bank(address)
        why = (
            f"{bank[0].memory.name} is read-only" if bank else f"{self._board.name} has none there"
        )
        if transfer is None:
            return self._fault(f"cannot reach {address:#010x}, at {self._image.place(pc)}: {why}")
        verb = "load" if transfer.loads else "store"
        names = ", ".join(f"r{number}" for number in transfer.registers)
        return self._fault(
            f"cannot {verb} {names}, {size} bytes at {address:#010x}, by the instruction at "
            f"{self._image.place(pc)}: {why}"
        )

    def _culprit(self, address: int) -> tuple[int, thumb.Transfer | None]:
        """Return the instruction of a bad access; Unicorn's program counter is near it."""
        pc = self._engine.pc
        for at in (pc - 2, pc - 4, pc):
            transfer = thumb.decode(
                self._halfword(at), self._halfword(at + 2), at, self._engine.core
            )
            if transfer is not None and transfer.address <= address < transfer.end:
                return at, transfer
        return pc, None

    def _fault(self, what: str, hint: str | None = None, code: str = "E436") -> End:
        message = f"the processor {what}"
        return End(Reason.FAULT, diagnostic=Diagnostic(code, message, help=hint))

    def _wait_for_event(self) -> End | None:
        if self.system.next(self._masked_from()) is not None:
            return None
        self._idle += 1
        return self._wait() if self._idle > IDLE_WAITS or self._can_wait else None

    @property
    def _can_wait(self) -> bool:
        return self._bus.device.is_late or self.system.ticks

    def _wait(self) -> End | None:
        """Let come what can come while the processor sleeps; a deadlock if nothing can."""
        if self.system.waiting:
            self._idle = 0
            return None
        if self._bus.device.is_late:
            self._finish_late()
            return None
        if self.system.ticks:
            self.system.tick()
            return None
        place = self._image.place(self._engine.pc - 2)
        ran = self._bus.device.invocation_count > 0
        return deadlock(place, self._board.npu.irq, npu_ran=ran)

    def _breakpoint(self) -> End | None:
        pc = self._engine.pc
        if self._halfword(pc) != SEMIHOSTING:
            return self._fault(f"stopped at a breakpoint at {self._image.place(pc)}")
        answer = self.semihosting.request(self._engine.core(0), self._engine.core(1))
        if isinstance(answer, Ended):
            return End(Reason.EXITED, answer.status)
        self._engine.set_core(0, answer)
        self._engine.set_core(PC, pc + 2)
        return None

    def _masked_from(self) -> int:
        """Return the priority from which on exceptions are masked."""
        primask, basepri, faultmask = self._engine.masks()
        if primask or faultmask:
            return 0
        return basepri or LOWEST_PRIORITY

    def _take_interrupt(self) -> None:
        number = self.system.next(self._masked_from())
        if number is not None:
            self._enter(number)

    def _enter(self, number: int) -> None:
        """Push a frame and go to the handler."""
        engine = self._engine
        control, xpsr = engine.special("CONTROL"), engine.special("XPSR")
        has_floats, stack = bool(control & FPCA), engine.core(SP)
        frame = (stack - (EXTENDED_FRAME_BYTES if has_floats else FRAME_BYTES)) & ~7
        status = xpsr & ~ALIGNED_BIT | (ALIGNED_BIT if stack & 4 else 0) | THUMB_BIT
        values = [*engine.frame(), status]
        if has_floats:
            values += [*engine.floats(), 0]
        self._push(frame, values)
        in_handler = bool(self.system.active)
        code = IN_HANDLER if in_handler else IN_THREAD
        code |= ON_PROCESS_STACK if not in_handler and control & STACK_POINTER_SELECT else 0
        code &= ~(WITHOUT_FLOATS if has_floats else 0)
        engine.set_core(SP, frame)
        self.system.enter(number)
        engine.set_special("IPSR", number)
        engine.set_special("CONTROL", control & ~FPCA)
        engine.set_core(LR, RETURN_CODE | code)
        engine.set_core(PC, self._word(self.system.vector_table + 4 * number))
        self._idle = 0

    def _leave(self) -> End | None:
        """Pop the frame that the return's code names."""
        engine, code = self._engine, self._engine.pc | 1
        has_floats, to_thread = not code & WITHOUT_FLOATS, bool(code & TO_THREAD)
        self.system.leave()
        if not to_thread and not self.system.active:
            return self._fault(f"cannot return from an exception by {code:#010x}: none is active")
        number = 0 if to_thread else self.system.active[-1]
        engine.set_special("IPSR", number)
        control = engine.special("CONTROL") & ~FPCA
        if to_thread:
            selected = STACK_POINTER_SELECT if code & ON_PROCESS_STACK else 0
            control = control & ~STACK_POINTER_SELECT | selected
        engine.set_special("CONTROL", control)
        frame = engine.core(SP)
        size = EXTENDED_FRAME_BYTES if has_floats else FRAME_BYTES
        values = self._words(frame, size // 4)
        if values is None:
            return self._fault(f"cannot return from an exception: its stack is at {frame:#010x}")
        engine.set_core(SP, frame + size + (4 if values[7] & ALIGNED_BIT else 0))
        engine.set_frame(values[:7])
        engine.set_special("XPSR", values[7] & ~(ALIGNED_BIT | EXCEPTION_MASK) | number)
        if has_floats:
            engine.set_floats(values[8:25])
        engine.set_special("CONTROL", control | (FPCA if has_floats else 0))
        return None

    def _reset(self) -> None:
        """Start as the hardware does: stack and first instruction from the vector table."""
        table = vector_table(self._image)
        self.system.vector_table = table
        self._engine.set_core(SP, self._word(table))
        self._engine.set_core(PC, self._word(table + 4))

    def _halfword(self, address: int) -> int:
        bytes_ = self._memory.read(address, 2)
        return int.from_bytes(bytes_, "little") if bytes_ else 0

    def _word(self, address: int) -> int:
        bytes_ = self._memory.read(address, 4)
        return int.from_bytes(bytes_, "little") if bytes_ else 0

    def _words(self, address: int, count: int) -> list[int] | None:
        bytes_ = self._memory.read(address, 4 * count)
        if bytes_ is None:
            return None
        return [int.from_bytes(bytes_[at : at + 4], "little") for at in range(0, 4 * count, 4)]

    def _push(self, address: int, values: list[int]) -> None:
        """Write a frame; where the stack is in no memory, the processor cannot go on."""
        data = b"".join(value.to_bytes(4, "little") for value in values)
        try:
            self._engine.write_memory(address & 0xFFFF_FFFF, data)
        except EngineError:
            raise _StackError(address & 0xFFFF_FFFF) from None
