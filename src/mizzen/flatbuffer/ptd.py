"""ExecuTorch's files of data beside a program, `.ptd`: contents by their names.

A file is a FlatBuffer that names segments after it; a header of 40 bytes after the file identifier
says where they start. Programs refer to them by name, for tensors and blocks of delegates.

Ref: ExecuTorch 1.5, extension/flat_tensor/serialize/flat_tensor.fbs and flat_tensor_header.h.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from mizzen.diagnostics import MizzenError, fail
from mizzen.flatbuffer.fields import Fields
from mizzen.flatbuffer.reader import Record, read
from mizzen.flatbuffer.schema import Schema
from mizzen.flatbuffer.writer import write

SCHEMA = Schema(
    "ExecuTorch data",
    "FlatTensor",
    b"FT01",
    {
        "DataSegment": "offset:u64 size:u64",
        "FlatTensor": "version:u32 segments:[DataSegment] named_data:[NamedData]",
        "NamedData": "key:str segment_index:u32 tensor_layout:TensorLayout",
        "TensorLayout": "scalar_type:i8 sizes:[i32] dim_order:[u8]",
    },
    {},
    {
        "DataSegment": Fields(read="offset size"),
        "FlatTensor": Fields(
            read="segments named_data", refused={"version": "it is of another version"}
        ),
        "NamedData": Fields(read="key segment_index", silent="tensor_layout"),
        "TensorLayout": Fields(silent="scalar_type sizes dim_order"),
    },
)
"""Of a tensor the program says type and shape too."""

ENDING = ".ptd"

_HEADER = struct.Struct("<4sIQQQQ")
_HEADER_AT = 8
_HEADER_MAGIC = b"FH01"
_HEAD_BYTES = _HEADER_AT + _HEADER.size

SEGMENT_ALIGNMENT_BYTES = 128
"""Of the segments in a file, as ExecuTorch's own writer has it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The tensor that contents are: densely packed, dimensions in their order.

    scalar_type  a number of `mizzen.flatbuffer.pte.ScalarType`
    """

    scalar_type: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """What has a name: bytes, and the tensor that they are; None of what is no tensor."""

    data: bytes
    layout: Layout | None = None


def data_file(contents: Mapping[str, Content]) -> bytes:
    """Return the bytes of a file with contents by name."""
    segments: list[Record] = []
    body = bytearray()
    for content in contents.values():
        body += bytes(-len(body) % SEGMENT_ALIGNMENT_BYTES)
        segments.append({"offset": len(body), "size": len(content.data)})
        body += content.data
    named = [
        {"key": key, "segment_index": place, "tensor_layout": _layout(content.layout)}
        for place, (key, content) in enumerate(contents.items())
    ]
    table = write({"version": 0, "segments": segments, "named_data": named}, SCHEMA)
    (root,) = struct.unpack_from("<I", table)
    start = _HEADER.size + len(table)
    start += -start % SEGMENT_ALIGNMENT_BYTES
    size = _HEADER.size + len(table) - _HEAD_BYTES
    header = _HEADER.pack(_HEADER_MAGIC, _HEADER.size, _HEAD_BYTES, size, start, len(body))
    head = struct.pack("<I", root + _HEADER.size) + table[4:_HEADER_AT]
    whole = head + header + table[_HEADER_AT:]
    return whole + bytes(start - len(whole)) + bytes(body)


def _layout(layout: Layout | None) -> Record | None:
    if layout is None:
        return None
    return {
        "scalar_type": layout.scalar_type,
        "sizes": list(layout.sizes),
        "dim_order": list(range(len(layout.sizes))),
    }


def named_data(data: bytes, file: str) -> dict[str, bytes]:
    """Return contents by name; `file` names the file in diagnostics.

    E101 for a file of another format, E102 for a damaged table, E173 for segments that the file
    cannot have.
    """
    if data[4:8] != SCHEMA.identifier:
        read(data, SCHEMA, file)
    table, start = _table(data, file)
    root = read(table, SCHEMA, file)
    segments = [_segment(data, start, record, file) for record in root["segments"] or ()]
    contents: dict[str, bytes] = {}
    for entry in root["named_data"] or ():
        place = entry["segment_index"]
        if place >= len(segments):
            raise _damaged(file, f"it has no segment {place}, but {len(segments)}")
        contents[entry["key"] or ""] = segments[place]
    return contents


def _table(data: bytes, file: str) -> tuple[bytes, int]:
    """Return the FlatBuffer, and where segments start."""
    if len(data) < _HEADER_AT + _HEADER.size:
        raise _damaged(file, f"its header must have {_HEADER.size} bytes, and the file ends")
    magic, length, at, size, start, _ = _HEADER.unpack_from(data, _HEADER_AT)
    if magic != _HEADER_MAGIC or length < _HEADER.size:
        raise _damaged(file, f"its header must start with {_HEADER_MAGIC}, not with {magic}")
    if not at + size <= start <= len(data):
        raise _damaged(file, f"its segments cannot start at byte {start} of {len(data)}")
    return data[: at + size], start


def _segment(data: bytes, start: int, record: Record, file: str) -> bytes:
    at = start + record["offset"]
    if at + record["size"] > len(data):
        raise _damaged(
            file, f"a segment of {record['size']} bytes cannot be at byte {at} of {len(data)}"
        )
    return data[at : at + record["size"]]


def _damaged(file: str, reason: str) -> MizzenError:
    return fail(
        "E173",
        f"{file} must be a whole file of ExecuTorch's data: {reason}",
        rule="ExecuTorch 1.5, extension/flat_tensor/serialize/flat_tensor_header.h",
        help="get the file again; it is truncated or its bytes have changed",
    )
