"""A process of the stock qemu-system-arm, stopped before its first instruction.

It is reached by two sockets: a GDB stub, and QEMU's test protocol, which is what raises an
interrupt line. The machine's DRAM is a file that both processes map. Semihosting is served through
the stub, so that firmware reaches no file.

Ref: QEMU 7.2 documentation, "GDB usage", "Arm MPS2 and MPS3 boards"; tests/qtest/libqtest.h.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mizzen.boards import Board
from mizzen.diagnostics import fail
from mizzen.emulate.console import Console
from mizzen.emulate.gdb_client import ConnectionLostError, GdbClient
from mizzen.emulate.guest import Bytes
from mizzen.files import temporary_folder
from mizzen.workers.child import Child

PROGRAM = "qemu-system-arm"
SHARED_MEMORY = Path("/dev/shm")
READ_BYTES = 1 << 16
HAS_UNIX_SOCKETS = hasattr(socket, "AF_UNIX")
WHEN_TOLD = ("/bin/sh", "-c", 'read -r line && exec "$0" "$@"')
"""Begins a command once a line comes, which it does not if this process is gone by then."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of QEMU.

    dram_base, dram_bytes  memory that may be a file
    controller             the object whose inputs are the processor's interrupts
    first_interrupt        number of the first of those inputs
    """

    dram_base: int
    dram_bytes: int
    controller: str
    inputs: str
    first_interrupt: int


MACHINES: dict[str, Machine] = {
    "mps3-an547": Machine(0x6000_0000, 2 << 30, "/machine/iotkit", "EXP_IRQ", 32),
}
"""Machines by their names. Ref: QEMU 7.2, hw/arm/mps2-tz.c (memories), hw/arm/armsse.c (inputs)."""


class QemuProcess:
    """One process, with both connections and its memory.

    opened  what is closed when the process ends
    """

    def __init__(
        self,
        machine: Machine,
        process: Child,
        folder: Path,
        dram: Bytes,
        opened: contextlib.ExitStack,
    ) -> None:
        self._opened = opened
        self.dram = dram
        self._machine = machine
        self._process = process
        self.gdb = GdbClient(self._connect(folder / "gdb"))
        self._test = self._connect(folder / "test")

    def shared(self, board: Board) -> dict[str, Bytes]:
        """Return the board's memories that lie in the machine's DRAM."""
        start, end = self._machine.dram_base, self._machine.dram_base + self._machine.dram_bytes
        return {
            memory.name: self.dram[memory.base - start : memory.base - start + memory.size_bytes]
            for memory in board.mapped
            if start <= memory.base and memory.base + memory.size_bytes <= end
        }

    def set_interrupt(self, interrupt: int, *, level: bool) -> None:
        """Set an interrupt line."""
        machine = self._machine
        number = interrupt - machine.first_interrupt
        line = f"set_irq_in {machine.controller} {machine.inputs} {number} {int(level)}\n"
        try:
            self._test.sendall(line.encode("ascii"))
            answer = b""
            while not answer.endswith(b"\n"):
                data = self._test.recv(READ_BYTES)
                if not data:
                    raise ConnectionLostError
                answer += data
        except OSError:
            raise ConnectionLostError from None

    def exit_code(self) -> int | None:
        """Return how the process ended, if it ends at once."""
        try:
            return self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return None

    def _connect(self, path: Path) -> socket.socket:
        """Connect as soon as the process listens. E425 if it ends before."""
        end = time.monotonic() + 10.0
        while time.monotonic() < end and self._process.poll() is None:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(path))
            except OSError:
                connection.close()
                time.sleep(0.005)
                continue
            return self._opened.enter_context(connection)
        raise fail("E425", f"{PROGRAM} must start, and does not", help="7.2 and newer are known")


@contextlib.contextmanager
def started(board: Board, firmware: bytes, console: Console) -> Generator[QemuProcess]:
    """Start a process for a board with firmware loaded; it ends with the block.

    E425 if QEMU is not installed or does not start, E426 for a board that it has no machine of.
    """
    machine = _machine(board)
    if not HAS_UNIX_SOCKETS:
        raise fail(
            "E425",
            f"the processor m55 needs a system with Unix sockets, by which {PROGRAM} is served, "
            f"and {sys.platform} has none in Python",
            help="run it with --cpu m33",
        )
    program = shutil.which(PROGRAM)
    if program is None:
        raise fail(
            "E425", f"the processor m55 needs {PROGRAM}", help="apt-get install qemu-system-arm"
        )
    place = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    with temporary_folder(place) as folder:
        (folder / "firmware.elf").write_bytes(firmware)
        dram = _dram(folder / "dram", machine.dram_bytes)
        command = [program, *_words(board, machine, folder)]
        process = Child([*WHEN_TOLD, *command])
        _tell(process)
        reader = threading.Thread(target=_read, args=(process, console), daemon=True)
        reader.start()
        with contextlib.ExitStack() as opened:
            opened.callback(_end, process, reader)
            yield QemuProcess(machine, process, folder, dram, opened)


def _machine(board: Board) -> Machine:
    machine = MACHINES.get(board.cpu.qemu or "")
    if machine is None:
        raise fail(
            "E426",
            "the processor m55 needs a board that QEMU has a machine of, and "
            f"{board.name} is not one",
            help="run it with --cpu m33, or on --board corstone300",
        )
    return machine


def _words(board: Board, machine: Machine, folder: Path) -> list[str]:
    dram = f"memory-backend-file,id=dram,size={machine.dram_bytes},mem-path={folder}/dram,share=on"
    return [
        "-machine", f"{board.cpu.qemu},memory-backend=dram", "-object", dram,
        "-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot", "-S",
        "-chardev", "stdio,id=console,mux=on,signal=off", "-serial", "chardev:console",
        "-semihosting-config", "enable=on,target=gdb,chardev=console",
        "-chardev", f"socket,id=gdb,path={folder}/gdb,server=on,wait=off", "-gdb", "chardev:gdb",
        "-accel", "tcg", "-qtest", f"unix:{folder}/test,server=on,wait=off", "-qtest-log", "none",
        "-kernel", f"{folder}/firmware.elf",
    ]  # fmt: skip


def _dram(path: Path, size_bytes: int) -> Bytes:
    """Make the file of the machine's DRAM, of which untouched pages cost nothing, and map it."""
    with path.open("w+b") as file:
        file.truncate(size_bytes)
        return np.frombuffer(mmap.mmap(file.fileno(), size_bytes), np.uint8)


def _tell(process: Child) -> None:
    """Let QEMU start, now that it ends with this process; its console has no input."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(b"\n")
        process.stdin.close()


def _end(process: Child, reader: threading.Thread) -> None:
    """End the process, and take the rest of what it wrote."""
    process.kill()
    process.wait()
    reader.join()
    assert process.stdout is not None
    process.stdout.close()


def _read(process: Child, console: Console) -> None:
    """Take what the process writes to the end."""
    assert process.stdout is not None
    while data := os.read(process.stdout.fileno(), READ_BYTES):
        console.write(data)
