"""Messages over the pipes of a process of our own: Python's objects, each after its length."""

from __future__ import annotations

import pickle
import struct
from typing import IO, Any

LENGTH = struct.Struct("<Q")


def write(stream: IO[bytes], message: object) -> None:
    """Write a message after its length."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    rest = memoryview(LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[stream.write(rest) :]


def read(stream: IO[bytes]) -> Any:
    """Read a message; EOFError if the other side has ended."""
    (length,) = LENGTH.unpack(_exactly(stream, LENGTH.size))
    return pickle.loads(_exactly(stream, length))


def _exactly(stream: IO[bytes], size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        data = stream.read(size)
        if not data:
            raise EOFError
        parts.append(data)
        size -= len(data)
    return b"".join(parts)
