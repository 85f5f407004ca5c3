"""Bias and scale records: ten bytes per output channel.

A record holds the bias (signed), the multiplier (unsigned), and the shift in one byte (6 bit).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail

RECORD_BYTES = 10


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """Bytes of the bias and of the multiplier; the shift follows, and then zeros."""

    machine: str
    bias_bytes: int
    multiplier_bytes: int


RECORD_U55 = RecordFormat("Ethos-U55/U65", 5, 4)
RECORDS_U85 = {32: RecordFormat("Ethos-U85", 4, 4), 48: RecordFormat("Ethos-U85", 6, 2)}
"""By the bits of an accumulator."""


@dataclass(frozen=True, slots=True)
class ChannelScales:
    """Per output channel: bias, multiplier and shift, each int64 `[channels]`."""

    bias: npt.NDArray[np.int64]
    multiplier: npt.NDArray[np.int64]
    shift: npt.NDArray[np.int64]


def decode(
    stream: npt.NDArray[np.uint8], channels: int, format: RecordFormat = RECORD_U55
) -> ChannelScales:
    """Read `channels` records from `stream`; E623 if it is too short or a record is not one."""
    rule = f"bias and scale records, {format.machine}"
    if len(stream) < channels * RECORD_BYTES:
        raise fail(
            "E623",
            f"a scale stream for {channels} channels must have {channels * RECORD_BYTES} bytes, "
            f"not {len(stream)}",
            rule=rule,
        )
    records = stream[: channels * RECORD_BYTES].reshape(channels, RECORD_BYTES).astype(np.int64)
    end = format.bias_bytes + format.multiplier_bytes
    bias = _number(records[:, : format.bias_bytes])
    bits = 8 * format.bias_bytes
    shift = records[:, end]
    if (shift > 63).any():
        raise fail(
            "E623",
            f"the shift of a scale record must be in 0..63, not {int(shift.max())}",
            rule=rule,
        )
    return ChannelScales(
        bias - ((bias >> (bits - 1)) << bits), _number(records[:, format.bias_bytes : end]), shift
    )


def _number(columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Join bytes, the lowest first."""
    places = np.array([1 << 8 * index for index in range(columns.shape[1])], np.int64)
    return columns @ places


def interleave(cores: list[ChannelScales], channels: int) -> ChannelScales:
    """Join the records of several cores: core k computes channels k, k + cores, ..."""
    joined = [np.zeros(channels, np.int64) for _ in range(3)]
    for core, scales in enumerate(cores):
        for whole, part in zip(joined, (scales.bias, scales.multiplier, scales.shift), strict=True):
            whole[core :: len(cores)] = part
    return ChannelScales(*joined)
