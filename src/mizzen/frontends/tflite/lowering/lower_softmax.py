"""SOFTMAX has no form in TOSA that is exact; what its kernel computes with is a table.

Ref: TFLite Micro, kernels/internal/reference/softmax.h; quantization_util.cc,
PreprocessSoftmaxScaling and CalculateInputRadius.
"""

from __future__ import annotations

from math import floor, frexp
from typing import Any

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, describes
from mizzen.frontends.tflite.lowering import fixed_point
from mizzen.frontends.tflite.lowering.fixed_point import HIGH, Numbers

DIFFERENCE_BITS = 5
"""Integer bits of an element's distance from the greatest."""

DISTANCES = np.arange(-255, 1, dtype=np.int64)


@describes("SOFTMAX")
def softmax(call: Call) -> dict[str, Any]:
    """The exponentials of the distances -255 to 0 between bytes, of no integer bits."""
    call.need_types(FileType.INT8)
    zero_point = call.quantization(call.output()).zero_point
    call.need(zero_point == -128, "its zero point is not -128")
    scale = float(np.float32(call.option("beta", 1.0))) * call.quantization(call.input(0)).scale
    return {"exponentials": exponentials(scale).tolist()}


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
