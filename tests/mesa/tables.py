"""Lookup tables of functions of 8 bits, by the integer arithmetic that Mesa takes over.

Ref: Mesa, src/gallium/drivers/ethosu/ethosu_lower.c; gemmlowp's fixed point of 32 and 16 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .coefficients import quantized

LOW, HIGH = -128, 127
Q5_FRACTION = 26


@dataclass(frozen=True)
class Scales:
    """Scale and zero point of an input and of an output."""

    scale: float
    zero: int
    to_scale: float
    to_zero: int

    def table(self, function: Callable[[int], int]) -> bytes:
        """Return the entries of all inputs; `function` takes them without their zero point."""
        values = (self.to_zero + function(x - self.zero) for x in range(LOW, HIGH + 1))
        return bytes(min(HIGH, max(LOW, value)) & 0xFF for value in values)


def _nearest(value: float) -> int:
    return math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1)


def real(scales: Scales, function: Callable[[float], float]) -> bytes:
    """Return the table of a function of real numbers."""
    return scales.table(lambda x: _nearest(function(scales.scale * x) / scales.to_scale))


def sigmoid(x: float) -> float:
    """Return the logistic function, 0 and 1 from 8 on."""
    return 0.0 if x <= -8 else 1.0 if x >= 8 else 1 / (1 + math.exp(-x))


def _high(a: int, b: int, bits: int, *, rounds: bool = True) -> int:
    """Multiply, double, and take the high half: saturating, nearest or towards zero."""
    if a == b == -(1 << bits - 1):
        return (1 << bits - 1) - 1
    product, half = a * b, 1 << bits - 2
    if rounds:
        product += half if product >= 0 else 1 - half
    return int(math.copysign(abs(product) >> bits - 1, product)) if product else 0


def _divided(x: int, exponent: int) -> int:
    """Divide by a power of two, halves away from zero."""
    mask = (1 << exponent) - 1
    return (x >> exponent) + int((x & mask) > (mask >> 1) + (x < 0))


def multiplied(x: int, scale: tuple[int, int]) -> int:
    """Multiply by a number and shift, rounded twice."""
    number, right = scale
    left = max(0, 31 - right)
    return _divided(_high(x << left, number, 32), max(0, right - 31))


def leaky(scales: Scales, alpha: float) -> bytes:
    """Return the table of LEAKY_RELU."""
    own, sloped = (quantized(scales.scale * each / scales.to_scale) for each in (1.0, alpha))
    return scales.table(lambda x: multiplied(x, sloped if x < 0 else own))


def _short(number: int) -> int:
    return min(32767, (number // 32768 + 1) // 2)


def _saturated(value: int) -> int:
    return max(-32768, min(32767, value))


def hard_swish(scales: Scales) -> bytes:
    """Return the table of HARD_SWISH."""
    fine = scales.scale / 128
    (number, right), (relu, relu_right) = (
        quantized(fine / scales.to_scale),
        quantized(fine / (3 / 32768)),
    )
    shift, relu_shift = 31 - right, 31 - relu_right

    def entry(x: int) -> int:
        wide = x << 7
        scaled = _high(wide, _short(number), 16)
        gate = _saturated(wide << relu_shift - 1) if relu_shift > 0 else wide
        gate = _high(gate, _short(relu), 16)
        if relu_shift > 0:
            gate = _saturated(gate << 1)
        elif relu_shift < 0:
            gate = _divided(gate, -relu_shift)
        gate = (gate + (1 << 15)) >> 1
        return _divided(_high(gate, scaled, 16, rounds=False), max(0, -shift))

    return scales.table(entry)


def _exponential_of_quarter(x: int) -> int:
    """Return exp of a number from -1/4 to 0, both of 31 bits of fraction."""
    x += 1 << 28
    square = _high(x, x, 32)
    fourth, cube = _high(square, square, 32), _high(square, x, 32)
    rest = _high(_divided(fourth, 2) + cube, 715827883, 32) + square
    return 1895147668 + _high(1895147668, x + _divided(rest, 1), 32)


def _exponential(a: int) -> int:
    """Return exp of a number up to 0 with 5 bits before the point, with none."""
    quarter = 1 << Q5_FRACTION - 2
    part = (a & quarter - 1) - quarter
    result = _exponential_of_quarter(part << 5)
    for exponent, factor in enumerate(
        (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242), -2
    ):
        if part - a & 1 << Q5_FRACTION + exponent:
            result = _high(result, factor, 32)
    return (1 << 31) - 1 if a == 0 else result


def exponential(scale: float, beta: float) -> bytes:
    """Return the table of 32 bits of exp for the distance to the greatest input, -255 to 0."""
    number, right = quantized(min(beta * scale * (1 << Q5_FRACTION), float((1 << 31) - 1)))
    left = 31 - right
    least = -math.floor(31 * (1 << Q5_FRACTION) / (1 << left))
    entries = (
        _exponential(_high(x << left, number, 32)) if x >= least else 0 for x in range(-255, 1)
    )
    return b"".join(entry.to_bytes(4, "little") for entry in entries)
