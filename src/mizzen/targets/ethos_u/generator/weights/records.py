"""Scale records: ten bytes for each output channel."""

from __future__ import annotations

import numpy as np

from mizzen.diagnostics import Origin, fail
from mizzen.targets.ethos_u.generator.operations import ChannelScales

ALIGNMENT_BYTES = 16
"""Of each part of a blob: addresses and lengths in registers are multiples of this."""
RECORD_BYTES = 10
BIAS_BYTES, MULTIPLIER_BYTES = 5, 4
"""Of a record, the lowest byte first; the shift follows in one byte."""
SHIFT_BITS = 6


def encode_scales(scales: ChannelScales, origin: Origin | None = None) -> bytes:
    """Return the records of some channels, padded with zeros to 16 bytes.

    Raises E281 for a bias of more than 40 bits, a multiplier of more than 32, a shift of more than
    6: a record cannot hold it.
    """
    for name, values, low, high in (
        ("bias", scales.biases, -(1 << 39), (1 << 39) - 1),
        ("multiplier", scales.multipliers, 0, (1 << 32) - 1),
        ("shift", scales.shifts, 0, (1 << SHIFT_BITS) - 1),
    ):
        outside = (values < low) | (values > high)
        if outside.any():
            raise fail(
                "E281",
                f"the {name} of a channel must be in {low}..{high}, not {values[outside][0]}",
                origin=origin,
                rule="bias and scale records, Ethos-U55/U65",
            )
    records = np.zeros((len(scales.biases), RECORD_BYTES), np.uint8)
    records[:, :BIAS_BYTES] = _bytes(scales.biases, BIAS_BYTES)
    records[:, BIAS_BYTES:-1] = _bytes(scales.multipliers, MULTIPLIER_BYTES)
    records[:, -1] = scales.shifts
    data = records.tobytes()
    return data + bytes(-len(data) % ALIGNMENT_BYTES)


def _bytes(values: np.ndarray, count: int) -> np.ndarray:
    """Return the lowest bytes of 64-bit numbers, two's complement: uint8 [n, count]."""
    return np.ascontiguousarray(values, "<i8").view(np.uint8).reshape(-1, 8)[:, :count]
