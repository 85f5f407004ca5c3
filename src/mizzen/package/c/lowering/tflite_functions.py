"""TFLite's functions of 16 bits: sigmoid, tangent and softmax by tables and interpolation.

Ref: TFLite, common.h (LUTPopulateInt16); TFLite Micro, kernels/softmax_common.cc,
logistic_common.cc and tanh.cc (how scales become multipliers).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mizzen.package.c.lowering.context import Array, Given, Rule, ref
from mizzen.package.c.lowering.quantized import by_table, scale_of
from mizzen.package.c.lowering.reduction import quantized_multiplier, rows_along
from mizzen.package.device import DeviceTensor, KernelCall

STEPS = 512
"""Of a table of 16 bits; one entry more is at the end."""
LEAST = -10.0
"""Of an exponent in SOFTMAX: e to that counts for nothing."""
RANGE = 65535

STEPS_OF_SIGMOID = 256
GRID = 48
"""Where TANH reads one entry of the host's table alone: inputs of a scale of 1/48."""

Real = Callable[[float], float]


def squashed(*, tangent: bool) -> Rule:
    """Return the rule of LOGISTIC or TANH of quantised numbers."""

    def rule(given: Given) -> None:
        (source,) = given.present()
        if given.row(source).dtype != np.int16:
            by_table(given)
            return
        multiplier, shift = _step(float(scale_of(given, source)), largest=int(tangent))
        table = given.lowering.constant(_sigmoids(given), np.uint16)
        arguments = (ref(source), ref(table), multiplier, shift, int(tangent))
        given.emit("squash", arguments, (given.output(),))

    return rule


def _step(scale: float, largest: int) -> tuple[int, int]:
    """Return a scale as a multiplier of 3 4096ths of a step, and a shift to the right.

    largest  shift to the left up to which a power of two stays exact
    """
    exponent = math.log2(scale)
    shift = 12 + round(exponent)
    if abs(exponent - round(exponent)) < 1e-3 and 0 <= shift <= largest:
        return 3 << shift, 0
    multiplier, right = scale * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and right <= 30:
        multiplier, right = multiplier * 2.0, right + 1
    return int(multiplier), right


def _sigmoids(given: Given) -> Array:
    """Return the host's table of the sigmoid, which TANH of a fitting scale reads out."""
    scale = float(np.nextafter(np.float32(1 / GRID), np.float32(1)))
    tensor = DeviceTensor("x", (1,), np.dtype(np.int16), (scale,), (0,))
    result = DeviceTensor("y", (1,), np.dtype(np.int16), (2.0**-15,), (0,))
    call = KernelCall("tflite::TANH", (), (None,))
    values = given.lowering.tabulate(call, tensor, result).astype(np.int64)
    return values[-np.iinfo(np.int16).min :][:STEPS_OF_SIGMOID] + (1 << 15)


def wide_softmax(given: Given, source: int, beta: float) -> None:
    """SOFTMAX of 16 bits along the last axis."""
    scale = float(scale_of(given, source))
    step = np.float32(-LEAST) / np.float32(RANGE)
    unit = np.float32(1) / np.float32(RANGE)
    powers = _sampled(step, np.iinfo(np.int16).max, math.exp)
    inverses = _sampled(unit, np.iinfo(np.int16).min, _inverse)
    factor = scale * float(np.float32(beta)) / (-LEAST / RANGE)
    tables = (ref(given.lowering.constant(numbers, np.int16)) for numbers in (powers, inverses))
    arguments = (ref(source), *tables, *rows_along(given, source, -1))
    given.emit("softmax_int16", (*arguments, *quantized_multiplier(factor)), (given.output(),))


def _inverse(value: float) -> float:
    return float(np.float32(1) / (np.float32(1) + np.float32(value)))


def _sampled(scale: np.float32, zero_point: int, function: Real) -> Array:
    """Return a function's values in 15 fractional bits, bent to halve the error between them.

    Numbers are float32 throughout, as the host's are.
    """
    limits = np.iinfo(np.int16)
    least, most = (scale * np.float32(limit - zero_point) for limit in (limits.min, limits.max))
    unit = np.float32(2) / np.float32(RANGE)
    span = unit * np.float32(limits.max) - unit * np.float32(limits.min)
    per_unit = np.float32(RANGE + 1) / span
    step = (most - least) / np.float32(STEPS)
    places = least + np.arange(STEPS + 1, dtype=np.float32) * step
    middles = places[:-1] + step / np.float32(2)
    exact = _values(function, places) * per_unit
    samples = _rounded(exact)
    between = _rounded((exact[1:] + samples[:-1]) / np.float32(2))
    error = between - _rounded(_values(function, middles) * per_unit)
    bent = samples[:-1] - _rounded(error / np.float32(2))
    last = _rounded(_values(function, np.array([most])) * per_unit)
    return np.clip(np.concatenate([bent, last]), limits.min, limits.max)


def _values(function: Real, places: Array) -> Array:
    return np.array([function(float(place)) for place in places], np.float32)


def _rounded(values: Array) -> Array:
    return np.sign(values) * np.floor(np.abs(values) + np.float32(0.5))
