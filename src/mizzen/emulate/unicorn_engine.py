"""Unicorn with types: the core's registers by name, memory, and how it is run.

Facts of Unicorn 2.1.4 that matter: WFE and YIELD stop with an error, the program counter after
them; WFI stops without one; a stop within a store leaves the program counter at the store; the
interrupt hook gives the exceptions of the QEMU inside; writing IPSR switches stack pointers.

A stop is heeded after the next load or store as well, and leaves the program counter at it, so
that it would be made again: a character is sent twice, a register loaded from the address that it
has overwritten. A stop from another thread, which Unicorn's own timeout is, comes at any of them,
and is lost if it comes before the run has begun. So only a run that is over is stopped so; one that
goes on is stopped by a count of instructions, which stops before one. Code that was translated
before it is counted is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from mizzen.diagnostics import fail

MISSING = "pip install '.[emulate]' in the folder of Mizzen's sources"


class _Uc(Protocol):
    """What is used of Unicorn's own class, which has no types for it."""

    def ctl_set_cpu_model(self, model: int) -> None: ...
    def reg_read(self, register: int) -> int: ...
    def reg_write(self, register: int, value: int) -> None: ...
    def reg_read_batch(self, registers: Sequence[int]) -> tuple[int, ...]: ...
    def reg_write_batch(self, values: Sequence[tuple[int, int]]) -> None: ...
    def mem_map(self, address: int, size: int, rights: int) -> None: ...
    def mem_map_ptr(self, address: int, size: int, rights: int, pointer: int) -> None: ...
    def mem_write(self, address: int, data: bytes) -> None: ...
    def mmio_map(
        self,
        address: int,
        size: int,
        read: Callable[[object, int, int, object], int],
        read_data: object,
        write: Callable[[object, int, int, int, object], None],
        write_data: object,
    ) -> None: ...
    def hook_add(self, kind: int, callback: Callable[..., Any]) -> int: ...
    def emu_start(self, begin: int, until: int, timeout: int = 0, count: int = 0) -> None: ...
    def ctl_flush_tb(self) -> None: ...
    def emu_stop(self) -> None: ...
    def ctl_exits_enabled(self, enable: bool) -> None: ...
    def ctl_set_exits(self, exits: Sequence[int]) -> None: ...


NOWHERE = 0xFFFF_FFFE
"""No firmware gets there, so that Unicorn stops for other reasons only."""

SP, LR, PC = 13, 14, 15
FRAME = (0, 1, 2, 3, 12, LR, PC)
"""Core registers of an exception's frame, lowest first; the status follows."""
FLOATS = 16
"""Floating-point registers of an extended frame."""


class EngineError(Exception):
    """Unicorn cannot go on."""


