"""DIV of bytes has no form in TOSA that is exact; the tables and numbers that its kernel computes.

The kernel multiplies the dividend with the reciprocal of the divisor's magnitude, by three of
Newton's steps, then with the scale, and shifts right by what both were raised. Shifts of 32 bits
and more, which C leaves open, are what compilers make of them: those of the five low bits, and one
more of a dividend of 0.

Ref: TFLite Micro, kernels/div.cc, kernels/internal/reference/div.h; common.h (GetReciprocal).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, describes
from mizzen.frontends.tflite.lowering import fixed_point
from mizzen.frontends.tflite.lowering.requantization import REAL_BOUNDS, bounds_of, multiplier_of
from mizzen.graph import DType

WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Reciprocal:
    """1 / number as a multiplier of 31 fraction bits, and the bits to shift right by."""

    multiplier: int
    bits: int


@describes("DIV")
def quotient(call: Call) -> dict[str, Any]:
    """Zero points, the scale, bounds, and of each magnitude of a divisor its reciprocal."""
    call.need_types(FileType.INT8, tensors=(call.input(0), call.input(1), call.output()))
    x, y, z = (
        call.quantization(tensor) for tensor in (call.input(0), call.input(1), call.output())
    )
    multipliers, exponents = multiplier_of(x.scale / (y.scale * z.scale))
    real = REAL_BOUNDS.get(int(call.option("fused_activation_function")))
    call.need(real is not None, "its fused activation is another than a clamp")
    assert real is not None
    found = [reciprocal(number) for number in range(256)]
    return {
        "zeros": [x.zero_point, y.zero_point, z.zero_point],
        "multiplier": int(multipliers[0]),
        "exponent": int(exponents[0]),
        "bounds": list(bounds_of(real, DType.INT8, z)),
        "reciprocals": [row.multiplier for row in found],
        "bits": [row.bits for row in found],
    }


def reciprocal(number: int) -> Reciprocal:
    """Return 1 / number as the kernel computes it; of 0 what it computes then."""
    raised = WORD_BITS - number.bit_length()
    fraction = ((number << (raised % WORD_BITS)) % (1 << WORD_BITS)) + fixed_point.LOW
    total = fraction + fixed_point.HIGH
    half = (total + 1) // 2 if total >= 0 else -((1 - total) // 2)
    x = fixed_point.NEWTON_START + _times(half, fixed_point.NEWTON_SLOPE)
    for _ in range(3):
        rest = fixed_point.ONE_OF_TWO_BITS - _times(half, x)
        x = _wrapped(x + int(fixed_point.raised(np.array(_times(x, rest)), 2)))
    return Reciprocal(int(fixed_point.raised(np.array(x), 1)), WORD_BITS - 1 - raised)


def _times(a: int, b: int) -> int:
    return int(fixed_point.times(np.array(a, np.int64), b))


def _wrapped(value: int) -> int:
    return (value - fixed_point.LOW) % (1 << WORD_BITS) + fixed_point.LOW
