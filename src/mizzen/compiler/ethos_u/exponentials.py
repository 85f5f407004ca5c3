"""The exponentials that SOFTMAX of bytes looks up, from TFLite's definition of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.flatbuffer.tflite import TensorType
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.lowering import fixed_point
from mizzen.frontends.tflite.lowering.requantization import multiplier_of

Array = npt.NDArray[Any]

ENTRIES = 256
INTEGER_BITS = 5
"""Of the differences to a row's greatest value that SOFTMAX takes exponentials of.
Ref: TFLite, kernels/internal/reference/softmax.h, kScaledDiffIntegerBits."""

BYTES = (TensorType.INT8, TensorType.UINT8)


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
