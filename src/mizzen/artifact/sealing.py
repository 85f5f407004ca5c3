"""Put a manifest into an artifact's file, and take it out again.

Each container keeps it where its runtimes look for nothing: a TFLite file in an entry of its
metadata, an ExecuTorch program in its named data, an archive in its comment. A member of an archive
would have a checksum of its own that the file's digest would have to be known for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from mizzen.artifact.forms import ARCHIVE, TFLITE, own_ending
from mizzen.artifact.parts import Parts, parts_of
from mizzen.flatbuffer import Record, read, write
from mizzen.flatbuffer import pte as executorch
from mizzen.flatbuffer.tflite import SCHEMA
from mizzen.report.manifest import NO_DIGEST, Facts, Manifest, digest_outside, find, has_beginning

NAME = "mizzen_manifest"
"""Of the entry that has the manifest, in a TFLite file and in an ExecuTorch program."""

_END_OF_ARCHIVE = b"PK\5\6"
_COMMENT_LENGTH = struct.Struct("<H")
_END_BYTES = 22
"""Of an archive's last record, whose last two say how long the comment is that follows."""

LONGEST_COMMENT_BYTES = (1 << 16) - 1


def sealed(data: bytes, name: str, facts: Facts) -> bytes:
    """Return an artifact's file with a manifest of these facts, in place of one that it has.

    A file that has no room for one, or letters of one elsewhere, stays without. Raises as the
    readers of its format.
    """
    bare = unsealed(data, name)
    if has_beginning(bare):
        return bare
    ending = own_ending(bare)
    put = _PUTS.get(ending)
    if put is None:
        return bare
    parts = parts_of(bare, name)
    whole, size = bare, -1
    while size != len(whole):  # its own length is in it, of one digit more at times
        size = len(whole)
        manifest = put(bare, name, _manifest(size, NO_DIGEST, parts, facts).framed())
        if manifest is None:
            return bare
        whole = manifest
    return _with_digest(whole, parts, facts)


def _manifest(size: int, digest: str, parts: Parts, facts: Facts) -> Manifest:
    return Manifest(size, digest, parts.tables_sha256, parts.npu, facts)


def _with_digest(whole: bytes, parts: Parts, facts: Facts) -> bytes:
    found = find(whole)
    assert found is not None, "it was put in"
    digest = digest_outside(whole, found)
    manifest = _manifest(len(whole), digest, parts, facts).framed()
    return whole[: found.start] + manifest + whole[found.end :]


def unsealed(data: bytes, name: str) -> bytes:
    """Return an artifact's file without its manifest; the same bytes where it has none."""
    take = _TAKES.get(own_ending(data)) if has_beginning(data) else None
    return data if take is None else take(data, name)


def _into_tflite(data: bytes, name: str, manifest: bytes) -> bytes | None:
    record = read(data, SCHEMA, name)
    buffers: list[Record] = list(record["buffers"] or ())
    if any(buffer["offset"] > 1 for buffer in buffers):
        return None  # contents behind the tables: what is larger than a FlatBuffer can be
    entry = {"name": NAME, "buffer": len(buffers)}
    more: Record = {
        "metadata": [*(record["metadata"] or ()), entry],
        "buffers": [*buffers, {"data": np.frombuffer(manifest, np.uint8)}],
    }
    return write(record | more, SCHEMA)


def _out_of_tflite(data: bytes, name: str) -> bytes:
    record = read(data, SCHEMA, name)
    metadata: list[Record] = list(record["metadata"] or ())
    buffers: list[Record] = list(record["buffers"] or ())
    kept = [entry for entry in metadata if entry["name"] != NAME]
    gone = {int(entry["buffer"]) for entry in metadata if entry["name"] == NAME}
    if gone != {len(buffers) - 1}:
        return data  # not as this module puts it in
    return write(record | {"metadata": kept or None, "buffers": buffers[:-1]}, SCHEMA)


def _into_executorch(data: bytes, name: str, manifest: bytes) -> bytes:
    file = executorch.split(data, name)
    entry = {"key": NAME, "segment_index": len(file.segments)}
    program = {**file.program, "named_data": [*(file.program["named_data"] or ()), entry]}
    return executorch.join(executorch.PteFile(program, (*file.segments, manifest)))


def _out_of_executorch(data: bytes, name: str) -> bytes:
    file = executorch.split(data, name)
    named: list[Record] = list(file.program["named_data"] or ())
    kept = [entry for entry in named if entry["key"] != NAME]
    gone = {int(entry["segment_index"]) for entry in named if entry["key"] == NAME}
    if gone != {len(file.segments) - 1}:
        return data
    program = {**file.program, "named_data": kept}
    return executorch.join(executorch.PteFile(program, file.segments[:-1]))


def _into_archive(data: bytes, name: str, manifest: bytes) -> bytes | None:
    at = data.rfind(_END_OF_ARCHIVE)
    if at != len(data) - _END_BYTES or len(manifest) > LONGEST_COMMENT_BYTES:
        return None
    return data[: -_COMMENT_LENGTH.size] + _COMMENT_LENGTH.pack(len(manifest)) + manifest


def _out_of_archive(data: bytes, name: str) -> bytes:
    at = data.rfind(_END_OF_ARCHIVE)
    end = at + _END_BYTES
    return data if at < 0 else data[: end - _COMMENT_LENGTH.size] + _COMMENT_LENGTH.pack(0)


_PUTS: dict[str, Callable[[bytes, str, bytes], bytes | None]] = {
    TFLITE: _into_tflite,
    executorch.ENDING: _into_executorch,
    ARCHIVE: _into_archive,
}
_TAKES: dict[str, Callable[[bytes, str], bytes]] = {
    TFLITE: _out_of_tflite,
    executorch.ENDING: _out_of_executorch,
    ARCHIVE: _out_of_archive,
}
