"""Scale records: ten bytes for each output channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import Origin, fail
from mizzen.targets.ethos_u.generator.operations import ChannelScales
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.commands_values import AccFormat

ALIGNMENT_BYTES = 16
"""Of each part of a blob: addresses and lengths in registers are multiples of this."""
RECORD_BYTES = 10
SHIFT_BITS = 6
LEAST_RECORDS = 16
"""Of U85, which reads whole microblocks of records."""


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """What a record holds: bias and multiplier, the lowest byte first, then the shift in a byte.

    multiplier_bits  that are looked at; a multiplier is not negative
    """

    machine: str
    bias_bytes: int
    multiplier_bytes: int
    multiplier_bits: int


_SHARED = RecordFormat("Ethos-U55/U65", 5, 4, 32)
_NARROW = RecordFormat("Ethos-U85, 32-bit accumulators", 4, 4, 31)
_WIDE = RecordFormat("Ethos-U85, 48-bit accumulators", 6, 2, 15)


def record_format(arch: Arch, accumulators: AccFormat) -> RecordFormat:
    """Return what the records of an operation hold."""
    if arch is not Arch.U85:
        return _SHARED
    return _WIDE if accumulators is AccFormat.I40 else _NARROW


def encode_scales(
    scales: ChannelScales, format_: RecordFormat, granule: int, origin: Origin | None = None
) -> bytes:
    """Return the records of some channels, a multiple of `granule`, padded with zeros to 16 bytes.

    Raises E281 for a bias, multiplier or shift of more bits than the record has for it.
    """
    for name, values, low, high in (
        ("bias", scales.biases, *_signed(8 * format_.bias_bytes)),
        ("multiplier", scales.multipliers, 0, (1 << format_.multiplier_bits) - 1),
        ("shift", scales.shifts, 0, (1 << SHIFT_BITS) - 1),
    ):
        outside = (values < low) | (values > high)
        if outside.any():
            raise fail(
                "E281",
                f"the {name} of a channel must be in {low}..{high}, not {values[outside][0]}",
                origin=origin,
                rule=f"bias and scale records, {format_.machine}",
            )
    count, bias_bytes = len(scales.biases), format_.bias_bytes
    end = bias_bytes + format_.multiplier_bytes
    records = np.zeros((count + -count % granule, RECORD_BYTES), np.uint8)
    records[:count, :bias_bytes] = _bytes(scales.biases, bias_bytes)
    records[:count, bias_bytes:end] = _bytes(scales.multipliers, format_.multiplier_bytes)
    records[:count, end] = scales.shifts
    data = records.tobytes()
    return data + bytes(-len(data) % ALIGNMENT_BYTES)


def _signed(bits: int) -> tuple[int, int]:
    return -(1 << bits - 1), (1 << bits - 1) - 1


def _bytes(values: np.ndarray, count: int) -> np.ndarray:
    """Return the lowest bytes of 64-bit numbers, two's complement: uint8 [n, count]."""
    return np.ascontiguousarray(values, "<i8").view(np.uint8).reshape(-1, 8)[:, :count]
