"""Which symbol of an ELF file has a byte of it.

Only what leads from a byte to a name is read: sections, and objects of the table of symbols. A file
that is damaged has no names: they are for people, and nothing depends on them.

Ref: ELF-32 and ELF-64, ELF Header, Sections, Symbol Table.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"\x7fELF"
MOST_SECTIONS = 4096
MOST_SYMBOLS = 1 << 18
LONGEST_NAME = 512

_SYMTAB, _NOBITS, _OBJECT = 2, 8, 1


@dataclass(frozen=True, slots=True)
class _Class:
    """Where a class of files has what: sections' table in the header, and the rows' forms."""

    table: struct.Struct
    table_at: int
    counts_at: int
    section: struct.Struct
    symbol: struct.Struct
    columns: tuple[int, ...]


_ELF32 = _Class(struct.Struct("<I"), 32, 46, struct.Struct("<10I"), struct.Struct("<IIIBBH"),
                (0, 1, 2, 3, 5))  # fmt: skip
_ELF64 = _Class(struct.Struct("<Q"), 40, 58, struct.Struct("<IIQQQQIIQQ"),
                struct.Struct("<IBBHQQ"), (0, 4, 5, 1, 3))  # fmt: skip
_CLASSES = {b"\x01\x01": _ELF32, b"\x02\x01": _ELF64}


@dataclass(frozen=True, slots=True)
class Symbol:
    """An object of the file: its name, and its bytes."""

    name: str
    start: int
    end: int


def symbols(data: bytes) -> tuple[Symbol, ...]:
    """Return the objects of a file; none of one that is no ELF file, or damaged."""
    form = _CLASSES.get(data[4:6]) if data.startswith(MAGIC) else None
    if form is None:
        return ()
    try:
        return tuple(_symbols(data, form))
    except (struct.error, IndexError):
        return ()


def _symbols(data: bytes, form: _Class) -> Iterator[Symbol]:
    (start,) = form.table.unpack_from(data, form.table_at)
    size, count = struct.unpack_from("<HH", data, form.counts_at)
    if size != form.section.size or count > MOST_SECTIONS:
        return
    sections: list[tuple[int, ...]] = [
        form.section.unpack_from(data, start + index * size) for index in range(count)
    ]
    relocatable = data[16] == 1
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        at, extent, linked = section[4:7]
        names: int = sections[linked][4]
        for index in range(min(extent // form.symbol.size, MOST_SYMBOLS)):
            row: tuple[int, ...] = form.symbol.unpack_from(data, at + index * form.symbol.size)
            name, value, length, info, place = (row[column] for column in form.columns)
            if info & 0xF != _OBJECT or not length or not 0 < place < len(sections):
                continue
            _, kind, _, address, offset, held = sections[place][:6]
            first = offset + value - (0 if relocatable else address)
            if kind != _NOBITS and offset <= first and first + length <= offset + held:
                yield Symbol(_text(data, names + name), first, first + length)


def _text(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + LONGEST_NAME)
    return data[at : end if end >= 0 else at].decode("ascii", errors="backslashreplace")
