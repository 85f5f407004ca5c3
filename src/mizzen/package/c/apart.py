"""A container in two: what firmware is linked with, and a file that lies apart from it.

Such a file starts with a row that says what its contents are for and has their checksum; the
runtime looks at both before it uses any of them.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from mizzen.package.c.layout import FILE, FILE_MAGIC
from mizzen.package.c.reader import Container, decode


@dataclass(frozen=True, slots=True)
class InTwo:
    """What is linked, and the file; `of` is what the file's contents are for."""

    linked: bytes
    file: bytes
    of: int


def constants_apart(container: bytes) -> InTwo:
    """Return a container whose weights and constants are a file of their own."""
    header = decode(container).header
    start = header["constants_at"]
    return InTwo(container[:start], _file(container[start:], header["program"]), header["program"])


def model_apart(container: bytes) -> InTwo:
    """Return a container that is a file as a whole; it is for whoever has its interface."""
    of = interface_of(decode(container))
    return InTwo(b"", _file(container, of), of)


def interface_of(container: Container) -> int:
    """Return what tells inputs and outputs apart: CRC-32 of their types and extents."""
    words: list[int] = []
    for word in ("input", "output"):
        count = container.header[f"{word}_count"]
        start = container.header[f"{word}s"]
        words.append(count)
        for index in container.pool[start : start + count]:
            tensor = container.tables["tensors"][index]
            extents = container.pool[tensor["extents"] : tensor["extents"] + tensor["rank"]]
            words += [tensor["type"], tensor["rank"], *extents]
    return zlib.crc32(np.array(words, "<u4").tobytes())


def _file(contents: bytes, of: int) -> bytes:
    head = {"magic": FILE_MAGIC, "bytes": FILE.size_bytes + len(contents), "of": of, "crc": 0}
    covered = FILE.pack(head)[:-4] + contents
    return FILE.pack({**head, "crc": zlib.crc32(covered)}) + contents
