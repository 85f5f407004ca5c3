"""The GDB remote serial protocol, as far as a stopped processor is looked into and set on again.

Ref: GDB manual, appendix "GDB Remote Serial Protocol": packets, stop replies, File-I/O.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

CHUNK_BYTES = 1024
"""Bytes of memory in one packet: QEMU takes packets of at most 4096 characters."""
INTERRUPT = b"\x03"
CORE_REGISTERS = 16
STATUS_INDEX = 16
"""Where the status register follows the core registers of an M-profile target."""


class ConnectionLostError(Exception):
    """The other end has gone."""


class GdbClient:
    """One connection to a stub that is stopped."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()
        self.ask("qSupported:xmlRegisters=arm")
        # The stub numbers registers as it describes them only once it was asked to.
        self.ask("qXfer:features:read:target.xml:0,ffb")

    def ask(self, packet: str) -> str:
        """Send a packet and return the answer to it."""
        self.send(packet)
        answer = self.wait(None)
        assert answer is not None
        return answer

    def send(self, packet: str) -> None:
        """Send a packet."""
        data = packet.encode("ascii")
        try:
            self._connection.sendall(b"$" + data + b"#%02x" % (sum(data) & 0xFF))
        except OSError:
            raise ConnectionLostError from None

    def interrupt(self) -> None:
        """Ask the processor to stop; a stop reply follows."""
        try:
            self._connection.sendall(INTERRUPT)
        except OSError:
            raise ConnectionLostError from None

    def wait(self, seconds: float | None) -> str | None:
        """Return the next packet, or None if none comes in so many seconds."""
        while True:
            packet = self._taken()
            if packet is not None:
                return packet
            self._connection.settimeout(seconds)
            try:
                data = self._connection.recv(1 << 16)
            except TimeoutError:
                return None
            except OSError:
                raise ConnectionLostError from None
            if not data:
                raise ConnectionLostError
            self._buffer += data

    def registers(self) -> list[int]:
        """Return R0 to R15, and the status register after them."""
        data = bytes.fromhex(self.ask("g"))
        return list(struct.unpack_from(f"<{STATUS_INDEX + 1}I", data))

    def set_registers(self, values: Sequence[int]) -> None:
        """Write R0 to R15 and the status register; the stub keeps the others."""
        self.ask("G" + struct.pack(f"<{len(values)}I", *values).hex())

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return memory; fewer bytes where it ends."""
        memory = bytearray()
        while len(memory) < size_bytes:
            size = min(CHUNK_BYTES, size_bytes - len(memory))
            answer = self.ask(f"m{address + len(memory):x},{size:x}")
            if answer.startswith("E") or not answer:
                break
            memory += bytes.fromhex(answer)
        return bytes(memory)

    def write(self, address: int, data: bytes) -> None:
        """Write memory."""
        for start in range(0, len(data), CHUNK_BYTES):
            part = data[start : start + CHUNK_BYTES]
            self.ask(f"M{address + start:x},{len(part):x}:{part.hex()}")

    def _taken(self) -> str | None:
        """Take a whole packet out of what has come, and acknowledge it."""
        start = self._buffer.find(b"$")
        end = self._buffer.find(b"#", start)
        if start < 0 or end < 0 or len(self._buffer) < end + 3:
            return None
        packet = bytes(self._buffer[start + 1 : end])
        del self._buffer[: end + 3]
        with suppress(OSError):  # the last packet of a process that has ended
            self._connection.sendall(b"+")
        return packet.decode("latin-1")
