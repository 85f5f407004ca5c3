"""Semihosting as QEMU passes it on to a debugger: the console is served, the host's files are not.

Ref: GDB manual, "File-I/O Remote Protocol Extension": requests and answers.
"""

from __future__ import annotations

from mizzen.diagnostics import Diagnostic
from mizzen.emulate.console import Console
from mizzen.emulate.gdb_client import GdbClient
from mizzen.emulate.semihosting import LONGEST_TEXT_BYTES, note_refusal

REFUSED = "F-1,2"
"""No such file."""
NAMED = {"open": "open", "unlink": "remove", "rename": "rename", "system": "run", "stat": "look at"}
"""Requests whose first argument is a name, and what they ask for."""


class FileIo:
    """Answers File-I/O requests."""

    def __init__(self, gdb: GdbClient, console: Console) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._gdb = gdb
        self._console = console

    def answer(self, packet: str) -> str:
        """Return the answer to a request."""
        name, *arguments = packet[1:].split(",")
        if name == "write" and len(arguments) == 3:
            size = min(int(arguments[2], 16), LONGEST_TEXT_BYTES)
            self._console.write(self._gdb.read(int(arguments[1], 16), size))
            return f"F{size:x}"
        if name in NAMED and arguments:
            what = f"to {NAMED[name]} {self._name(arguments[0])!r}"
        elif name in {"isatty", "close", "read"}:
            return "F0"
        else:
            what = f"for {name}"
        note_refusal(self.diagnostics, what)
        return REFUSED

    def _name(self, argument: str) -> str:
        """Return the text that ``address/length`` points to."""
        address, _, length = argument.partition("/")
        size = min(int(length or "0", 16), LONGEST_TEXT_BYTES)
        return self._gdb.read(int(address, 16), size).rstrip(b"\0").decode("utf-8", "replace")
