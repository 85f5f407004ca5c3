"""TFLite's operators along axes, and lookups by an index.

Ref: TFLite, reference_ops::QuantizedMeanOrSum; TFLite Micro, kernels/reduce_common.cc.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mizzen.package.c.layout import Reduction
from mizzen.package.c.lowering.context import Given, Rule, ref
from mizzen.package.c.lowering.quantized import scale_of
from mizzen.package.c.lowering.reduction import (
    quantized_multiplier,
    reduce_axes,
    rows_along,
)
from mizzen.package.c.lowering.tflite_functions import wide_softmax

DIFFERENCE_BITS = 5
"""Bits before the point of a difference of scores. Ref: TFLite, kScaledDiffIntegerBits."""


def summed_so_far(given: Given) -> None:
    """TFLite's CUMSUM of plain numbers, whose axis must be constant."""
    source, axis = given.present()
    given.must(given.row(source).dtype == np.int32, "numbers must be int32")
    flags = (int(bool(given.get("exclusive", False))), int(bool(given.get("reverse", False))))
    lines = rows_along(given, source, int(given.held(axis).item()))
    given.emit("scan", (ref(source), *lines, *flags), (given.output(),))


def softmax(given: Given) -> None:
    """TFLite's SOFTMAX along the last axis, of real or quantised numbers."""
    (source,) = given.present()
    tensor = given.row(source)
    lines = rows_along(given, source, -1)
    beta = given.real("beta", 1.0)
    if tensor.dtype == np.float32:
        given.emit("softmax", (ref(source), *lines, beta, 0), (given.output(),))
        return
    if tensor.dtype == np.int16:
        wide_softmax(given, source, beta)
        return
    given.must(
        tensor.dtype == np.int8 and len(tensor.scales) == 1, "numbers must be real or quantised"
    )
    given.must(lines[0] < 4096, "rows must be shorter than 4096")
    scaling = softmax_scaling(beta, tensor.scales[0])
    given.emit("softmax_int8", (ref(source), *lines, *scaling), (given.output(),))


def log_softmax(given: Given) -> None:
    """LOG_SOFTMAX of real numbers along the last axis."""
    (source,) = given.present()
    given.must(given.row(source).dtype == np.float32, "numbers must be float32")
    lines = rows_along(given, source, -1)
    given.emit("softmax", (ref(source), *lines, 1.0, 1), (given.output(),))


def unit_length(given: Given) -> None:
    """L2_NORMALIZATION along the last axis."""
    (source,) = given.present()
    tensor = given.row(source)
    given.must(tensor.dtype.name in ("float32", "int8"), "numbers must be float32 or int8")
    given.must(bool(tensor.shape), "there must be an axis")
    point = tensor.zero_points[0] if tensor.zero_points else 0
    given.emit("unit_length", (ref(source), tensor.shape[-1], point), (given.output(),))


def softmax_scaling(beta: float, scale: float) -> tuple[int, int, int]:
    """Return multiplier, shift and least difference of a softmax of bytes.

    Ref: TFLite, quantization_util.cc: PreprocessSoftmaxScaling, CalculateInputRadius.
    """
    fraction = 31 - DIFFERENCE_BITS
    factor = min(float(np.float32(beta)) * float(np.float32(scale)) * (1 << fraction), 2.0**31 - 1)
    multiplier, shift = quantized_multiplier(factor)
    largest = ((1 << DIFFERENCE_BITS) - 1) * float(1 << fraction) / float(1 << max(shift, 0))
    return multiplier, max(shift, 0), max(-math.floor(largest), -255)


def extreme(operation: Reduction) -> Rule:
    """Return the rule of ARG_MAX or ARG_MIN, whose axis must be constant."""

    def rule(given: Given) -> None:
        source, axis = given.present()
        rank = len(given.row(source).shape)
        reduce_axes(given, operation, source, [int(given.held(axis).item()) % rank], given.output())

    return rule


def added_up(whole: Reduction, real: Reduction) -> Rule:
    """Return the rule of SUM or MEAN, whose axes must be constant."""

    def rule(given: Given) -> None:
        source, axes = given.present()
        tensor = given.row(source)
        places = _axes(given, axes, len(tensor.shape))
        if tensor.dtype == np.float32:
            reduce_axes(given, real, source, places, given.output())
            return
        given.must(tensor.dtype.name in ("int8", "int16"), "numbers must be float32 or quantised")
        count = math.prod(tensor.shape[axis] for axis in places)
        total = given.lowering.temporary(given.row(given.output()).shape, np.int32)
        reduce_axes(given, Reduction.SUM, source, places, total)
        _scale_sum(given, source, total, count, divided=whole is Reduction.MEAN)

    return rule


def _scale_sum(given: Given, source: int, total: int, count: int, *, divided: bool) -> None:
    """Scale a sum of quantised numbers; the mean's factor has the count in it."""
    tensor, output = given.row(source), given.row(given.output())
    scales = (float(scale_of(given, source)), float(scale_of(given, given.output())))
    multiplier, shift = quantized_multiplier(scales[0] / scales[1])
    if divided:
        bits = min(count.bit_length() - 1, 32, 31 + shift)
        multiplier, shift = (multiplier << bits) // count, shift - bits
    limits = np.iinfo(output.dtype)
    centre = tensor.zero_points[0] * count
    arguments = (multiplier, shift, output.zero_points[0], int(limits.min), int(limits.max))
    given.emit("rescale", (ref(total), centre, *arguments), (given.output(),))


def greatest(whole: Reduction, real: Reduction) -> Rule:
    """Return the rule of REDUCE_MAX or REDUCE_MIN, whose axes must be constant."""

    def rule(given: Given) -> None:
        source, axes = given.present()
        tensor = given.row(source)
        chosen = real if tensor.dtype.kind == "f" else whole
        reduce_axes(given, chosen, source, _axes(given, axes, len(tensor.shape)), given.output())

    return rule


def all_true(given: Given) -> None:
    """REDUCE_ALL, whose axes must be constant."""
    source, axes = given.present()
    places = _axes(given, axes, len(given.row(source).shape))
    reduce_axes(given, Reduction.ALL, source, places, given.output())


def _axes(given: Given, index: int, rank: int) -> list[int]:
    return sorted({int(axis) % rank for axis in given.held(index).reshape(-1).tolist()})


RULES: Mapping[str, Rule] = {
    "tflite::SOFTMAX": softmax,
    "tflite::ARG_MAX": extreme(Reduction.PLACE_OF_GREATEST),
    "tflite::ARG_MIN": extreme(Reduction.PLACE_OF_LEAST),
    "tflite::CUMSUM": summed_so_far,
    "tflite::LOG_SOFTMAX": log_softmax,
    "tflite::L2_NORMALIZATION": unit_length,
    "tflite::SUM": added_up(Reduction.SUM, Reduction.RUNNING_SUM),
    "tflite::MEAN": added_up(Reduction.MEAN, Reduction.RUNNING_MEAN),
    "tflite::REDUCE_MAX": greatest(Reduction.MAXIMUM, Reduction.GREATEST),
    "tflite::REDUCE_MIN": greatest(Reduction.MINIMUM, Reduction.LEAST),
    "tflite::REDUCE_ALL": all_true,
}
