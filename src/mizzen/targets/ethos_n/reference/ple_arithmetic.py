"""What the kernels of the programmable layer engine compute, each as its registers hold it.

Registers have 16 bits and wrap; shifts to the right truncate. EXP2 and RCP are taken to be
correctly rounded in their 8.8 fixed point, which the public sources leave open.

Ref: Ethos-N driver stack 25.03, `firmware/ple/src`; 23.02, `Utils.hpp` and `McePlePass.cpp` for
the multipliers and shifts.
"""

from __future__ import annotations

import math

import numpy as np

from mizzen.targets.ethos_n.network import Pooling
from mizzen.targets.ethos_n.reference.mce_arithmetic import Numbers
from mizzen.targets.ethos_n.tensors import DataType, QuantizationInfo

MULTIPLIER_BITS = 16
ONE = 256
"""1 in 8.8 fixed point."""
MEAN_SHIFT = 20
AVERAGE_SHIFT = 16
AVERAGE_SIZE = 3
SHIFT_MASK = 31
"""An instruction has five bits for a shift to the right: the lowest of what it is given."""
LOWEST_16, HIGHEST_16 = -(1 << 15), (1 << 15) - 1


def factor_constants(factor: float) -> tuple[int, int]:
    """Return a 16-bit multiplier and a shift: factor is about multiplier / 2**shift, from above.

    The multiplier is truncated. A factor below 2**-17 has none: both are 0.
    """
    fraction, exponent = math.frexp(factor)
    if exponent < -MULTIPLIER_BITS:
        return 0, 0
    bits = 32 - max(MULTIPLIER_BITS, exponent)
    return int(fraction * (1 << bits)), max(bits, exponent) - exponent


def _wrapped(numbers: Numbers) -> Numbers:
    """Return numbers as a signed register of 16 bits holds them."""
    return ((numbers - LOWEST_16) & 0xFFFF) + LOWEST_16


def _saturated(numbers: Numbers, data_type: DataType) -> Numbers:
    return np.clip(numbers, data_type.lowest, data_type.highest)


def _rescaled(numbers: Numbers, zero_point: int, factor: float) -> Numbers:
    """Multiply what numbers stand for by a factor, halves up.

    One bit more than is wanted is kept and saturated to 16 bits; then 1 is added, and it goes. A
    factor of 2**15 or more has shift 0, of which one bit less is 31 in the instruction; whether a
    device does so is among the notes of the simulator (N697).
    """
    multiplier, shift = factor_constants(factor)
    doubled = ((numbers - zero_point) * multiplier) >> ((shift - 1) & SHIFT_MASK)
    return _wrapped(np.clip(doubled, LOWEST_16, HIGHEST_16) + 1) >> 1


def _ratio(numerator: float, denominator: float) -> np.float32:
    return np.float32(numerator) / np.float32(denominator)


def added(
    first: Numbers,
    second: Numbers,
    inputs: tuple[QuantizationInfo, QuantizationInfo],
    output: QuantizationInfo,
    data_type: DataType,
) -> Numbers:
    """Add. Numbers of one and the same quantisation are added as they are."""
    if inputs == (output, output):
        return _saturated(first - output.zero_point + second, data_type)
    left, right = (
        _rescaled(numbers, info.zero_point, float(_ratio(info.scale, output.scale)))
        for numbers, info in zip((first, second), inputs, strict=True)
    )
    return _saturated(_wrapped(left + output.zero_point + right), data_type)


def leaky(
    numbers: Numbers,
    alpha: float,
    quantization: QuantizationInfo,
    output: QuantizationInfo,
    data_type: DataType,
) -> Numbers:
    """Take the larger of x and alpha * x, each rescaled for itself."""
    ratio = _ratio(quantization.scale, output.scale)
    kept = _rescaled(numbers, quantization.zero_point, float(ratio))
    leaked = _rescaled(numbers, quantization.zero_point, float(np.float32(alpha) * ratio))
    return _saturated(_wrapped(np.maximum(kept, leaked) + output.zero_point), data_type)


def logistic_constants(scale: float, widening: int) -> tuple[int, int, int]:
    """Return the multiplier and the shift of |x|, and the largest |x| that they may have."""
    multiplier, shift = factor_constants(scale * (math.log2(math.e) * ONE) * widening)
    largest = math.ceil(math.ldexp(1, 15 + shift) / multiplier) - 1 if multiplier else HIGHEST_16
    if largest == 0:
        return HIGHEST_16, 0, 1
    return multiplier, shift, largest


def logistic(
    numbers: Numbers, quantization: QuantizationInfo, widening: int, data_type: DataType
) -> Numbers:
    """Return 256 / (1 + exp(-widening * x)); of signed numbers 128 less.

    It is made of |x|: 1 + 2**-t and then its reciprocal, both of 8.8 fixed point; 1 becomes 255,
    and where x is negative the result is taken from 256. `x` is bounded so that t has 15 bits. A
    hyperbolic tangent is the same with `widening` 2, its output read with another quantisation.
    """
    multiplier, shift, largest = logistic_constants(quantization.scale, widening)
    centred = np.clip(numbers - quantization.zero_point, -largest, largest)
    exponent = (abs(centred) * multiplier) >> (shift & SHIFT_MASK)
    power = np.floor(np.exp2(-exponent / ONE) * ONE + 0.5)
    inverse = np.floor(ONE * ONE / (ONE + power) + 0.5).astype(np.int64)
    positive = np.minimum(inverse, ONE - 1)
    return np.where(centred < 0, ONE - positive, positive) + data_type.lowest


def mean_of_plane(numbers: Numbers) -> Numbers:
    """Return the mean of planes of 7 x 7 or 8 x 8; zero points stay what they are."""
    count = numbers.shape[1] * numbers.shape[2]
    total = numbers.sum(axis=(1, 2), keepdims=True) + count // 2
    return (total * ((1 << MEAN_SHIFT) // count + 1)) >> MEAN_SHIFT


def average_3x3(numbers: Numbers) -> Numbers:
    """Return the mean of the elements of the plane among the 3 x 3 around each.

    They are 9, at an edge 6, at a corner 4; so the kernel counts even along an axis of extent 1.
    """
    _, height, width, _ = numbers.shape
    padded = np.pad(numbers, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = range(AVERAGE_SIZE)
    total = sum(padded[:, y : y + height, x : x + width] for y in windows for x in windows)
    count = _counted(height)[:, None] * _counted(width)
    multiplier = (1 << AVERAGE_SHIFT) // count + 1
    rounded = (np.asarray(total) + (count // 2)[..., None]) * multiplier[..., None]
    return rounded >> AVERAGE_SHIFT


def _counted(extent: int) -> Numbers:
    places = np.arange(extent)
    return AVERAGE_SIZE - ((places == 0) | (places == extent - 1)).astype(np.int64)


def largest_of_windows(numbers: Numbers, operation: Pooling) -> Numbers:
    """Return the largest of each window; what lies around the plane is less than any number."""
    (height, width), stride, padding = operation.size, operation.stride, operation.padding
    around = ((0, 0), (padding.top, padding.bottom), (padding.left, padding.right), (0, 0))
    padded = np.pad(numbers, around, constant_values=LOWEST_16)
    lines = padded.shape[1] - height + 1
    columns = padded.shape[2] - width + 1
    parts = [
        padded[:, y : y + lines : stride.y, x : x + columns : stride.x]
        for y, x in np.ndindex(height, width)
    ]
    return np.maximum.reduce(parts)
