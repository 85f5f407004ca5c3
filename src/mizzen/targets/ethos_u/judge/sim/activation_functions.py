"""Activation functions: lookup tables, tanh and sigmoid.

Tables are bytes of the machine's own memory. TANH and SIGMOID of U55 and U65 interpolate the table
of TFLite's int16 LOGISTIC: sigmoid(i / 24) in Q0.16 for i in 0..255; those of U85 take a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.judge.sim.operations import Function, Output
from mizzen.targets.ethos_u.machine import curves

Array = npt.NDArray[Any]
SIGMOID: Array = np.array(curves.SIGMOID, np.int64)
Bytes = npt.NDArray[np.uint8]
Lookup = Callable[[Array], Array]


def functions(output: Output, table: Bytes | None) -> tuple[Lookup | None, Lookup | None]:
    """Return the functions that are applied before clipping, and after it.

    Curves take int64 in units of 1/0x3000 and give Q0.15. Tables of entries and of segments take
    what the clipping's type holds.
    """
    act = output.activation
    match act.function:
        case Function.NONE:
            return None, None
        case Function.TANH:
            return tanh, None
        case Function.SIGMOID:
            return sigmoid, None
        case Function.ENTRIES:
            assert table is not None
            assert act.clip is not None
            return None, entries(table, output.fm.dtype, act.clip.dtype)
        case function:
            assert table is not None
            base, slope = segments(table)
            if function in (Function.TABLE_TANH, Function.TABLE_SIGMOID):
                return _table_curve(function, base, slope), None
            return None, _interpolation(function, base, slope)


def entries(table: Bytes, ofm: np.dtype[Any], index: np.dtype[Any]) -> Lookup:
    """A table of 256 elements of type `ofm`, from the smallest `index` to the largest."""
    # Index by the value's byte: no subtraction at run time.
    by_byte = np.roll(table.view(ofm), int(np.iinfo(index).min))

    def look_up(values: Array) -> Array:
        return by_byte[values.astype(np.uint8)]

    return look_up


def segments(table: Bytes) -> tuple[Array, Array]:
    """Base and slope of 512 segments, each a pair of int16; int32 [512]."""
    pairs = table.view(np.int16).reshape(-1, 2).astype(np.int32)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def _interpolation(function: Function, base: Array, slope: Array) -> Lookup:
    """Segments of 128 int16 values each, from the smallest on."""

    def interpolate(values: Array) -> Array:
        v = values.astype(np.int32)
        segment = (v + 32768) >> 7
        return base[segment] + ((slope[segment] * (v & 127) + 64) >> 7)

    def interpolate_32(values: Array) -> Array:
        v = values.astype(np.int32)
        segment = (v + 32768) >> 7
        return (base[segment] << 7) + slope[segment] * (v & 127)

    return interpolate if function is Function.SEGMENTS else interpolate_32


def _table_curve(function: Function, base: Array, slope: Array) -> Lookup:
    """Segments of 256 (tanh) or 512 (sigmoid) values each, with zero between the halves.

    Values saturate alike on both sides: only so do the tables that Vela makes give what the
    kernels do. Entries of sigmoid stand for 0x8000 more, in units of half the result's.
    """
    wide = function is Function.TABLE_SIGMOID
    bits = 9 if wide else 8
    shift = 10 if wide else 8
    offset = 0x8000 if wide else 0
    limit = (256 << bits) - 1
    half = 1 << (shift - 1)

    def curve(values: Array) -> Array:
        v = np.clip(values, -limit, limit).astype(np.int32)
        segment = (v >> bits) + 256
        line = ((base[segment] + offset) << bits) + (v & ((1 << bits) - 1)) * slope[segment]
        return (line + half - (v < 0)) >> shift

    return curve


def sigmoid(values: Array) -> Array:
    """Sigmoid of int64 `values` in units of 1/0x3000; returns Q0.15."""
    magnitude = np.abs(values)
    segment = magnitude >> 9
    result = _interpolate(segment, magnitude & 511, 9, 0x7FFF << 10)
    return np.where(values >= 0, result + 512, (1 << 25) - result + 511) >> 10


def tanh(values: Array) -> Array:
    """Hyperbolic tangent of int64 `values` in units of 1/0x3000; returns Q0.15."""
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
