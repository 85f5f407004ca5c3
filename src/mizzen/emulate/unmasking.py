"""Instructions that let interrupts in, which no hook of an emulator tells of: found, and done here.

Ref: Arm Armv8-M Architecture Reference Manual (DDI0553), C2.4: encodings of CPS and MSR; C1.3:
conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mizzen.emulate.image import Image

CPSIE = {0xB661: ("FAULTMASK",), 0xB662: ("PRIMASK",), 0xB663: ("PRIMASK", "FAULTMASK")}
"""CPSIE by its word: what becomes zero."""
MSR, MSR_MASK = 0xF380, 0xFFF0
MSR_TARGETS = {0x8810: "PRIMASK", 0x8811: "BASEPRI", 0x8813: "FAULTMASK"}
"""MSR by its second halfword: what is written."""
WIDTHS = {"PRIMASK": 1, "FAULTMASK": 1, "BASEPRI": 0xFF}
MOST_PLACES = 4096
"""A model's bytes may look like these instructions; they are never reached."""


@dataclass(frozen=True, slots=True)
class Unmasking:
    """One instruction: what it writes, from a core register or, where None, with zero."""

    length_bytes: int
    names: tuple[str, ...]
    register: int | None


def unmaskings(image: Image) -> dict[int, Unmasking]:
    """Return the instructions of an image that may let interrupts in, by their addresses."""
    return dict(sorted(_places(image))[:MOST_PLACES])


def _places(image: Image) -> Iterator[tuple[int, Unmasking]]:
    for segment in image.segments:
        even = segment.data[: len(segment.data) & ~1]
        words = np.frombuffer(even, np.dtype("<u2"))
        for at in np.flatnonzero(np.isin(words, [*CPSIE])).tolist():
            names = CPSIE[int(words[at])]
            yield segment.address + 2 * at, Unmasking(2, names, None)
        for at in np.flatnonzero((words[:-1] & MSR_MASK) == MSR).tolist():
            target = MSR_TARGETS.get(int(words[at + 1]))
            if target is not None:
                yield segment.address + 2 * at, Unmasking(4, (target,), int(words[at]) & 15)


def holds(condition: int, status: int) -> bool:
    """Whether a condition of four bits holds for the flags of a status register."""
    negative, zero, carry, overflow = (bool(status >> bit & 1) for bit in (31, 30, 29, 28))
    met = (
        zero,
        carry,
        negative,
        overflow,
        carry and not zero,
        negative == overflow,
        not zero and negative == overflow,
        True,
    )[condition >> 1]
    return met != bool(condition & 1) or condition >> 1 == 7


def it_state(status: int) -> int:
    """Return the IT state: zero outside of an IT block, else its condition in bits 7:4."""
    return (status >> 10 & 0x3F) << 2 | status >> 25 & 3


def behind(status: int) -> int:
    """Return the status register after an instruction that is left out: one on in an IT block."""
    state = it_state(status)
    after = 0 if not state & 7 else state & 0xE0 | state << 1 & 0x1F
    cleared = status & ~(0x3F << 10 | 3 << 25)
    return cleared | after >> 2 << 10 | (after & 3) << 25
