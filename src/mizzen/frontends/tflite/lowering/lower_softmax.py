"""SOFTMAX has no form in TOSA that is exact; what its kernel computes with are tables.

Ref: TFLite Micro, kernels/internal/reference/softmax.h; quantization_util.cc,
PreprocessSoftmaxScaling and CalculateInputRadius; kernels/softmax_common.cc.
"""

from __future__ import annotations

from math import exp, floor, frexp
from typing import Any

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, describes
from mizzen.frontends.tflite.lowering import fixed_point
from mizzen.frontends.tflite.lowering.fixed_point import HIGH, Numbers
from mizzen.frontends.tflite.lowering.lower_functions import line_entries
from mizzen.frontends.tflite.lowering.requantization import multiplier_of

DIFFERENCE_BITS = 5
"""Integer bits of an element's distance from the greatest."""

DISTANCES = np.arange(-255, 1, dtype=np.int64)


@describes("SOFTMAX")
def softmax(call: Call) -> dict[str, Any]:
    """Of bytes the exponentials of the distances -255 to 0 between them, of no integer bits.

    Of 16 bits by what distances are multiplied for their scale to be 10 / 65,535, and the tables of
    lines of exp(x) from -10 to 0 and of 1 / (1 + x) from 0 to 1.
    """
    dtype = call.need_types(FileType.INT8, FileType.UINT8, FileType.INT16)
    x, y = call.quantization(call.input(0)), call.quantization(call.output())
    scale = float(np.float32(call.option("beta", 1.0))) * x.scale
    if dtype is FileType.INT16:
        call.need(not x.zero_point and not y.zero_point, "its 16-bit tensors have zero points")
        return _of_lines(scale)
    call.need(y.zero_point == -128, "its zero point is not the least integer")
    return {"exponentials": exponentials(scale).tolist()}


RANGE = (1 << 16) - 1


def _of_lines(scale: float) -> dict[str, Any]:
    multipliers, exponents = multiplier_of(scale / (10.0 / RANGE))
    fine = float(np.float32(2) / np.float32(RANGE))
    tenths, ones = (float(np.float32(width) / np.float32(RANGE)) for width in (10, 1))
    return {
        "multiplier": int(multipliers[0]),
        "exponent": int(exponents[0]),
        "exp": line_entries(exp, tenths, fine, 32767).tolist(),
        "reciprocal": line_entries(lambda x: 1 / (1 + x), ones, fine, -32768).tolist(),
    }


def exponentials(scale: float) -> Numbers:
    """Return exp of the distances times a scale; 0 for those that the kernel takes for nothing."""
    fraction_bits = 31 - DIFFERENCE_BITS
    fraction, exponent = frexp(min(scale * (1 << fraction_bits), float(HIGH)))
    multiplier = floor(fraction * (1 << 31) + 0.5)
    if multiplier == 1 << 31:
        multiplier, exponent = multiplier >> 1, exponent + 1
    limit = float(((1 << DIFFERENCE_BITS) - 1) << fraction_bits)
    radius = floor(limit / 2.0**exponent)
    inside = -radius <= DISTANCES
    shifted = fixed_point.raised(np.where(inside, DISTANCES, 0), max(exponent, 0))
    # Numbers of five integer bits are twice those of four.
    values = fixed_point.exp_of_negative_doubled(fixed_point.times(shifted, multiplier))
    return np.where(inside, values, 0)
