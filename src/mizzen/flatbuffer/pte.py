"""The schema of ExecuTorch programs, the numbers of their types, and the segments after them.

A file is a FlatBuffer and, after it, segments: constants, payloads of delegates, initial states. A
header of 32 bytes after the file identifier says where they start.

Ref: ExecuTorch 1.5, schema/program.fbs, schema/scalar_type.fbs, schema/extended_header.h.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.flatbuffer.pte_fields import FIELDS
from mizzen.flatbuffer.pte_tables import TABLES, UNIONS
from mizzen.flatbuffer.reader import Record, extent, read
from mizzen.flatbuffer.schema import Schema
from mizzen.flatbuffer.writer import write

SCHEMA = Schema("ExecuTorch", "Program", b"ET12", TABLES, UNIONS, FIELDS)

ENDING = ".pte"

SEGMENT_ALIGNMENT_BYTES = 128
"""Of the segments in a file. Constants in one, and payloads of delegates, need 16."""

_HEAD_BYTES = 8
"""Offset of the root table, and the file identifier, before the header."""

_HEADER = struct.Struct("<4sIQQQ")
_HEADER_MAGIC = b"eh00"
_HEADER_LEAST_BYTES = 24
"""Without the last field, which says how many bytes the segments are."""


class ScalarType(IntEnum):
    """Type of a tensor's elements, and the value of an argument that is a type."""

    UINT8 = 0
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    FLOAT16 = 5
    FLOAT32 = 6
    FLOAT64 = 7
    BOOL = 11
    BFLOAT16 = 15
    UINT16 = 27
    UINT32 = 28
    UINT64 = 29


DTYPES: dict[ScalarType, np.dtype[Any]] = {
    kind: np.dtype(kind.name.lower()) for kind in ScalarType if kind is not ScalarType.BFLOAT16
}
"""Types whose elements NumPy has."""


class Shape(IntEnum):
    """Whether a tensor's shape may change from one inference to the next (TensorShapeDynamism)."""

    STATIC = 0
    DYNAMIC_BOUND = 1
    DYNAMIC_UNBOUND = 2


class Location(IntEnum):
    """Where the payload of a delegate is (DataLocation)."""

    INLINE = 0
    SEGMENT = 1


@dataclass(frozen=True, slots=True, eq=False)
class PteFile:
    """A file taken apart: the root table, and the segments that it refers to by their place."""

    program: Record
    segments: tuple[bytes, ...]


def is_pte(data: bytes, name: str) -> bool:
    """Whether a file is, or says by its name that it is, an ExecuTorch program."""
    return data[4:8] == SCHEMA.identifier or name.endswith(ENDING)


def size_of(data: bytes, file: str) -> int:
    """Return how many bytes a program has at whose start `data` begins. Raises as `split`."""
    start, program_bytes = _segments_start(data, file)
    if program_bytes == len(data):
        return extent(data, SCHEMA, file)
    program = read(data[:program_bytes], SCHEMA, file)
    records: list[Record] = program["segments"] or []
    ends = [start + record["offset"] + record["size"] for record in records if record["size"]]
    end = max([program_bytes, *ends])
    if end > len(data):
        raise _damaged(file, f"its segments end at byte {end} of {len(data)}")
    return end


def split(data: bytes, file: str) -> PteFile:
    """Take a file apart; `file` names it in diagnostics.

    E101 for a file of another format, E102 for a damaged program, E173 for segments that the file
    cannot have.
    """
    start, program_bytes = _segments_start(data, file)
    program = read(data[:program_bytes], SCHEMA, file)
    records: list[Record] = program["segments"] or []
    return PteFile(program, tuple(_segment(data, start, record, file) for record in records))


def _segments_start(data: bytes, file: str) -> tuple[int, int]:
    """Return where segments start, and how many bytes are before them; 0 for no segments."""
    if data[_HEAD_BYTES : _HEAD_BYTES + len(_HEADER_MAGIC)] != _HEADER_MAGIC:
        return 0, len(data)
    if len(data) < _HEAD_BYTES + _HEADER.size:
        raise _damaged(file, f"its header must have {_HEADER.size} bytes, and the file ends")
    _, length, program_bytes, start, _ = _HEADER.unpack_from(data, _HEAD_BYTES)
    if length < _HEADER_LEAST_BYTES:
        raise _damaged(file, f"its header must have {_HEADER_LEAST_BYTES} bytes, not {length}")
    if not _HEAD_BYTES + length <= program_bytes <= len(data):
        raise _damaged(file, f"its program cannot have {program_bytes} of {len(data)} bytes")
    if start and not program_bytes <= start <= len(data):
        raise _damaged(file, f"its segments cannot start at byte {start} of {len(data)}")
    return start, program_bytes


def _segment(data: bytes, start: int, record: Record, file: str) -> bytes:
    if not record["size"]:  # one without constants may have no header either
        return b""
    at, end = start + record["offset"], start + record["offset"] + record["size"]
    if not start or end > len(data):
        where = f"at byte {at} of {len(data)}" if start else "in a file without segments"
        raise _damaged(file, f"a segment of {record['size']} bytes cannot be {where}")
    return data[at:end]


def join(file: PteFile) -> bytes:
    """Return the bytes of a file; with nothing in its segments it has no header."""
    records: list[Record] = []
    body = bytearray()
    for segment in file.segments:
        body += bytes(-len(body) % SEGMENT_ALIGNMENT_BYTES if segment else 0)
        records.append({"offset": len(body) if segment else 0, "size": len(segment)})
        body += segment
    program = write({**file.program, "segments": records}, SCHEMA)
    if not body:
        return program
    program_bytes = len(program) + _HEADER.size
    start = program_bytes + -program_bytes % SEGMENT_ALIGNMENT_BYTES
    (root,) = struct.unpack_from("<I", program)
    header = _HEADER.pack(_HEADER_MAGIC, _HEADER.size, program_bytes, start, len(body))
    head = struct.pack("<I", root + _HEADER.size) + program[4:_HEAD_BYTES]
    padding = bytes(start - program_bytes)
    return head + header + program[_HEAD_BYTES:] + padding + bytes(body)


def subsegments(file: PteFile, offsets: Record, name: str) -> Sequence[bytes]:
    """Return the parts of a segment, as its offsets divide it; the last goes on to the end.

    E173 for offsets that do not.
    """
    place: int = offsets["segment_index"]
    starts: list[int] = [] if offsets["offsets"] is None else offsets["offsets"].tolist()
    if not starts:
        return ()
    if place >= len(file.segments):
        raise _damaged(name, f"it has no segment {place}, but {len(file.segments)}")
    segment = file.segments[place]
    ends = [*starts[1:], len(segment)]
    if any(start > end for start, end in zip(starts, ends, strict=True)):
        raise _damaged(name, f"the offsets in segment {place} must ascend to {len(segment)}")
    return [segment[start:end] for start, end in zip(starts, ends, strict=True)]


def _damaged(file: str, reason: str) -> MizzenError:
    return fail(
        "E173",
        f"{file} must be a whole ExecuTorch program: {reason}",
        rule="ExecuTorch 1.5, schema/extended_header.h and program.fbs",
        help="get the file again; it is truncated or its bytes have changed",
    )
