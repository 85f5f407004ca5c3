"""Tell an ONNX file from others: by its name, or by its first fields, as it has no magic number."""

from __future__ import annotations

ENDINGS = (".onnx",)

_LOOKED_AT = 64
"""Bytes of a file that are looked at: a version, and who made it, stand first."""
_NEWEST_IR = 64


def is_onnx(data: bytes, name: str) -> bool:
    """Whether a file is ONNX: named so, or begun as its writers begin it.

    A message of protobuf names no format. Nearly every writer begins with the version of the
    format, a small number, and goes on with the producer or the graph.
    """
    if name.lower().endswith(ENDINGS):
        return True
    start = data[:_LOOKED_AT]
    return (
        len(start) > 4
        and start[0] == 0x08
        and 1 <= start[1] < _NEWEST_IR
        and start[2] in (0x12, 0x1A, 0x22, 0x2A, 0x32, 0x3A, 0x42)
        and (start[2] != 0x12 or _is_text(start))
    )


def _is_text(start: bytes) -> bool:
    """Whether a producer's name follows, which is readable."""
    size = start[3]
    name = start[4 : 4 + size]
    return size < 128 and all(32 <= byte < 127 for byte in name)
