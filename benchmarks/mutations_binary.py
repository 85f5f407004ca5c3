"""Mutate recordings, images without checksums, and firmware, by the fields of their headers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random

from mutations_bytes import Mutate, poke, raw

Spot = tuple[int, str]
"""Where a number is, and its form."""


def with_fields(spots: tuple[Spot, ...]) -> Mutate:
    """Return what changes numbers at fixed places, or anything."""

    def mutate(data: bytes, chance: Random) -> bytes:
        if chance.random() < 0.3:
            return raw(data, chance)
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 3))):
            poke(changed, *chance.choice(spots), chance)
        return bytes(changed)

    return mutate


def _consecutive(start: int, letters: str) -> tuple[Spot, ...]:
    return tuple(
        (start + struct.calcsize("<" + letters[:i]), f"<{form}") for i, form in enumerate(letters)
    )


mutate_wav = with_fields(_consecutive(4, "I") + _consecutive(16, "IHHIIHH") + _consecutive(40, "I"))
"""Sizes of RIFF and its chunks, format, channels, rate, bits. Ref: RIFF WAVE."""
mutate_bmp = with_fields(_consecutive(2, "IHHI") + _consecutive(14, "IiiHHIIiiII"))
"""Ref: BITMAPFILEHEADER, BITMAPINFOHEADER."""

ELF_HEADER, SEGMENT, SECTION, SYMBOL = "HHIIIIIHHHHHH", "IIIIIIII", "IIIIIIIIII", "IIIBBH"


def mutate_elf(data: bytes, chance: Random) -> bytes:
    """Change headers, segments, sections, symbols, or code of firmware. Ref: ELF, 32-bit."""
    if chance.random() < 0.25:
        return raw(data, chance)
    spots = list(_elf_spots(data))
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        poke(changed, *chance.choice(spots), chance)
    return bytes(changed)


def _elf_spots(data: bytes) -> Iterator[Spot]:
    yield from _consecutive(16, ELF_HEADER)
    yield from ((at, "<B") for at in range(16))
    segments, sections = struct.unpack_from("<II", data, 28)
    _, count, _, section_count, _ = struct.unpack_from("<HHHHH", data, 42)
    for index in range(count):
        yield from _consecutive(segments + 32 * index, SEGMENT)
    for index in range(section_count):
        yield from _consecutive(sections + 40 * index, SECTION)
        (kind,) = struct.unpack_from("<I", data, sections + 40 * index + 4)
        start, size = struct.unpack_from("<II", data, sections + 40 * index + 16)
        if kind == 2:  # SHT_SYMTAB
            for symbol in range(min(size // 16, 40)):
                yield from _consecutive(start + 16 * symbol, SYMBOL)


def mutate_pixels(data: bytes, chance: Random) -> bytes:
    """Change the words at the head of a portable pixmap."""
    if chance.random() < 0.3:
        return raw(data, chance)
    head, pixels = data[:15].split(b"\n"), data[15:]
    words = b" ".join(head).split(b" ")
    numbers = (
        b"0",
        b"-1",
        b"99999999",
        b"65536",
        b"x",
        b"",
        b"1" * 50,
        b"4294967296",
        b"1",
        b"P7",
        b"#",
    )
    words[chance.randrange(len(words))] = chance.choice(numbers)
    return b" ".join(words) + chance.choice((b"\n", b"", b" ")) + pixels
