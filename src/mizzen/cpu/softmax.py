"""SOFTMAX of bytes in fixed point, in NumPy, from TFLite's definition of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite import Model, Operator, Tensor
from mizzen.frontends.tflite.lowering import fixed_point
from mizzen.frontends.tflite.lowering.requantization import multiplier_of

Array = npt.NDArray[Any]

ENTRIES = 256
INTEGER_BITS = 5
"""Of the differences to a row's greatest value that SOFTMAX takes exponentials of.
Ref: TFLite, kernels/internal/reference/softmax.h, kScaledDiffIntegerBits."""

BYTES = (TensorType.INT8, TensorType.UINT8)

SUM_BITS = 19
"""Fraction bits of a sum of exponentials, and so 12 before the point.
Ref: TFLite, kernels/internal/reference/softmax.h, kAccumulationIntegerBits."""


def exponentials(model: Model, operator: Operator) -> Iterator[Array]:
    """Return exp of SOFTMAX's differences from -255 to 0, int32 in units of 2^-31.

    Ref: TFLite, kernels/internal/quantization_util.cc, PreprocessSoftmaxScaling and
    CalculateInputRadius.
    """
    if operator.kind != "SOFTMAX" or model.main.tensors[operator.inputs[0]].type not in BYTES:
        return
    quantization = model.main.tensors[operator.inputs[0]].quantization
    if quantization is None or len(quantization.scale) != 1:
        return
    bits = 31 - INTEGER_BITS
    beta = float(np.float32(operator.options.get("beta", 1.0)))
    real = min(beta * quantization.scale[0] * (1 << bits), float((1 << 31) - 1))
    (multiplier,), (exponent,) = multiplier_of(real)
    if exponent < 0:
        return
    radius = math.floor(((1 << INTEGER_BITS) - 1) * (1 << bits) / (1 << int(exponent)))
    steps = np.arange(1 - ENTRIES, 1, dtype=np.int64)
    inside = np.maximum(steps, -radius)
    scaled = fixed_point.scaled(inside, int(multiplier), int(exponent))
    # Numbers of five integer bits are twice those of four with the same bits.
    powers = fixed_point.exp_of_negative_doubled(scaled)
    yield np.where(steps >= -radius, powers, 0).astype(np.int32)


FIXED = {TensorType.INT8: (1 / 256, -128, 0.0), TensorType.INT16: (1 / 65536, -32768, 1e-3)}
"""Scale and zero point that the kernel asks for of its output, and how far the scale may be off.

Ref: TFLite Micro, kernels/softmax_common.cc, CalculateSoftmaxParams.
"""


def _has_fixed_scale(given: Tensor) -> bool:
    quantization, fixed = given.quantization, FIXED.get(given.type)
    if quantization is None or fixed is None or len(quantization.scale) != 1:
        return False
    scale, zero_point, error = fixed
    close = abs(quantization.scale[0] / scale - 1) <= error
    return close and quantization.zero_point[0] == zero_point


def softmax(model: Model, operator: Operator, values: Array) -> Array | None:
    """Return SOFTMAX of INT8 along the last axis; None for what is not this kind of it.

    Ref: TFLite, kernels/internal/reference/softmax.h, Softmax.
    """
    taken, given = (model.main.tensors[each[0]] for each in (operator.inputs, operator.outputs))
    table = next(exponentials(model, operator), None)
    if table is None or taken.type is not TensorType.INT8 or given.dtype is None:
        return None
    if not _has_fixed_scale(given):
        return None
    width = 8 * given.dtype.itemsize
    differences = values.astype(np.int64) - values.max(axis=-1, keepdims=True)
    powers = table.astype(np.int64)[differences + ENTRIES - 1]
    sums = fixed_point.divided(powers, 31 - SUM_BITS).sum(axis=-1, keepdims=True)
    zeros = 32 - np.frexp(sums.astype(np.float64))[1].astype(np.int64)
    fractions = (sums << zeros) - (1 << 31)
    inverse = fixed_point.raised(fixed_point.twice_reciprocal(fractions), 1)
    products = np.minimum((powers * inverse + (1 << 30)) >> 31, fixed_point.HIGH)
    bits = 31 - SUM_BITS - zeros + 31 - width
    rounded = (products + (np.int64(1) << (bits - 1))) >> bits
    half = 1 << (width - 1)
    return np.minimum(rounded - half, half - 1).astype(given.dtype)
