"""What the data layout operators compute. Ref: TOSA 1.0, 2.10."""

from __future__ import annotations

import numpy as np

from mizzen.graph import Array, Operation
from mizzen.ops import data_layout as tosa
from mizzen.reference.kernel import Kernels


def concat(operation: tosa.Concat, *parts: Array) -> Array:
    """Put the operands behind each other along the axis."""
    return np.concatenate(parts, axis=operation.axis)


def pad(operation: Operation, values: Array, padding: Array, constant: Array) -> Array:
    """Surround the values with the constant."""
    pairs = [(int(before), int(after)) for before, after in padding.reshape(-1, 2)]
    return np.pad(values, pairs, constant_values=constant[0])


def reshape(operation: Operation, values: Array, shape: Array) -> Array:
    """Return the same elements in another shape."""
    return values.reshape(operation.result.shape)


def reverse(operation: tosa.Reverse, values: Array) -> Array:
    """Turn the order along the axis around."""
    return np.flip(values, axis=operation.axis)


def slice_(operation: Operation, values: Array, start: Array, size: Array) -> Array:
    """Return a part."""
    pairs = zip(start.tolist(), size.tolist(), strict=True)
    return values[tuple(slice(first, first + extent) for first, extent in pairs)]


def tile(operation: Operation, values: Array, multiples: Array) -> Array:
    """Repeat the values."""
    return np.tile(values, multiples.tolist())


def transpose(operation: tosa.Transpose, values: Array) -> Array:
    """Permute the dimensions."""
    return np.transpose(values, operation.perms)


KERNELS: Kernels = {
    tosa.Concat: concat,
    tosa.Pad: pad,
    tosa.Reshape: reshape,
    tosa.Reverse: reverse,
    tosa.Slice: slice_,
    tosa.Tile: tile,
    tosa.Transpose: transpose,
}
