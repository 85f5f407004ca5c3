"""Activation functions of the U55 and U65: lookup tables, tanh and sigmoid.

Tables live at the end of the shared buffer. TANH and SIGMOID interpolate the table of TFLite's
int16 LOGISTIC: sigmoid(i / 24) in Q0.16 for i in 0..255.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.sim.sigmoid_table import SIGMOID

Array = npt.NDArray[Any]
Lookup = Callable[[Array], Array]

SLOT_BYTES = 256
TABLE_AREA_BYTES = 2048
"""Eight slots at the very end of one core's shared buffer."""

TABLE_BYTES = {1: 256, 2: 2048, 4: 1024}
"""Size of a table by the bytes of an output element."""


def table_offset(shram_bytes: int, index: int) -> int:
    """Byte address of table `index` in the shared buffer of one core."""
    return shram_bytes - TABLE_AREA_BYTES + SLOT_BYTES * index


def lookup(table: npt.NDArray[np.uint8], ofm: np.dtype[Any], ranged: np.dtype[Any]) -> Lookup:
    """Make the function that `table` stands for.

    It maps clipped integers of type `ranged` to elements of `ofm`. Entries are bytes for 8-bit
    outputs, words for 32-bit ones; for 16-bit ones base and slope of 512 segments.
    """
    if ofm.itemsize == 2:
        return _segments(table)
    entries = table.view(ofm)
    low = int(np.iinfo(ranged).min)
    # Index by the value's byte: no subtraction at run time.
    by_byte = np.roll(entries, low)

    def look_up(values: Array) -> Array:
        return by_byte[values.astype(np.uint8)]

    return look_up


def _segments(table: npt.NDArray[np.uint8]) -> Lookup:
    words = table.view(np.int16).reshape(-1, 2).astype(np.int32)
    base, slope = words[:, 0].copy(), words[:, 1].copy()

    def interpolate(values: Array) -> Array:
        v = values.astype(np.int32)
        segment = (v + 32768) >> 7
        return base[segment] + ((slope[segment] * (v & 127) + 64) >> 7)

    return interpolate


def sigmoid(values: Array) -> Array:
    """Sigmoid of int64 `values` in units of 1/0x3000; gives Q0.15."""
    magnitude = np.abs(values)
    segment = magnitude >> 9
    result = _interpolate(segment, magnitude & 511, 9, 0x7FFF << 10)
    return np.where(values >= 0, result + 512, (1 << 25) - result + 511) >> 10


def tanh(values: Array) -> Array:
    """Hyperbolic tangent of int64 `values` in units of 1/0x3000; gives Q0.15."""
    magnitude = np.abs(values)
    segment = magnitude >> 8
    result = _interpolate(segment, magnitude & 255, 8, 0xFFFF << 8)
    half = 1 << 23
    return np.where(values >= 0, result - half + 128, -result + half + 127) >> 8


def _interpolate(segment: Array, fraction: Array, bits: int, saturated: int) -> Array:
    last = len(SIGMOID) - 1
    inside = np.minimum(segment, last - 1)
    low = SIGMOID[inside]
    result = (low << bits) + fraction * (SIGMOID[inside + 1] - low)
    return np.where(segment >= last, saturated, result)
