"""Numbers between -1 and 1, or some powers of two more, in 32 bits, as gemmlowp computes with them.

A number of `n` integer bits has 31 - n fraction bits. Arrays are int64 with values of 32 bits.

Ref: gemmlowp, fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

LOW, HIGH = -(1 << 31), (1 << 31) - 1
ONE = HIGH
"""The greatest number of no integer bits stands for 1."""

ONE_OF_TWO_BITS = 1 << 29
QUARTER = 1 << 25
"""A quarter in numbers of four integer bits."""

EXP_STEPS = (
    (1 << 25, 1672461947),
    (1 << 26, 1302514674),
    (1 << 27, 790015084),
    (1 << 28, 290630308),
    (1 << 29, 39332535),
    (1 << 30, 720401),
)
"""Powers of two from 1/4 to 8 in numbers of four integer bits, and exp of minus each."""

EXP_MINUS_EIGHTH = 1895147668
THIRD = 715827883
NEWTON_START, NEWTON_SLOPE = 1515870810, -1010580540
"""48/17 and -32/17, of two integer bits: the best line under 1/x between 1/2 and 1."""


def times(a: Numbers, b: Numbers | int) -> Numbers:
    """Multiply; the integer bits of both add up. Rounds to nearest, ties up."""
    return np.minimum((a * np.int64(b) + (1 << 30)) >> 31, HIGH)


def divided(values: Numbers, bits: int) -> Numbers:
    """Divide by a power of two, ties away from zero."""
    if not bits:
        return values
    half = 1 << (bits - 1)
    return np.where(values >= 0, (values + half) >> bits, -((half - values) >> bits))


def raised(values: Numbers, bits: int) -> Numbers:
    """Multiply by a power of two; saturates."""
    return np.clip(values << bits, LOW, HIGH)


def scaled(values: Numbers, multiplier: int, exponent: int) -> Numbers:
    """Multiply by a multiplier of 31 fraction bits and a power of two, rounded as TFLite does."""
    if exponent > 0:
        return times(values << exponent, multiplier)
    return divided(times(values, multiplier), -exponent)


def exp_of_negative(values: Numbers) -> Numbers:
    """Return exp of numbers <= 0 of four integer bits; the results have none."""
    within = (values & (QUARTER - 1)) - QUARTER
    result = _exp_of_last_quarter(raised(within, 4))
    rest = within - values
    for bit, factor in EXP_STEPS:
        result = np.where(rest & bit, times(result, factor), result)
    return np.where(values == 0, ONE, result)


def _exp_of_last_quarter(values: Numbers) -> Numbers:
    """Return exp of numbers from -1/4 to 0, by its series around -1/8."""
    x = values + (1 << 28)
    square = times(x, x)
    cube, fourth = times(square, x), times(square, square)
    tail = divided(times(divided(fourth, 2) + cube, THIRD) + square, 1)
    return EXP_MINUS_EIGHTH + times(x + tail, EXP_MINUS_EIGHTH)


def twice_reciprocal(values: Numbers) -> Numbers:
    """Return 2 / (1 + x) of x from 0 to 1, of two integer bits, by three of Newton's steps."""
    total = values + ONE
    half = np.where(total >= 0, total + 1, total - 1) // 2
    result = NEWTON_START + times(half, NEWTON_SLOPE)
    for _ in range(3):
        missing = ONE_OF_TWO_BITS - times(half, result)
        result = result + raised(times(result, missing), 2)
    return result


def logistic(values: Numbers) -> Numbers:
    """Return 1 / (1 + exp(-x)) of numbers of four integer bits; the results have none."""
    positive = raised(twice_reciprocal(exp_of_negative(-np.abs(values))), 1)
    result = np.where(values > 0, positive, ONE - positive)
    return np.where(values == 0, 1 << 30, result)


def tanh(values: Numbers) -> Numbers:
    """Return tanh of numbers of four integer bits; the results have none."""
    power = exp_of_negative_doubled(-np.abs(values))
    result = raised(twice_reciprocal(power) - ONE_OF_TWO_BITS, 2)
    return np.where(values == 0, 0, np.where(values < 0, -result, result))


def exp_of_negative_doubled(values: Numbers) -> Numbers:
    """Return exp of twice the numbers <= 0 of four integer bits; twice them has five."""
    quarter = QUARTER >> 1
    within = (values & (quarter - 1)) - quarter
    result = _exp_of_last_quarter(raised(within, 5))
    rest = within - values
    for bit, factor in (*((bit >> 1, factor) for bit, factor in EXP_STEPS), (1 << 30, 242)):
        result = np.where(rest & bit, times(result, factor), result)
    return np.where(values == 0, ONE, result)
