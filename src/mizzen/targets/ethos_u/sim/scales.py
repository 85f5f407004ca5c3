"""Bias and scale records of the U55 and U65: ten bytes per output channel.

Bytes 0-4 hold the bias (signed 40 bit), 5-8 the multiplier (unsigned 32 bit), 9 the shift (6 bit).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail

RECORD_BYTES = 10


@dataclass(frozen=True, slots=True)
class ChannelScales:
    """Per output channel: bias, multiplier and shift, each int64 `[channels]`."""

    bias: npt.NDArray[np.int64]
    multiplier: npt.NDArray[np.int64]
    shift: npt.NDArray[np.int64]


def decode(stream: npt.NDArray[np.uint8], channels: int) -> ChannelScales:
    """Read `channels` records from `stream`; E623 if it is too short or a shift too large."""
    if len(stream) < channels * RECORD_BYTES:
        raise fail(
            "E623",
            f"a scale stream for {channels} channels must have {channels * RECORD_BYTES} bytes, "
            f"not {len(stream)}",
            rule="bias and scale records, Ethos-U55/U65",
        )
    records = stream[: channels * RECORD_BYTES].reshape(channels, RECORD_BYTES).astype(np.int64)
    low = (records[:, :5] << (8 * np.arange(5))).sum(axis=1)
    bias = low - ((low >> 39) << 40)
    multiplier = (records[:, 5:9] << (8 * np.arange(4))).sum(axis=1)
    shift = records[:, 9]
    if (shift > 63).any():
        raise fail(
            "E623",
            f"the shift of a scale record must be in 0..63, not {int(shift.max())}",
            rule="bias and scale records, Ethos-U55/U65",
        )
    return ChannelScales(bias, multiplier, shift)


def interleave(cores: list[ChannelScales], channels: int) -> ChannelScales:
    """Join the records of several cores: core k computes channels k, k + cores, ..."""
    joined = [np.zeros(channels, np.int64) for _ in range(3)]
    for core, scales in enumerate(cores):
        for whole, part in zip(joined, (scales.bias, scales.multiplier, scales.shift), strict=True):
            whole[core :: len(cores)] = part
    return ChannelScales(*joined)
