"""Arrays of bytes in C sources: numbers between braces, with the name before them.

It is no compiler: what is computed, included or a macro is passed over. Numbers of 16, 32 or 64
bits are little-endian words, where the array says so. Comments may stand anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ENDINGS = (".h", ".hh", ".hpp", ".c", ".cc", ".cpp", ".cxx", ".inc")

LEAST_BYTES = 64
"""Of an array that can have a network."""

_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(rb"-?(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})[uUlL]{0,3}")
_NAME = re.compile(rb"([A-Za-z_]\w{0,200})\s*(?:\[[^\]]{0,80}\]\s*){0,3}")
_BEFORE = 400
"""Bytes before a brace in which the array's name is looked for."""

_WIDE = re.compile(rb"\bu?int(16|32|64)_t\b|\bunsigned\s+(?:int|long)\b")
_WORD_BITS = 32
"""Of Arm's `unsigned int` and `unsigned long`."""


@dataclass(frozen=True, slots=True)
class ByteArray:
    """An array: its name, the line that it starts on, its bytes."""

    name: str
    line: int
    data: bytes


def is_source(name: str) -> bool:
    """Whether a file is a C source by its name."""
    return name.lower().endswith(ENDINGS)


def byte_arrays(source: bytes) -> Iterator[ByteArray]:
    """Return the arrays of a source, in their order."""
    text = _COMMENT.sub(b" ", source)
    at = text.find(b"{")
    line, counted = 1, 0
    while at >= 0:
        end, inner = text.find(b"}", at), text.find(b"{", at + 1)
        if end < 0:
            return
        if not at < inner < end:
            declared = _declared(text[max(0, at - _BEFORE) : at])
            data = _bytes(text[at + 1 : end], declared) if end - at > LEAST_BYTES else None
            if data is not None and len(data) >= LEAST_BYTES:
                line += text.count(b"\n", counted, at)
                counted = at
                yield ByteArray(_name(declared), line, data)
        at = inner


def _declared(before: bytes) -> bytes:
    """Return what stands before a brace and its ``=``, from the end of what was before it on."""
    return (before.rpartition(b"=")[0] or before).rpartition(b";")[2]


def _bytes(body: bytes, declared: bytes) -> bytes | None:
    """Return the numbers between braces as bytes; None where something else is there."""
    words = [word for word in (part.strip() for part in body.split(b",")) if word]
    values: list[int] = []
    for word in words:
        number = _NUMBER.fullmatch(word)
        if number is None:
            return None
        value = int(number[1], 16 if number[1][:2].lower() == b"0x" else 10)
        values.append(-value if word.startswith(b"-") else value)
    bits = 8 if all(-128 <= value < 256 for value in values) else _bits(declared)
    if bits is None or not all(-1 << bits - 1 <= value < 1 << bits for value in values):
        return None
    mask = (1 << bits) - 1
    return b"".join((value & mask).to_bytes(bits // 8, "little") for value in values)


def _bits(declared: bytes) -> int | None:
    """Return the width of an array's numbers that are no bytes; None where it does not say."""
    found = _WIDE.search(declared)
    return None if found is None else int(found[1] or _WORD_BITS)


def _name(declared: bytes) -> str:
    """Return the last name with brackets or not before ``=``; a number sign if there is none."""
    names = [found[1].decode() for found in _NAME.finditer(declared)]
    attributes = ("__attribute__", "aligned", "section", "alignas", "const", "static", "unsigned")
    plain = [name for name in names if name not in attributes]
    return plain[-1] if plain else "array"
