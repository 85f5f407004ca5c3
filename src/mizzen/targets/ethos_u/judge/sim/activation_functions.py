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

Array = npt.NDArray[Any]
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


# As TFLite rounds them: rounding the formula differs by one in 44 entries.
# fmt: off
SIGMOID = np.array([
    32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149,
    40794, 41432, 42064, 42688, 43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369,
    47911, 48443, 48964, 49475, 49975, 50464, 50942, 51409, 51865, 52311, 52745, 53169,
    53581, 53983, 54374, 54755, 55125, 55485, 55834, 56174, 56503, 56823, 57133, 57433,
    57724, 58007, 58280, 58544, 58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370,
    60565, 60753, 60935, 61110, 61279, 61441, 61599, 61750, 61896, 62036, 62172, 62302,
    62428, 62549, 62666, 62778, 62886, 62990, 63090, 63186, 63279, 63368, 63454, 63536,
    63615, 63691, 63765, 63835, 63903, 63968, 64030, 64090, 64148, 64204, 64257, 64308,
    64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652, 64687, 64721, 64754, 64786,
    64816, 64845, 64873, 64900, 64926, 64950, 64974, 64997, 65019, 65039, 65060, 65079,
    65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208, 65221, 65234, 65246, 65258,
    65269, 65280, 65291, 65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360, 65367,
    65374, 65381, 65387, 65393, 65399, 65404, 65410, 65415, 65420, 65425, 65429, 65433,
    65438, 65442, 65445, 65449, 65453, 65456, 65459, 65462, 65465, 65468, 65471, 65474,
    65476, 65479, 65481, 65483, 65485, 65488, 65489, 65491, 65493, 65495, 65497, 65498,
    65500, 65501, 65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513,
    65514, 65515, 65516, 65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522,
    65523, 65523, 65524, 65524, 65525, 65525, 65526, 65526, 65526, 65527, 65527, 65528,
    65528, 65528, 65529, 65529, 65529, 65529, 65530, 65530, 65530, 65530, 65531, 65531,
    65531, 65531, 65531, 65532, 65532, 65532, 65532, 65532, 65532, 65533, 65533, 65533,
    65533, 65533, 65533, 65533, 65533, 65534, 65534, 65534, 65534, 65534, 65534, 65534,
    65534, 65534, 65534, 65535,
], np.int64)
# fmt: on
