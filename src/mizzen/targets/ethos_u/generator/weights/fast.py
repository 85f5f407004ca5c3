"""Fast streams of U85: weights of one, a half or a quarter of a byte each, after a header.

Whole bytes are weights, moved by what brings them all into a byte with a sign. Shorter entries are
places in a table of at most 16 or 4 weights, which the header has. Zero is always one of them:
streams are padded with it.

Ref: Vela 5.2.0, whose streams have this form.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.int16]

HEADER_BYTES = 32
ALIGNMENT_BYTES = 16
RAW, PAIRS_BIT = 1, 1
"""The first byte where entries are weights; the bit that is set where entries have 2."""
MOVED_BYTE = 13
"""Where it is how far whole bytes are moved."""
TABLE_BIT, ENTRIES, ENTRY_BITS = 112, 16, 9
"""Where the table begins; an entry has its sign in the lowest bit."""
LEAST_BYTE, MOST_BYTE = -128, 127
_SHIFT = 256
"""More than the magnitude of any weight."""


def entry_bits(weights: Weights) -> int | None:
    """Return the bits of an entry for weights (-255 .. 255); None if they fit no stream.

    Of more than 16 different weights, zero with them, the largest and the smallest may be at most
    255 apart.
    """
    return _bits(_present(weights))


def write_fast(values: Weights) -> bytes:
    """Return the stream of weights that fit one, padded with zeros to 16 bytes."""
    present = _present(values)
    bits = _bits(present)
    assert bits is not None
    per_byte = 8 // bits
    padded = np.append(values, np.zeros(-len(values) % (ALIGNMENT_BYTES * per_byte), np.int16))
    if bits == 8:
        moved = _moved(present)
        header = np.zeros(HEADER_BYTES, np.uint8)
        header[0] = RAW
        header[MOVED_BYTE] = moved & 0xFF
        return header.tobytes() + (padded + moved).astype(np.int8).tobytes()
    places = np.zeros(2 * _SHIFT, np.uint8)
    places[present + _SHIFT] = np.arange(len(present))
    entries = places[padded.astype(np.int64) + _SHIFT].reshape(-1, per_byte)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return _header(present, bits) + np.bitwise_or.reduce(entries << shifts, axis=1).tobytes()


def _present(weights: Weights) -> npt.NDArray[np.int64]:
    """Return the weights there are, and zero, ascending."""
    counts = np.bincount(weights.ravel().astype(np.int64) + _SHIFT, minlength=2 * _SHIFT)
    counts[_SHIFT] += 1
    return np.flatnonzero(counts) - _SHIFT


def _bits(present: npt.NDArray[np.int64]) -> int | None:
    if len(present) <= ENTRIES:
        return 2 if len(present) <= ENTRIES // 4 else 4
    return 8 if present[-1] - present[0] <= MOST_BYTE - LEAST_BYTE else None


def _moved(present: npt.NDArray[np.int64]) -> int:
    least, most = LEAST_BYTE - int(present[0]), MOST_BYTE - int(present[-1])
    return max(least, min(0, most))


def _header(table: npt.NDArray[np.int64], bits: int) -> bytes:
    flat = np.zeros(8 * HEADER_BYTES, np.uint8)
    flat[PAIRS_BIT] = bits == 2
    codes = 2 * np.abs(table) + (table < 0)
    each = codes[:, None] >> np.arange(ENTRY_BITS) & 1
    flat[TABLE_BIT : TABLE_BIT + each.size] = each.ravel()
    return np.packbits(flat, bitorder="little").tobytes()
