"""What the activation functions compute. Ref: TOSA 1.0, 2.4."""

from __future__ import annotations

from math import erf

import numpy as np

from mizzen.graph import Array, NanMode
from mizzen.ops import activation as tosa
from mizzen.reference.kernel import Kernels, real, rounded


def clamp(operation: tosa.Clamp, values: Array) -> Array:
    """Return the nearest value within the bounds; a NaN, or `min_val`, as `nan_mode` says."""
    low, high = operation.min_val, operation.max_val
    dtype = operation.result.dtype
    if not dtype.is_float:
        return np.clip(values, low, high).astype(values.dtype, copy=False)
    bounds = rounded(np.array([low, high], np.float64), dtype)
    result = np.clip(values, bounds[0], bounds[1])
    if operation.nan_mode is NanMode.IGNORE:
        result = np.where(np.isnan(values), bounds[0], result)
    return result


def _erf(values: Array) -> Array:
    return np.fromiter(map(erf, values.reshape(-1).tolist()), np.float64).reshape(values.shape)


def _sigmoid(values: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-values))


KERNELS: Kernels = {
    tosa.Clamp: clamp,
    tosa.Erf: real(_erf),
    tosa.Sigmoid: real(_sigmoid),
    tosa.Tanh: real(np.tanh),
}
