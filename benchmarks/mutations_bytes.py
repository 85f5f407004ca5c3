"""Mutate bytes that nothing is known about, and numbers at known places."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random

Mutate = Callable[[bytes, Random], bytes]
"""Gives another file, the same one for the same file and state of chance."""

NUMBERS = (
    0, 1, 2, 3, 4, 7, 8, 16, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 1 << 20, 1 << 24,
    (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
)  # fmt: skip
"""Magnitudes that readers have to fear: ends of types, sizes beyond any file."""

REALS = (0.0, -0.0, 1.0, -1.0, 1e-45, 1e-30, 1e30, 3.4e38, 1e308, float("inf"), -float("inf"),
         float("nan"))  # fmt: skip


def number(chance: Random, near: int = 0) -> int:
    """Return an integer of either sign: one to fear, or one near another."""
    match chance.randrange(4):
        case 0:
            return near + chance.choice((-2, -1, 1, 2))
        case 1:
            return -chance.choice(NUMBERS)
        case _:
            return chance.choice(NUMBERS)


def real(chance: Random, near: float = 1.0) -> float:
    """Return a floating-point number: one to fear, or one near another."""
    return (
        near * chance.choice((-1, 0.5, 2, 1e-6, 1e6))
        if chance.random() < 0.4
        else chance.choice(REALS)
    )


def poke(data: bytearray, at: int, form: str, chance: Random) -> None:
    """Write another number of a form of `struct` at a place."""
    size = struct.calcsize(form)
    if at + size > len(data):
        return
    if form[-1] in "efd":
        try:
            value = struct.pack(form, real(chance, struct.unpack_from(form, data, at)[0]))
        except OverflowError:
            value = struct.pack(form, float("inf"))
        data[at : at + size] = value
        return
    near = int.from_bytes(data[at : at + size], "little")
    order = "big" if form[0] == ">" else "little"
    near = int.from_bytes(data[at : at + size], order)
    data[at : at + size] = (number(chance, near) % (1 << 8 * size)).to_bytes(size, order)


def truncated(data: bytes, chance: Random) -> bytes:
    """Return the beginning of a file."""
    return data[: chance.randrange(len(data) + 1)]


def flipped(data: bytes, chance: Random) -> bytes:
    """Flip some bits."""
    changed = bytearray(data or b"\0")
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def overwritten(data: bytes, chance: Random) -> bytes:
    """Overwrite a run of bytes with zeros, ones, random bytes or a number."""
    start, size = chance.randrange(len(data) + 1), chance.choice((1, 2, 4, 8, 32, 300))
    run = chance.choice((bytes(size), b"\xff" * size, chance.randbytes(size)))
    return (data[:start] + run + data[start + size :])[: len(data)]


def moved(data: bytes, chance: Random) -> bytes:
    """Copy a run of bytes to another place."""
    size = chance.choice((4, 16, 64, 512))
    start, target = chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)
    run = data[start : start + size]
    return data[:target] + run + data[target + len(run) :]


def resized(data: bytes, chance: Random) -> bytes:
    """Insert or take away a run of bytes, so that all behind it lies elsewhere."""
    start, size = chance.randrange(len(data) + 1), chance.choice((1, 2, 4, 16, 100))
    if chance.random() < 0.5:
        return data[:start] + data[start + size :]
    return data[:start] + chance.randbytes(size) + data[start:]


RAW: Sequence[Mutate] = (truncated, flipped, flipped, flipped, overwritten, moved, resized)


def raw(data: bytes, chance: Random) -> bytes:
    """Damage a file anyhow."""
    return chance.choice(RAW)(data, chance)


def spliced(data: bytes, other: bytes, chance: Random) -> bytes:
    """Return the beginning of a file, and the end of another."""
    at = chance.randrange(min(len(data), len(other)) + 1)
    return data[:at] + other[at:]
