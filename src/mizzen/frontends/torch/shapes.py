"""Moving elements of the graph's tensors: shape, order, parts, images with channels last.

The quantisation goes along. Ref: TOSA 1.0, 2.10 data layout operators.
"""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import Value
from mizzen.ops import Builder

TO_CHANNELS_LAST = (0, 2, 3, 1)
TO_CHANNELS_FIRST = (0, 3, 1, 2)

LIST_SIZE = 64
"""Greatest number of tensors in a list. Ref: TOSA 1.0, 1.7 Levels, 8K, MAX_TENSOR_LIST_SIZE."""


def reshape(b: Builder, value: Value, shape: Sequence[int]) -> Value:
    """Add a RESHAPE unless the value has the shape."""
    if tuple(shape) == value.shape:
        return value
    return b("RESHAPE", value, b.shape(shape), quantization=value.quantization)


def lifted(b: Builder, value: Value, rank: int) -> Value:
    """Put dimensions of 1 in front up to a rank: TOSA broadcasts only equal ranks."""
    return reshape(b, value, (*(1,) * (rank - value.type.rank), *value.shape))


def same_rank(b: Builder, *values: Value) -> list[Value]:
    """Bring values to the highest rank among them."""
    rank = max(value.type.rank for value in values)
    return [lifted(b, value, rank) for value in values]


def transpose(b: Builder, value: Value, perms: Sequence[int]) -> Value:
    """Add a TRANSPOSE."""
    return b("TRANSPOSE", value, perms=tuple(perms), quantization=value.quantization)


def permuted(b: Builder, value: Value, perms: Sequence[int]) -> Value:
    """Bring dimensions into another order, unless they are in it."""
    return value if list(perms) == sorted(perms) else transpose(b, value, perms)


def slice_(b: Builder, value: Value, axis: int, start: int, size: int) -> Value:
    """Add a SLICE along one axis, unless it takes everything."""
    if start == 0 and size == value.shape[axis]:
        return value
    starts = [start if index == axis else 0 for index in range(value.type.rank)]
    sizes = [size if index == axis else extent for index, extent in enumerate(value.shape)]
    quantization = value.quantization
    return b("SLICE", value, b.shape(starts), b.shape(sizes), quantization=quantization)


def concat(b: Builder, parts: Sequence[Value], axis: int) -> Value:
    """Put values one behind the other, in lists of lists where they are many."""
    if len(parts) == 1:
        return parts[0]
    if len(parts) <= LIST_SIZE:
        return b("CONCAT", *parts, axis=axis, quantization=parts[0].quantization)
    starts = range(0, len(parts), LIST_SIZE)
    return concat(b, [concat(b, parts[start : start + LIST_SIZE], axis) for start in starts], axis)


def tiled(b: Builder, value: Value, shape: Sequence[int]) -> Value:
    """Repeat a value to a shape whose sizes are multiples."""
    value = lifted(b, value, len(shape))
    multiples = [whole // part for whole, part in zip(shape, value.shape, strict=True)]
    if all(multiple == 1 for multiple in multiples):
        return value
    return b("TILE", value, b.shape(multiples), quantization=value.quantization)


def padded(b: Builder, value: Value, border: Sequence[int], filling: Value) -> Value:
    """Add a PAD, first dimension first, unless there is no border."""
    if not any(border):
        return value
    return b("PAD", value, b.shape(border), filling, quantization=value.quantization)


def image(b: Builder, value: Value, spatial: int) -> Value:
    """Return [N,C,H,W], [C,H,W], [N,C,W] or [C,W] as [N,H,W,C]; `spatial` is 2 or 1."""
    shape = value.shape if value.type.rank == spatial + 2 else (1, *value.shape)
    if spatial == 1:
        shape = (*shape[:2], 1, shape[2])
    return transpose(b, reshape(b, value, shape), TO_CHANNELS_LAST)


def channels_first(b: Builder, value: Value, shape: Sequence[int]) -> Value:
    """Return [N,H,W,C] with channels first, in a shape that leaves out dimensions of 1."""
    return reshape(b, transpose(b, value, TO_CHANNELS_FIRST), shape)
