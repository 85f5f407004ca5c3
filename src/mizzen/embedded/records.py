"""Images of firmware that say where their bytes go: Intel HEX, Motorola S-records, UF2.

A file becomes the runs of bytes that it puts at addresses without a gap, in the addresses' order.
It takes memory in proportion to the file.

Ref: Intel, Hexadecimal Object File Format Specification, Revision A; Motorola, M68000 Family
Programmer's Reference Manual, Appendix C; Microsoft, USB Flashing Format (UF2).
"""

from __future__ import annotations

import binascii
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mizzen.diagnostics import MizzenError, fail

ENDINGS = (".hex", ".ihex", ".ihx", ".srec", ".s19", ".s28", ".s37", ".mot", ".uf2")

_BLOCK = struct.Struct("<8I476sI")
"""Two magic words, flags, address, size, number, count, family, contents, a magic word."""
_UF2_STARTS, _UF2_ENDS = (0x0A324655, 0x9E5D5157), 0x0AB16F30
_NOT_FLASHED = 1
"""Flag of a block that is not for the main memory."""

_SHIFTS = {2: 4, 4: 16}
"""Types of Intel HEX records with the upper part of addresses: how far left it belongs."""
_ADDRESS_BYTES = {b"1": 2, b"2": 3, b"3": 4}
"""Types of S-records with contents."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes from an address on."""

    address: int
    data: bytes


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of files: its name, how it begins, and how it is read."""

    name: str
    begins: re.Pattern[bytes]
    read: Callable[[bytes, str], Iterator[Segment]]


def segments(data: bytes, name: str) -> tuple[Segment, ...] | None:
    """Return the runs of bytes of a file; None for one of no such form.

    `name` is what diagnostics call the file. E184 for a record that is cut or damaged.
    """
    form = next((form for form in _FORMS if form.begins.match(data)), None)
    return None if form is None else tuple(_joined(form.read(data, name)))


def _joined(parts: Iterable[Segment]) -> Iterator[Segment]:
    """Join what follows one another; where bytes are given twice, those of the higher run count."""
    runs: list[tuple[int, bytearray]] = []
    for part in sorted(_in_order(parts), key=lambda run: run[0]):
        if runs and part[0] <= runs[-1][0] + len(runs[-1][1]):
            start, held = runs[-1]
            held[part[0] - start : part[0] - start + len(part[1])] = part[1]
        else:
            runs.append(part)
    return (Segment(address, bytes(held)) for address, held in runs)


def _in_order(parts: Iterable[Segment]) -> list[tuple[int, bytearray]]:
    """Join what follows one another in the file too, which is nearly all."""
    runs: list[tuple[int, bytearray]] = []
    for part in parts:
        if runs and part.address == runs[-1][0] + len(runs[-1][1]):
            runs[-1][1].extend(part.data)
        else:
            runs.append((part.address, bytearray(part.data)))
    return runs


def _intel(data: bytes, name: str) -> Iterator[Segment]:
    upper = 0
    for line, text in _lines(data):
        record = _bytes(text[1:]) if text[:1] == b":" else b""
        if len(record) < 5 or len(record) != record[0] + 5 or sum(record) & 0xFF:
            raise _damaged(f"line {line} of {name} must be a whole record of Intel HEX")
        kind, held = record[3], record[4:-1]
        if kind == 0:
            yield Segment(upper + int.from_bytes(record[1:3], "big"), held)
        elif kind in _SHIFTS:
            upper = int.from_bytes(held, "big") << _SHIFTS[kind]
        elif kind == 1:
            return


def _motorola(data: bytes, name: str) -> Iterator[Segment]:
    for line, text in _lines(data):
        record = _bytes(text[2:]) if text[:1] == b"S" else b""
        if not record or len(record) != record[0] + 1 or sum(record) & 0xFF != 0xFF:
            raise _damaged(f"line {line} of {name} must be a whole Motorola S-record")
        size = _ADDRESS_BYTES.get(text[1:2])
        if size is not None:
            yield Segment(int.from_bytes(record[1 : 1 + size], "big"), record[1 + size : -1])


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the lines that are not empty, and their numbers."""
    for line, found in enumerate(re.finditer(rb"([^\n]*)\n|[^\n]+", data), 1):
        text = found[0].strip()
        if text:
            yield line, text


def _bytes(digits: bytes) -> bytes:
    try:
        return binascii.unhexlify(digits)
    except binascii.Error:
        return b""


def _uf2(data: bytes, name: str) -> Iterator[Segment]:
    for at in range(0, len(data), _BLOCK.size):
        block = _BLOCK.unpack(data[at : at + _BLOCK.size].ljust(_BLOCK.size, b"\0"))
        first, second, flags, address, size, *_, held, last = block
        if (first, second) != _UF2_STARTS or last != _UF2_ENDS or size > len(held):
            raise _damaged(f"the block at byte {at} of {name} must be a whole one of UF2")
        if not flags & _NOT_FLASHED:
            yield Segment(address, held[:size])


def _damaged(what: str) -> MizzenError:
    return fail(
        "E184",
        f"{what}, with the length and the checksum that it says",
        help="the file is cut or was changed: copy it again",
    )


_FORMS = (
    _Form("Intel HEX", re.compile(rb":[0-9A-Fa-f]{10,}\s"), _intel),
    _Form("Motorola S-records", re.compile(rb"S[0-9][0-9A-Fa-f]{6,}\s"), _motorola),
    _Form("UF2", re.compile(re.escape(struct.pack("<2I", *_UF2_STARTS))), _uf2),
)
