"""Semihosting: what firmware may ask of a debugger, and what it is refused.

Console and end of the run are served. Firmware is not trusted, so files and commands of the host
are refused with -1, and what was asked is said.

Ref: Arm, Semihosting for AArch32 and AArch64, version 3: operations and parameter blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mizzen.diagnostics import Diagnostic, Severity
from mizzen.emulate.console import Console
from mizzen.emulate.guest import GuestMemory

REFUSED = 0xFFFF_FFFF
APPLICATION_EXIT = 0x20026
"""ADP_Stopped_ApplicationExit."""
CONSOLE = b":tt"
LONGEST_TEXT_BYTES = 1 << 16
KEPT_DIAGNOSTICS = 20
INPUT_HANDLE, OUTPUT_HANDLE = 1, 2
WRITE_MODES_FROM = 4
"""Modes of SYS_OPEN from here on write."""
ENOENT = 2


class Operation(IntEnum):
    """Operations, by the number in R0."""

    OPEN = 0x01
    CLOSE = 0x02
    WRITEC = 0x03
    WRITE0 = 0x04
    WRITE = 0x05
    READ = 0x06
    READC = 0x07
    ISERROR = 0x08
    ISTTY = 0x09
    SEEK = 0x0A
    FLEN = 0x0C
    TMPNAM = 0x0D
    REMOVE = 0x0E
    RENAME = 0x0F
    CLOCK = 0x10
    TIME = 0x11
    SYSTEM = 0x12
    ERRNO = 0x13
    GET_CMDLINE = 0x15
    HEAPINFO = 0x16
    EXIT = 0x18
    EXIT_EXTENDED = 0x20
    ELAPSED = 0x30
    TICKFREQ = 0x31


@dataclass(frozen=True, slots=True)
class Ended:
    """The firmware ended itself with a status."""

    status: int


class Semihosting:
    """Serves requests over the firmware's memory."""

    def __init__(self, memory: GuestMemory, console: Console) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._memory = memory
        self._console = console

    def request(self, operation: int, argument: int) -> int | Ended:
        """Return the new value of R0, or that the run has ended."""
        match operation:
            case Operation.EXIT:
                return Ended(0 if argument == APPLICATION_EXIT else 1)
            case Operation.EXIT_EXTENDED:
                reason, status = self._word(argument), self._word(argument + 4)
                code = status - (1 << 32) if status >> 31 else status
                return Ended(code if reason == APPLICATION_EXIT else 1)
            case Operation.WRITEC:
                self._console.write(self._bytes(argument, 1))
                return 0
            case Operation.WRITE0:
                self._console.write(self._text(argument))
                return 0
            case Operation.WRITE:
                return self._write(argument)
            case Operation.READ:
                return self._word(argument + 8)
            case Operation.OPEN:
                return self._open(argument)
            case _:
                return self._other(operation, argument)

    def _write(self, argument: int) -> int:
        handle, address, size = (self._word(argument + 4 * index) for index in range(3))
        if handle != OUTPUT_HANDLE:
            return size
        data = self._bytes(address, min(size, LONGEST_TEXT_BYTES))
        self._console.write(data)
        return size - len(data)

    def _open(self, argument: int) -> int:
        address, mode, length = (self._word(argument + 4 * index) for index in range(3))
        name = self._bytes(address, min(length, LONGEST_TEXT_BYTES))
        if name == CONSOLE:
            return OUTPUT_HANDLE if mode >= WRITE_MODES_FROM else INPUT_HANDLE
        return self._refuse(f"to open {name.decode('utf-8', 'replace')!r}")

    def _other(self, operation: int, argument: int) -> int:
        match operation:
            case Operation.CLOSE | Operation.FLEN | Operation.CLOCK | Operation.TIME:
                return 0
            case Operation.ISTTY:
                return 1
            case Operation.ISERROR:
                return int(self._word(argument) >> 31)
            case Operation.ERRNO:
                return ENOENT
            case Operation.REMOVE | Operation.RENAME | Operation.SYSTEM:
                size = min(self._word(argument + 4), LONGEST_TEXT_BYTES)
                name = self._bytes(self._word(argument), size).decode("utf-8", "replace")
                words = {Operation.SYSTEM: "run", Operation.REMOVE: "remove"}
                return self._refuse(f"to {words.get(Operation(operation), 'rename')} {name!r}")
            case _:
                known = operation in set(Operation)
                name = f"SYS_{Operation(operation).name}" if known else f"{operation:#x}"
                return self._refuse(f"for {name}")

    def _refuse(self, what: str) -> int:
        note_refusal(self.diagnostics, what)
        return REFUSED

    def _word(self, address: int) -> int:
        return int.from_bytes(self._bytes(address, 4), "little")

    def _bytes(self, address: int, size_bytes: int) -> bytes:
        """Return bytes of the firmware's memory; none where there is no memory."""
        return self._memory.read(address & REFUSED, size_bytes) or b""

    def _text(self, address: int) -> bytes:
        text = bytearray()
        while len(text) < LONGEST_TEXT_BYTES:
            byte = self._bytes(address + len(text), 1)
            if byte in {b"", b"\0"}:
                break
            text += byte
        return bytes(text)


def note_refusal(diagnostics: list[Diagnostic], what: str) -> None:
    """Say once what firmware asked for and did not get: ``to open 'FILE'``."""
    diagnostic = Diagnostic(
        "E433",
        f"firmware asked the host {what} by semihosting, and was refused",
        Severity.WARNING,
        help="only the console and the end of the run are served",
    )
    if diagnostic not in diagnostics and len(diagnostics) < KEPT_DIAGNOSTICS:
        diagnostics.append(diagnostic)
