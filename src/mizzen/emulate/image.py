"""Firmware as an ELF file: what is loaded where, and what its symbols are called."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.emulate.guest import GuestMemory

LARGEST_FILE_BYTES = 1 << 28
MOST_SEGMENTS = 256
MOST_SYMBOLS = 1 << 16
LONGEST_NAME = 1024

_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
"""Identity, type, machine, version, entry, where program headers and sections are, flags, bytes of
this, bytes and number of program headers, of sections, names of sections. Ref: ELF-32, ELF Header.
"""
_SEGMENT = struct.Struct("<8I")
"""Type, offset, virtual and physical address, bytes in the file and in memory, flags, alignment."""
_SECTION = struct.Struct("<10I")
"""Name, type, flags, address, offset, bytes, linked section, information, alignment, bytes of a
row."""
_SYMBOL = struct.Struct("<IIIBBH")
"""Name, address, bytes, type, visibility, section."""

_32_BITS_LITTLE_ENDIAN = b"\x01\x01"
_ARM = 40
_LOADED, _SYMBOLS, _FUNCTION = 1, 2, 2
"""PT_LOAD, SHT_SYMTAB, STT_FUNC."""
_READABLE = 4
"""PF_R."""
ALIGNMENT_BYTES = 16
"""Of what is added to a file."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes of the file that are loaded at a physical address."""

    address: int
    data: bytes

    def __contains__(self, address: int) -> bool:
        return self.address <= address < self.address + len(self.data)


@dataclass(frozen=True)
class Image:
    """A firmware.

    entry    address of the first instruction, with bit 0 for Thumb
    symbols  addresses of functions, their ends and names, ascending
    """

    entry: int
    segments: tuple[Segment, ...]
    symbols: tuple[tuple[int, int, str], ...]

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _, _ in self.symbols]

    def place(self, address: int) -> str:
        """Return an address for people, with the function that it is in: ``0x10000212 (main)``."""
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address >= self.symbols[index][1]:
            return f"{address:#010x}"
        return f"{address:#010x} ({self.symbols[index][2]})"

    def load(self, memory: GuestMemory) -> None:
        """Put the segments into a board's memories. E421 for one that lies in none."""
        for segment in self.segments:
            located = memory.bank(segment.address)
            size = len(segment.data)
            if located is None or located[1] + size > located[0].memory.size_bytes:
                raise fail(
                    "E421",
                    f"the firmware's segment at {segment.address:#010x} must lie in a memory of "
                    f"the board, and its {size} bytes do not",
                    help="link it with the board's own linker script, or choose another --board",
                )
            bank, offset = located
            bank.data[offset : offset + size] = np.frombuffer(segment.data, np.uint8)


def read_image(data: bytes) -> Image:
    """Read a 32-bit Arm executable. E420 if it is none, or damaged."""
    if len(data) > LARGEST_FILE_BYTES:
        raise _no_image(f"a file of at most {LARGEST_FILE_BYTES} bytes, not {len(data)}")
    if len(data) < _HEADER.size or data[:4] != b"\x7fELF":
        raise _no_image("an ELF file")
    identity, _, machine, _, entry, *tables = _HEADER.unpack_from(data)
    if identity[4:6] != _32_BITS_LITTLE_ENDIAN or machine != _ARM:
        raise _no_image("for a 32-bit little-endian Arm processor")
    programs, sections, _, _, program_bytes, programs_count, section_bytes, sections_count, _ = (
        tables
    )
    if programs_count > MOST_SEGMENTS:
        raise _no_image(f"of at most {MOST_SEGMENTS} segments, not {programs_count}")
    segments = _segments(data, _rows(data, _SEGMENT, programs, programs_count, program_bytes))
    if not segments:
        raise _no_image("an executable with something to load")
    headers = _rows(data, _SECTION, sections, sections_count, section_bytes)
    return Image(entry, segments, _symbols(data, headers))


