"""Real factors as the integers that the hardware multiplies and shifts with.

Ref: Ethos-N driver stack 23.02, the Support Library's quantised multipliers.
"""

from __future__ import annotations

import math

import numpy as np

from mizzen.targets.ethos_n.tensors import QuantizationInfo

MULTIPLIER_BITS = 16
LARGEST_SHIFT = 47
SMALLEST_PLE_EXPONENT = -16
"""A factor below 2 to this is nothing to the programmable layer engine."""


def accumulator_scale(factor: float) -> tuple[int, int]:
    """Return multiplier (16 bits) and shift for a factor of 0 to 65536: factor * 2**shift, rounded.

    Halves are rounded away from zero.
    """
    if factor == 0:
        return 0, 0
    _, exponent = math.frexp(factor)
    shift = min(MULTIPLIER_BITS - exponent, LARGEST_SHIFT)
    multiplier = math.floor(math.ldexp(factor, shift) + 0.5)
    if multiplier == 1 << MULTIPLIER_BITS:
        return (multiplier // 2, shift - 1) if shift else (multiplier - 1, 0)
    return multiplier, shift


def ple_scale(factor: float) -> tuple[int, int]:
    """Return multiplier (16 bits) and shift of the programmable layer engine, rounded down."""
    fraction, exponent = math.frexp(factor)
    if exponent < SMALLEST_PLE_EXPONENT:
        return 0, 0
    precision = max(0, 2 * MULTIPLIER_BITS - max(MULTIPLIER_BITS, exponent))
    return int(fraction * (1 << precision)), max(precision, exponent) - exponent


def scale_ratio(numerator: QuantizationInfo, denominator: QuantizationInfo) -> np.float32:
    """Return a quotient of scales as float32, which the library computes with."""
    return np.float32(numerator.scale) / np.float32(denominator.scale)


def overall_factors(
    source: QuantizationInfo, weights: QuantizationInfo, output: QuantizationInfo
) -> list[float]:
    """Return input scale * weight scale / output scale, in float32, for each scale of weights."""
    products = np.float32(source.scale) * np.asarray(weights.scales, np.float32)
    return (products / np.float32(output.scale)).tolist()
