"""The container: a header in JSON, arrays after it, a checksum at the end."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.documents import Form, Syntax
from mizzen.graph import Array

MAGIC = b"MZNMESH\n"
VERSION = 1
HEAD = struct.Struct("<8sII")
"""Magic, version, bytes of the header."""
DIGEST_BYTES = 32
ALIGNMENT_BYTES = 16
DTYPES = frozenset({"|i1", "|u1", "|b1", "<i4", "<i8", "<f8"})

FORM = Form(
    "a program's file",
    Syntax.JSON,
    "E537",
    "E538",
    help="docs/reference/mesh-program.md has the form of these files",
    wording="{name}, {place}: must {must}",
)


def pack(header: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """Return a file; the header gets the places of the arrays."""
    places: dict[str, dict[str, Any]] = {}
    payload: list[bytes] = []
    offset = 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        data += bytes(-len(data) % ALIGNMENT_BYTES)
        entry = {"type": array.dtype.str, "shape": list(array.shape), "offset": offset}
        places[name] = entry
        payload.append(data)
        offset += len(data)
    text = json.dumps({**header, "arrays": places}, separators=(",", ":")).encode()
    text += b" " * (-(HEAD.size + len(text)) % ALIGNMENT_BYTES)
    content = b"".join((HEAD.pack(MAGIC, VERSION, len(text)), text, *payload))
    return content + hashlib.sha256(content).digest()


def unpack(data: bytes, name: str) -> tuple[bytes, memoryview]:
    """Return the header, which is JSON, and the bytes of the arrays.

    E537 for what is no such file, of another version, or damaged.
    """
    if len(data) < HEAD.size + DIGEST_BYTES or not data.startswith(MAGIC):
        raise damaged(name, f"must begin with {MAGIC!r}, not {data[: len(MAGIC)]!r}")
    _, version, length = HEAD.unpack_from(data)
    if version != VERSION:
        raise damaged(name, f"must be of version {VERSION}, not {version}")
    content = memoryview(data)[:-DIGEST_BYTES]
    if hashlib.sha256(content).digest() != data[-DIGEST_BYTES:]:
        raise damaged(name, "must have the checksum at its end, and has another")
    if HEAD.size + length > len(content):
        raise damaged(name, f"must have a header of {length} bytes, and is shorter")
    end = HEAD.size + length
    return bytes(content[HEAD.size : end]), content[end:]


def damaged(name: str, what: str) -> MizzenError:
    """Make the error for what is no file of a program."""
    return fail("E537", f"{name} {what}", help=FORM.help)


def wrong(name: str, field: str, must: str, came: object) -> MizzenError:
    """Make the error for a field that is not what it must be."""
    return FORM.error(name, field, f"be {must}", came)


class Arrays:
    """The arrays of a file, by name; each is checked when it is taken."""

    def __init__(self, name: str, places: dict[str, tuple[str, tuple[int, ...], int]]) -> None:
        self.name = name
        self.places = places
        self.payload = memoryview(b"")

    def take(self, field: str, dtype: str, columns: int | None = None) -> Array:
        """Return an array of one dimension, or of rows of so many columns. E538."""
        if field not in self.places:
            raise wrong(self.name, f"arrays.{field}", "there", "left out")
        has, shape, offset = self.places[field]
        if has != dtype or has not in DTYPES:
            raise wrong(self.name, f"arrays.{field}.type", dtype, has)
        wanted = 1 if columns is None else 2
        if len(shape) != wanted or (columns is not None and shape[1] != columns):
            form = "[rows]" if columns is None else f"[rows, {columns}]"
            raise wrong(self.name, f"arrays.{field}.shape", form, list(shape))
        count = shape[0] * (1 if columns is None else shape[1])
        if offset + count * np.dtype(dtype).itemsize > len(self.payload):
            must = f"within {len(self.payload)} bytes"
            raise wrong(self.name, f"arrays.{field}.offset", must, offset)
        return np.frombuffer(self.payload, dtype, count, offset).reshape(shape)