def with_segments(data: bytes, added: Sequence[Segment]) -> bytes:
    """Return an executable that loads more: what lies on a device beside its firmware.

    E420 if it is none. The table of segments goes to the end, where there is room for more.
    """
    read_image(data)
    fields = list(_HEADER.unpack_from(data))
    rows = list(_rows(data, _SEGMENT, fields[5], fields[10], fields[9]))
    held = bytearray(data) + bytes(-len(data) % ALIGNMENT_BYTES)
    for segment in added:
        size = len(segment.data)
        row = (_LOADED, len(held), segment.address, segment.address, size, size, _READABLE, 1)
        rows.append(row)
        held += segment.data + bytes(-size % ALIGNMENT_BYTES)
    fields[5], fields[9], fields[10] = len(held), _SEGMENT.size, len(rows)
    held += b"".join(_SEGMENT.pack(*row) for row in rows)
    held[: _HEADER.size] = _HEADER.pack(*fields)
    return bytes(held)


def _rows(
    data: bytes, form: struct.Struct, start: int, count: int, row_bytes: int
) -> list[tuple[int, ...]]:
    """Return the rows of a table of the file."""
    if count and (row_bytes != form.size or start + count * form.size > len(data)):
        raise _no_image(f"whole, and its table of {count} rows at byte {start} is not")
    return [form.unpack_from(data, start + index * form.size) for index in range(count)]


def _segments(data: bytes, headers: list[tuple[int, ...]]) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    for kind, offset, _, address, size, *_ in headers:
        if kind != _LOADED:
            continue
        if offset + size > len(data):
            raise _no_image(f"whole, and its segment at {address:#010x} is cut off")
        if size:
            segments.append(Segment(address, data[offset : offset + size]))
    return tuple(segments)


def _symbols(data: bytes, sections: list[tuple[int, ...]]) -> tuple[tuple[int, int, str], ...]:
    """Return functions, their ends and names; none of a file without its table of symbols."""
    tables = [section for section in sections if section[1] == _SYMBOLS]
    if not tables:
        return ()
    _, _, _, _, start, size, names, _, _, row_bytes = tables[0]
    count = size // _SYMBOL.size
    if count > MOST_SYMBOLS:
        return ()
    if names >= len(sections):
        raise _no_image(f"whole, and has no section {names} of names")
    texts = sections[names][4:6]
    functions: dict[int, tuple[int, int, str]] = {}
    for name, address, extent, kind, _, _ in _rows(data, _SYMBOL, start, count, row_bytes):
        if kind & 0xF == _FUNCTION:
            place = address & ~1
            functions[place] = place, place + max(extent, 2), _name(data, name, *texts)
    return tuple(sorted(functions.values()))


def _name(data: bytes, at: int, start: int, size: int) -> str:
    """Return a name out of the section of names."""
    begin, end = start + at, min(start + size, len(data))
    text = data[begin : min(end, begin + LONGEST_NAME)]
    return text.partition(b"\0")[0].decode("utf-8", "replace")


def vector_table(image: Image) -> int:
    """Return where the vector table is: its second word is the entry, or else an address of code.

    E423 where no segment begins with one, since hardware would start anywhere.
    """
    starts = {
        segment.address: int.from_bytes(segment.data[4:8], "little")
        for segment in image.segments
        if len(segment.data) >= 8
    }
    for address, reset in starts.items():
        if reset == image.entry | 1:
            return address
    for address, reset in starts.items():
        if reset & 1 and any(reset in segment for segment in image.segments):
            return address
    raise fail(
        "E423",
        "a segment of the firmware must begin with a vector table, whose second word is the "
        f"address of the first instruction plus 1, such as {image.entry | 1:#010x}; none does",
    )


def _no_image(what: str) -> MizzenError:
    return fail("E420", f"the firmware must be {what}", help="give an ELF executable for Cortex-M")