class Engine:
    """A Cortex-M33. E424 if Unicorn is not installed."""

    def __init__(self) -> None:
        try:
            from unicorn import (
                UC_ARCH_ARM,
                UC_MODE_MCLASS,
                UC_MODE_THUMB,
                arm_const,
                unicorn,
                unicorn_const,
            )
        except ImportError:
            raise fail("E424", "the processor m33 needs Unicorn", help=MISSING) from None
        self._error = unicorn.UcError
        self._consts = unicorn_const
        uc = unicorn.Uc(UC_ARCH_ARM, UC_MODE_THUMB | UC_MODE_MCLASS)
        self._uc = cast("_Uc", uc)
        self._uc.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_M33)
        self._core = [getattr(arm_const, f"UC_ARM_REG_R{index}") for index in range(16)]
        self._frame = [self._core[number] for number in FRAME]
        floats = [getattr(arm_const, f"UC_ARM_REG_S{index}") for index in range(FLOATS)]
        self._floats = [*floats, arm_const.UC_ARM_REG_FPSCR]
        names = ("XPSR", "IPSR", "CONTROL", "PRIMASK", "BASEPRI", "FAULTMASK")
        self._special = {name: getattr(arm_const, f"UC_ARM_REG_{name}") for name in names}
        self._masks = [self._special[name] for name in names[3:]]
        self._counts = False
        self._left: int | None = None

    @property
    def pc(self) -> int:
        """The address of the next instruction, without the bit for Thumb."""
        return self._uc.reg_read(self._core[PC]) & ~1

    def core(self, number: int) -> int:
        """Return a core register."""
        return self._uc.reg_read(self._core[number])

    def set_core(self, number: int, value: int) -> None:
        """Write a core register; a program counter gets the bit for Thumb."""
        self._uc.reg_write(self._core[number], value | 1 if number == PC else value)

    def special(self, name: str) -> int:
        """Return XPSR, IPSR or CONTROL."""
        return self._uc.reg_read(self._special[name])

    def set_special(self, name: str, value: int) -> None:
        """Write XPSR, IPSR or CONTROL."""
        self._uc.reg_write(self._special[name], value)

    def set_mask(self, name: str, value: int) -> None:
        """Write PRIMASK, BASEPRI or FAULTMASK."""
        self._uc.reg_write(self._special[name], value)

    def masks(self) -> tuple[int, int, int]:
        """Return PRIMASK, BASEPRI and FAULTMASK."""
        primask, basepri, faultmask = self._uc.reg_read_batch(self._masks)
        return primask, basepri, faultmask

    def frame(self) -> list[int]:
        """Return the core registers of an exception's frame."""
        return list(self._uc.reg_read_batch(self._frame))

    def set_frame(self, values: Sequence[int]) -> None:
        """Write the core registers of an exception's frame."""
        for register, value in zip(self._frame[:-1], values[:-1], strict=True):
            self._uc.reg_write(register, value)
        self.set_core(PC, values[-1])

    def floats(self) -> list[int]:
        """Return S0 to S15 and FPSCR."""
        return list(self._uc.reg_read_batch(self._floats))

    def set_floats(self, values: Sequence[int]) -> None:
        """Write S0 to S15 and FPSCR."""
        for register, value in zip(self._floats, values, strict=True):
            self._uc.reg_write(register, value)

    def map_memory(self, base: int, size_bytes: int, pointer: int, *, writable: bool) -> None:
        """Map memory into the core that lies at `pointer` in this process."""
        consts = self._consts
        rights = consts.UC_PROT_ALL if writable else consts.UC_PROT_READ | consts.UC_PROT_EXEC
        self._uc.mem_map_ptr(base, size_bytes, rights, pointer)

    def map_storage(self, base: int, size_bytes: int) -> None:
        """Map memory of the core's own, which holds no code."""
        rights = self._consts.UC_PROT_READ | self._consts.UC_PROT_WRITE
        self._uc.mem_map(base, size_bytes, rights)

    def map_device(
        self,
        base: int,
        size_bytes: int,
        read: Callable[[int, int], int],
        write: Callable[[int, int, int], None],
    ) -> None:
        """Map registers into the core: `read(offset, size)` and `write(offset, value, size)`."""
        self._uc.mmio_map(
            base,
            size_bytes,
            lambda _uc, offset, size, _data: read(offset, size),
            None,
            lambda _uc, offset, size, value, _data: write(offset, value, size),
            None,
        )

    def on_exception(self, hear: Callable[[int], None]) -> None:
        """Call `hear` with the exception that the core takes, and stop there."""

        def stop(_uc: object, number: int, _data: object) -> None:
            hear(number)
            self.stop()

        self._uc.hook_add(self._consts.UC_HOOK_INTR, stop)

    def on_bad_access(self, hear: Callable[[int, int], None]) -> None:
        """Call `hear` with address and size of an access that nothing answers."""

        def note(
            _uc: object, _kind: int, address: int, size: int, _value: int, _data: object
        ) -> bool:
            hear(address, size)
            return False

        self._uc.hook_add(self._consts.UC_HOOK_MEM_INVALID, note)

    def write_memory(self, address: int, data: bytes) -> None:
        """Write memory as the core would. Raises `EngineError` where there is none."""
        try:
            self._uc.mem_write(address, data)
        except self._error as error:
            raise EngineError(str(error)) from None

    @property
    def used_up(self) -> bool:
        """Whether the instructions that were allowed are done."""
        return self._left is not None and self._left < 0

    def allow(self, instructions: int) -> None:
        """Stop once so many instructions are done, in all runs together."""
        self._left = instructions

        def count(_uc: object, _address: int, _size: int, _data: object) -> None:
            assert self._left is not None
            self._left -= 1
            if self._left < 0:
                self.stop()

        self._uc.hook_add(self._consts.UC_HOOK_CODE, count)

    def run(self, instructions: int = 0) -> None:
        """Run until something stops it, or so many instructions are done if it is not 0.

        Raises `EngineError` for what cannot be executed.
        """
        if instructions and not self._counts:
            self._uc.ctl_flush_tb()
        self._counts = bool(instructions)
        try:
            self._uc.emu_start(self.pc | 1, NOWHERE, 0, instructions)
        except self._error as error:
            raise EngineError(str(error)) from None

    def stop_at(self, addresses: Sequence[int]) -> None:
        """Stop before each of these instructions, which costs the others nothing.

        What runs on from there must have gone past the instruction: it stops again at once.
        """
        self._uc.ctl_exits_enabled(True)
        self._uc.ctl_set_exits([*addresses, NOWHERE])

    def stop(self) -> None:
        """Stop the run: from a callback, or from another thread where it is not to go on."""
        self._uc.emu_stop()
