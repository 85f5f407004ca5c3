"""What the reduction operators compute. Ref: TOSA 1.0, 2.9."""

from __future__ import annotations

import numpy as np

from mizzen.graph import Array, NanMode
from mizzen.ops import reduction as tosa
from mizzen.reference.kernel import Kernels, fitted, rounded


def reduce_all(operation: tosa.Reduction, values: Array) -> Array:
    """Say whether all along the axis hold."""
    return np.all(values, axis=_axis(operation), keepdims=True)


def reduce_any(operation: tosa.Reduction, values: Array) -> Array:
    """Say whether any along the axis holds."""
    return np.any(values, axis=_axis(operation), keepdims=True)


def reduce_max(operation: tosa.ReduceExtremum, values: Array) -> Array:
    """Return the greatest along the axis; of a NaN and a number, what `nan_mode` says."""
    ignore = operation.nan_mode is NanMode.IGNORE
    compare = np.fmax if ignore else np.maximum
    return compare.reduce(values, axis=_axis(operation), keepdims=True)


def reduce_min(operation: tosa.ReduceExtremum, values: Array) -> Array:
    """Return the least along the axis; of a NaN and a number, what `nan_mode` says."""
    ignore = operation.nan_mode is NanMode.IGNORE
    compare = np.fmin if ignore else np.minimum
    return compare.reduce(values, axis=_axis(operation), keepdims=True)


def reduce_product(operation: tosa.Reduction, values: Array) -> Array:
    """Multiply along the axis."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        product = np.prod(values.astype(np.float64), axis=_axis(operation), keepdims=True)
    return rounded(product, operation.result.dtype)


def reduce_sum(operation: tosa.Reduction, values: Array) -> Array:
    """Add along the axis; no sum on the way may overflow either."""
    axis, dtype = _axis(operation), operation.result.dtype
    if dtype.is_float:
        with np.errstate(invalid="ignore"):
            total = np.add.reduce(values.astype(np.float64), axis=axis, keepdims=True)
        return rounded(total, dtype)
    whole = values.astype(np.int64)
    if np.abs(whole).sum(axis=axis).max() > np.iinfo(np.int32).max:
        fitted(operation, np.cumsum(whole, axis=axis), dtype)
    return whole.sum(axis=axis, keepdims=True).astype(dtype.numpy)


def _axis(operation: tosa.Reduction) -> int:
    """Return the axis as counted from the last, so that others may be in front."""
    return operation.axis - operation.result.type.rank


KERNELS: Kernels = {
    tosa.ReduceAll: reduce_all,
    tosa.ReduceAny: reduce_any,
    tosa.ReduceMax: reduce_max,
    tosa.ReduceMin: reduce_min,
    tosa.ReduceProduct: reduce_product,
    tosa.ReduceSum: reduce_sum,
}
