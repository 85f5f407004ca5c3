"""What the data layout, scatter and gather operators compute. Ref: TOSA 1.0, 2.10, 2.11."""

from __future__ import annotations

import numpy as np

from mizzen.graph import Array, Operation
from mizzen.ops import data_layout as tosa
from mizzen.reference.kernel import Kernels, broken


def concat(operation: tosa.Concat, *parts: Array) -> Array:
    """Put the operands one after the other along the axis."""
    return np.concatenate(parts, axis=operation.axis - operation.result.type.rank)


def pad(operation: Operation, values: Array, padding: Array, constant: Array) -> Array:
    """Surround the values with the constant."""
    pairs = [(int(before), int(after)) for before, after in padding.reshape(-1, 2)]
    pairs[:0] = [(0, 0)] * (values.ndim - len(pairs))
    return np.pad(values, pairs, constant_values=constant[0])


def reshape(operation: tosa.Reshape, values: Array, shape: Array) -> Array:
    """Return the same elements in another shape."""
    leading = values.shape[: values.ndim - operation.input1.type.rank]
    return values.reshape((*leading, *operation.result.shape))


def reverse(operation: tosa.Reverse, values: Array) -> Array:
    """Turn the order along the axis around."""
    return np.flip(values, axis=operation.axis - operation.result.type.rank)


def slice_(operation: Operation, values: Array, start: Array, size: Array) -> Array:
    """Return a part."""
    pairs = zip(start.tolist(), size.tolist(), strict=True)
    return values[(..., *(slice(first, first + extent) for first, extent in pairs))]


def tile(operation: Operation, values: Array, multiples: Array) -> Array:
    """Repeat the values."""
    return np.tile(values, multiples.tolist())


def transpose(operation: tosa.Transpose, values: Array) -> Array:
    """Permute the dimensions."""
    leading = values.ndim - len(operation.perms)
    return np.transpose(values, (*range(leading), *(leading + axis for axis in operation.perms)))


def gather(operation: Operation, values: Array, indices: Array) -> Array:
    """[...,N,K,C], indices [...,N,W] -> [...,N,W,C]."""
    _within(operation, indices, values.shape[-2])
    return np.take_along_axis(values, indices[..., None], axis=-2)


def scatter(operation: Operation, old: Array, indices: Array, new: Array) -> Array:
    """[...,N,K,C], indices [...,N,W], [...,N,W,C] -> the first's shape; no place twice."""
    _within(operation, indices, old.shape[-2])
    ordered = np.sort(indices, axis=-1)
    twice = ordered[..., 1:] == ordered[..., :-1]
    if twice.any():
        came = int(ordered[..., 1:][twice][0])
        raise broken(operation, f"indices must differ, and {came} is there twice")
    result = old.copy()
    np.put_along_axis(result, indices[..., None], new, axis=-2)
    return result


def _within(operation: Operation, indices: Array, size: int) -> None:
    if indices.min() < 0 or indices.max() >= size:
        came = int(indices.min() if indices.min() < 0 else indices.max())
        raise broken(operation, f"indices must be from 0 to {size - 1}, and one is {came}")


KERNELS: Kernels = {
    tosa.Concat: concat,
    tosa.Pad: pad,
    tosa.Reshape: reshape,
    tosa.Reverse: reverse,
    tosa.Slice: slice_,
    tosa.Tile: tile,
    tosa.Transpose: transpose,
    tosa.Gather: gather,
    tosa.Scatter: scatter,
}
