"""The processor's own registers beside its core: interrupts, system control, timers.

Enough of an Armv8-M interrupt controller for drivers and small kernels: enabling, pending,
priorities with preemption, SysTick, PendSV, SVC, the vector table. What only configures (memory
protection, caches, coprocessor access) is kept and has no effect. Time is counted in accesses and
NPU cycles: no two runs differ, and no figure is the hardware's.

Ref: Arm Armv8-M Architecture Reference Manual (DDI0553): register maps of SCS, NVIC, SCB and DWT.
"""

from __future__ import annotations

from collections.abc import Iterator

PAGE = 0xE000_E000
DWT_PAGE = 0xE000_1000
CYCCNT = 0x04
ACCESS_CYCLES = 16
"""Time that passes with an access to these registers."""

SYSTICK, PENDSV, SVCALL = 15, 14, 11
FIRST_EXTERNAL = 16
CPUID = 0x411F_D210
"""Cortex-M33 r1p0."""
LOWEST_PRIORITY = 256

CSR, RVR, CVR = 0x010, 0x014, 0x018
ISER, ICER, ISPR, ICPR, IABR, IPR, IPR_END = 0x100, 0x180, 0x200, 0x280, 0x300, 0x400, 0x5F0
ICSR, VTOR, AIRCR, SHPR, SHPR_END = 0xD04, 0xD08, 0xD0C, 0xD18, 0xD24
TICK_ENABLE, TICK_INTERRUPT, TICK_FLAG = 1 << 0, 1 << 1, 1 << 16
RESET_REQUEST = 0x05FA_0004
RESET_MASK = 0xFFFF_0004


