"""The fast weight format of Ethos-U85: entries of 8, 4 or 2 bits after a header."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail

HEADER_BYTES = 32
ADJUST_BYTE = 13
"""Where the zero adjustment is, after two flags and 102 zeros."""
ENTRIES, ENTRY_BITS = 16, 9


def decode(stream: bytes) -> npt.NDArray[np.int16]:
    """Decode one stream to its weights; E624 for a damaged one.

    Bit 0 of the header says that entries are the weights, with the adjustment taken from them; else
    they are indices of the header's table, of 2 bits if bit 1 is set and of 4 bits otherwise. An
    entry of the table has its sign in bit 0.
    """
    data = np.frombuffer(stream, np.uint8)
    if len(data) < HEADER_BYTES:
        raise fail(
            "E624",
            f"a fast weight stream must have a header of {HEADER_BYTES} bytes, not {len(data)}",
            rule="fast weight format of Ethos-U85",
            help="the artifact is damaged; compile it again",
        )
    header, body = data[:HEADER_BYTES], data[HEADER_BYTES:]
    if header[0] & 1:
        adjust = int(header[ADJUST_BYTE : ADJUST_BYTE + 1].view(np.int8)[0])
        return body.view(np.int8).astype(np.int16) - np.int16(adjust)
    bits = 2 if header[0] & 2 else 4
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return _table(header)[((body[:, None] >> shifts) & ((1 << bits) - 1)).ravel()]


def _table(header: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
    first = 8 * (ADJUST_BYTE + 1)
    flat = np.unpackbits(header, bitorder="little")[first : first + ENTRIES * ENTRY_BITS]
    entries = flat.reshape(ENTRIES, ENTRY_BITS).astype(np.int16)
    magnitude = np.sum(entries[:, 1:] << np.arange(ENTRY_BITS - 1), axis=1, dtype=np.int16)
    return np.where(entries[:, 0] == 1, -magnitude, magnitude).astype(np.int16)
