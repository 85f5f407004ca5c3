"""What TOSA's integers have no form of, and NumPy computes with TensorFlow Lite Micro's bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.cpu.softmax import softmax
from mizzen.frontends.tflite import Model, Operator

Array = npt.NDArray[Any]
Float = np.float32
Kernel = Callable[[Model, Operator, Array], Array | None]
"""Computes an operator's only result of its first input; None where it is not of this kind."""


def _quantize(model: Model, operator: Operator, values: Array) -> Array | None:
    """Divide real numbers by one scale, round half away from zero, and saturate.

    Ref: TFLite, kernels/internal/reference/quantize.h, AffineQuantize.
    """
    given = model.main.tensors[operator.outputs[0]]
    quantization, dtype = given.quantization, given.dtype
    if values.dtype != Float or quantization is None or dtype is None or dtype.kind not in "iu":
        return None
    if len(quantization.scale) != 1:
        return None
    quotients = values / Float(quantization.scale[0])
    whole = np.trunc(quotients)
    rounded = whole + np.sign(quotients) * (np.abs(quotients - whole) >= Float(0.5))
    limits = np.iinfo(dtype.name)
    moved = rounded.astype(np.float64) + quantization.zero_point[0]
    return np.clip(moved, limits.min, limits.max).astype(dtype)


def _dequantize(model: Model, operator: Operator, values: Array) -> Array | None:
    """Multiply integers by one scale, in double precision, and round once.

    Ref: TFLite, kernels/internal/reference/dequantize.h.
    """
    quantization = model.main.tensors[operator.inputs[0]].quantization
    if values.dtype.kind not in "iu" or quantization is None or len(quantization.scale) != 1:
        return None
    return (quantization.scale[0] * (values.astype(np.int64) - quantization.zero_point[0])).astype(
        Float
    )


KERNELS: Mapping[str, Kernel] = {
    "DEQUANTIZE": _dequantize,
    "QUANTIZE": _quantize,
    "SOFTMAX": softmax,
}


def computed(model: Model, operator: Operator, values: Array) -> Array | None:
    """Return the result of an operator, if it is computed here."""
    kernel = KERNELS.get(operator.kind)
    return None if kernel is None else kernel(model, operator, values)


def is_computed(model: Model, operator: Operator) -> bool:
    """Whether an operator is computed here."""
    taken = model.main.present(operator.inputs)
    if not taken or operator.kind not in KERNELS or taken[0].dtype is None:
        return False
    return computed(model, operator, np.zeros((1, 1), taken[0].dtype)) is not None
