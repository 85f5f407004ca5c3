"""LOGISTIC and TANH of 16 bits have no form in TOSA that is exact; what their kernels scale by.

Ref: TFLite Micro, kernels/logistic_common.cc and tanh.cc.
"""

from __future__ import annotations

from math import log2
from typing import Any

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, describes

UNIT_BITS = 12
"""Numbers are in units of a third of 2**-12."""

NEAR_A_POWER = 1e-3
"""Of a logarithm to base 2: nearer to a whole number than this it counts as one."""

MOST_MULTIPLIER, MOST_SHIFT = 32767, 31


@describes("LOGISTIC")
def logistic(call: Call) -> dict[str, Any]:
    """What numbers are multiplied with, and shifted right by, rounded, before the curve."""
    return _scaled(call, powers=(0,))


@describes("TANH")
def tanh(call: Call) -> dict[str, Any]:
    """What numbers are multiplied with, and shifted right by, rounded, before the curve."""
    return _scaled(call, powers=(0, 1))


def _scaled(call: Call, powers: tuple[int, ...]) -> dict[str, Any]:
    """Return multiplier and shift; `powers` are those of two times the unit that are exact."""
    call.need_types(FileType.INT16)
    x, y = call.quantization(call.input(0)), call.quantization(call.output())
    call.need(not x.zero_point and not y.zero_point, "its 16-bit tensors have zero points")
    call.need(nearest_power(y.scale) == -15, "its output's scale is not 2**-15")
    power = nearest_power(x.scale)
    if power is not None and power + UNIT_BITS in powers:
        return {"multiplier": 3 << power + UNIT_BITS, "shift": 0}
    multiplier, shift = x.scale * 3 * (1 << UNIT_BITS), 0
    while multiplier <= MOST_MULTIPLIER / 2 and shift < MOST_SHIFT:
        multiplier, shift = 2 * multiplier, shift + 1
    call.need(multiplier < MOST_MULTIPLIER + 1, "its input is too coarse for TFLite's kernel")
    return {"multiplier": int(multiplier), "shift": shift}


def nearest_power(scale: float) -> int | None:
    """Return the power of two that TFLite takes a scale for; None if it is near none."""
    exact = log2(scale)
    return round(exact) if abs(exact - round(exact)) < NEAR_A_POWER else None
