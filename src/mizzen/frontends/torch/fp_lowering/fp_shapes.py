"""Moving elements: parts, joints, images with channels last."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.frontends.torch.int_lowering.int_convolution import (
    TO_CHANNELS_FIRST,
    TO_CHANNELS_LAST,
    reshape,
    slice_,
    transpose,
)
from mizzen.graph import Value
from mizzen.ops import Builder

LIST_SIZE = 64
"""Greatest number of tensors in a list. Ref: TOSA 1.0, 1.7 Levels, 8K, MAX_TENSOR_LIST_SIZE."""


def concat(b: Builder, parts: Sequence[Value], axis: int) -> Value:
    """Put values one behind the other, in lists of lists where they are many."""
    if len(parts) == 1:
        return parts[0]
    if len(parts) <= LIST_SIZE:
        return b("CONCAT", *parts, axis=axis)
    starts = range(0, len(parts), LIST_SIZE)
    return concat(b, [concat(b, parts[start : start + LIST_SIZE], axis) for start in starts], axis)


def permuted(b: Builder, value: Value, perms: Sequence[int]) -> Value:
    """Bring dimensions into another order, unless they are in it."""
    return value if list(perms) == sorted(perms) else transpose(b, value, perms)


def image(b: Builder, value: Value, spatial: int) -> Value:
    """Return [N,C,H,W], [C,H,W], [N,C,W] or [C,W] as [N,H,W,C]; `spatial` is 2 or 1."""
    shape = value.shape if value.type.rank == spatial + 2 else (1, *value.shape)
    if spatial == 1:
        shape = (*shape[:2], 1, shape[2])
    return transpose(b, reshape(b, value, shape), TO_CHANNELS_LAST)


def channels_first(b: Builder, value: Value, shape: Sequence[int]) -> Value:
    """Return [N,H,W,C] with channels first, in a shape that leaves out dimensions of 1."""
    return reshape(b, transpose(b, value, TO_CHANNELS_FIRST), shape)


__all__ = ["channels_first", "concat", "image", "permuted", "reshape", "slice_", "transpose"]
