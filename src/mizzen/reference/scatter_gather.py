"""What the scatter and gather operators compute. Ref: TOSA 1.0, 2.11."""

from __future__ import annotations

import numpy as np

from mizzen.graph import Array, Operation
from mizzen.ops import scatter_gather as tosa
from mizzen.reference.kernel import Kernels, broken


def gather(operation: Operation, values: Array, indices: Array) -> Array:
    """[N,K,C], indices [N,W] -> [N,W,C]."""
    _within(operation, indices, values.shape[1])
    return np.take_along_axis(values, indices[:, :, None], axis=1)


def scatter(operation: Operation, old: Array, indices: Array, new: Array) -> Array:
    """[N,K,C], indices [N,W], [N,W,C] -> [N,K,C]; each place is written once at most."""
    _within(operation, indices, old.shape[1])
    ordered = np.sort(indices, axis=1)
    twice = ordered[:, 1:] == ordered[:, :-1]
    if twice.any():
        came = int(ordered[:, 1:][twice][0])
        raise broken(operation, f"indices must differ, and {came} is there twice")
    result = old.copy()
    np.put_along_axis(result, indices[:, :, None], new, axis=1)
    return result


def _within(operation: Operation, indices: Array, size: int) -> None:
    if indices.min() < 0 or indices.max() >= size:
        came = int(indices.min() if indices.min() < 0 else indices.max())
        raise broken(operation, f"indices must be from 0 to {size - 1}, and one is {came}")


KERNELS: Kernels = {tosa.Gather: gather, tosa.Scatter: scatter}