class SystemControl:
    """The registers, and which exception is to be taken.

    interrupts  external interrupts that there are
    """

    def __init__(self, interrupts: int) -> None:
        self.vector_table = 0
        self.active: list[int] = []
        self.reset_requested = False
        self._count = FIRST_EXTERNAL + interrupts
        self._enabled: set[int] = {SYSTICK, PENDSV, SVCALL}
        self._pending: set[int] = set()
        self._lines: set[int] = set()
        self._priorities: dict[int, int] = {}
        self._kept: dict[int, int] = {}
        self._now = 0
        self._tick_from = 0
        self._tick_flag = False

    def line(self, interrupt: int, *, level: bool) -> None:
        """Set the level of an external interrupt's line."""
        (self._lines.add if level else self._lines.discard)(FIRST_EXTERNAL + interrupt)

    def pass_time(self, cycles: int) -> None:
        """Let time pass, and SysTick with it."""
        self._now += cycles
        control = self._kept.get(CSR, 0)
        period = self._kept.get(RVR, 0) + 1
        if control & TICK_ENABLE and period > 1 and self._now - self._tick_from >= period:
            self._tick_from = self._now
            self._tick_flag = True
            if control & TICK_INTERRUPT:
                self._pending.add(SYSTICK)

    @property
    def ticks(self) -> bool:
        """Whether SysTick will interrupt some time."""
        both = TICK_ENABLE | TICK_INTERRUPT
        return self._kept.get(CSR, 0) & both == both and self._kept.get(RVR, 0) > 0

    def tick(self) -> None:
        """Let time pass to the next interrupt of SysTick."""
        self.pass_time(self._kept.get(RVR, 0) + 1)

    @property
    def waiting(self) -> bool:
        """Whether an exception is pending and enabled, masked or not."""
        return any(True for _ in self._candidates())

    def next(self, masked_from: int) -> int | None:
        """Return the exception to be taken now: the most urgent one, if anything may come.

        masked_from  priorities from this one on are masked; 256 masks nothing
        """
        limit = min([masked_from, *(self.priority(number) for number in self.active)])
        best = min(self._candidates(), key=lambda n: (self.priority(n), n), default=None)
        return best if best is not None and self.priority(best) < limit else None

    def priority(self, exception: int) -> int:
        """Return the priority of an exception; a smaller one is more urgent."""
        return -1 if exception < 4 else self._priorities.get(exception, 0)

    def enter(self, exception: int) -> None:
        """Make an exception active."""
        self._pending.discard(exception)
        self.active.append(exception)

    def leave(self) -> None:
        """End the exception that was entered last."""
        if self.active:
            self.active.pop()

    def pend(self, exception: int) -> None:
        """Make an exception pending."""
        self._pending.add(exception)

    def read(self, offset: int, size_bytes: int) -> int:
        """Return the value that a load from the page of system control reads."""
        self.pass_time(ACCESS_CYCLES)
        word = self._word(offset & ~3)
        return word >> 8 * (offset & 3) & (1 << 8 * size_bytes) - 1

    def write(self, offset: int, value: int, size_bytes: int) -> None:
        """Do what a store to the page of system control does."""
        self.pass_time(ACCESS_CYCLES)
        if size_bytes < 4:
            shift, width = 8 * (offset & 3), (1 << 8 * size_bytes) - 1
            old = 0 if ISER <= offset < IABR else self._word(offset & ~3)
            value = old & ~(width << shift) | value << shift
        self._write(offset & ~3, value)

    def read_watch(self, offset: int) -> int:
        """Return a register of the data watchpoint unit: its cycle counter runs."""
        self.pass_time(ACCESS_CYCLES)
        return self._now & 0xFFFF_FFFF if offset == CYCCNT else 0

    def _candidates(self) -> Iterator[int]:
        for number in self._enabled & (self._pending | self._lines):
            if number not in self.active:
                yield number

    def _word(self, offset: int) -> int:
        match offset:
            case 0xD00:
                return CPUID
            case 0xD04:
                pendsv, tick = PENDSV in self._pending, SYSTICK in self._pending
                active = self.active[-1] if self.active else 0
                return pendsv << 28 | tick << 26 | active
            case 0xD08:
                return self.vector_table
            case 0x010:
                flag = TICK_FLAG if self._tick_flag else 0
                self._tick_flag = False
                return self._kept.get(CSR, 0) | flag
            case 0x018:
                period = self._kept.get(RVR, 0) + 1
                return period - 1 - (self._now - self._tick_from) % period
            case _ if ISER <= offset < IPR_END or SHPR <= offset < SHPR_END:
                return self._interrupts(offset)
            case _:
                return self._kept.get(offset, 0)

    def _interrupts(self, offset: int) -> int:
        match offset:
            case _ if ISER <= offset < ICER or ICER <= offset < ISPR:
                return self._bits(self._enabled, offset & 0x7F)
            case _ if ISPR <= offset < IABR:
                return self._bits(self._pending | self._lines, offset & 0x7F)
            case _ if IABR <= offset < IABR + 0x80:
                return self._bits(set(self.active), offset & 0x7F)
            case _ if IPR <= offset < IPR_END:
                return self._four(FIRST_EXTERNAL + offset - IPR)
            case _ if SHPR <= offset < SHPR_END:
                return self._four(4 + offset - SHPR)
            case _:
                return 0

    def _write(self, offset: int, value: int) -> None:
        match offset:
            case 0xD04:
                self._write_state(value)
            case 0xD08:
                self.vector_table = value & ~0x7F
            case 0xD0C:
                self.reset_requested |= value & RESET_MASK == RESET_REQUEST
            case 0x018:
                self._tick_from = self._now
                self._tick_flag = False
            case _ if ISER <= offset < IABR:
                self._write_interrupts(offset, value)
            case _ if IPR <= offset < IPR_END:
                self._set_four(FIRST_EXTERNAL + offset - IPR, value)
            case _ if SHPR <= offset < SHPR_END:
                self._set_four(4 + offset - SHPR, value)
            case _:
                if offset == CSR:
                    self._tick_from = self._now
                self._kept[offset] = value

    def _write_state(self, value: int) -> None:
        for bit, number, pends in (
            (28, PENDSV, True), (27, PENDSV, False), (26, SYSTICK, True), (25, SYSTICK, False)
        ):  # fmt: skip
            if value >> bit & 1:
                (self._pending.add if pends else self._pending.discard)(number)

    def _write_interrupts(self, offset: int, value: int) -> None:
        chosen = {
            number
            for bit in range(32)
            if value >> bit & 1
            if (number := FIRST_EXTERNAL + 8 * (offset & 0x7F) + bit) < self._count
        }
        if offset < ICER:
            self._enabled |= chosen
        elif offset < ISPR:
            self._enabled -= chosen
        elif offset < ICPR:
            self._pending |= chosen
        else:
            self._pending -= chosen

    def _bits(self, numbers: set[int], offset: int) -> int:
        first = FIRST_EXTERNAL + 8 * offset
        return sum(1 << bit for bit in range(32) if first + bit in numbers)

    def _four(self, first: int) -> int:
        return sum(self._priorities.get(first + index, 0) << 8 * index for index in range(4))

    def _set_four(self, first: int, value: int) -> None:
        for index in range(4):
            self._priorities[first + index] = value >> 8 * index & 0xFF
