"""Rows and elements by index: computed ones of 32 bits, and constant ones.

Ref: TOSA 1.0, 2.11.1 GATHER, 2.11.2 SCATTER.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.frontends.arrangement.movement import concat, permuted, reshape, same_rank, sliced
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Value
from mizzen.ops import Builder


def taken(b: Builder, value: Value, axis: int, count: int, places: Value) -> Value:
    """Take places of any shape among `count` dimensions from `axis` on, which they replace.

    places  i32, numbered along the dimensions, the last one fastest
    """
    order, rest = _in_front(value, axis, count)
    turned = permuted(b, value, order)
    lifted = reshape(b, turned, (1, _size(value, axis, count), prod(rest)))
    flat = reshape(b, places, (1, places.type.elements))
    gathered = _gathered(b, lifted, flat)
    return _put_back(b, reshape(b, gathered, (*places.shape, *rest)), axis, places.type.rank)


def _gathered(b: Builder, lifted: Value, places: Value) -> Value:
    """Take rows; truth values, which GATHER does not have, as bytes."""
    if lifted.dtype is not DType.BOOL:
        return b("GATHER", lifted, places, quantization=lifted.quantization)
    gathered = b("GATHER", b("CAST", lifted, dtype=DType.INT8), places)
    return b("CAST", gathered, dtype=DType.BOOL)


def written(b: Builder, value: Value, axis: int, count: int, places: Value, values: Value) -> Value:
    """Return `value` with `values` at places among `count` dimensions from `axis` on.

    values  the shape of `value`, with that of `places` for the dimensions
    """
    order, rest = _in_front(value, axis, count)
    turned = permuted(b, value, order)
    lifted = reshape(b, turned, (1, _size(value, axis, count), prod(rest)))
    flat = reshape(b, places, (1, places.type.elements))
    new_order, _ = _in_front(values, axis, places.type.rank)
    new = reshape(b, permuted(b, values, new_order), (1, places.type.elements, prod(rest)))
    scattered = b("SCATTER", lifted, flat, new, quantization=value.quantization)
    return _put_back(b, reshape(b, scattered, turned.shape), axis, count)


def numbered(b: Builder, indices: Sequence[Value], sizes: Sequence[int]) -> Value:
    """Return the place, among all of some dimensions, that an index of each of them names."""
    place = within(b, indices[0], sizes[0])
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        scaled = b("MUL", *same_rank(b, place, _number(b, size)), b.constant([0], DType.INT8))
        place = b("ADD", *same_rank(b, scaled, within(b, index, size)))
    return place


def elements(b: Builder, index: Value, axis: int, shape: Sequence[int]) -> Value:
    """Return the places, among all elements of `shape`, of an index of `axis` in each element."""
    strides = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    base: npt.NDArray[np.int64] = np.zeros(index.shape, np.int64)
    for dim, places in enumerate(np.indices(index.shape)):
        base = base + (0 if dim == axis else places * strides[dim])
    stride = _number(b, strides[axis])
    scaled = b("MUL", *same_rank(b, within(b, index, shape[axis]), stride),
               b.constant([0], DType.INT8))  # fmt: skip
    return b("ADD", scaled, b.constant(base, DType.INT32))


def within(b: Builder, index: Value, size: int) -> Value:
    """Keep an index among `size` places: what lies beyond would read the memory of others."""
    if index.constant is not None:
        return index
    above = b("MAXIMUM", *same_rank(b, index, _number(b, 0)))
    return b("MINIMUM", *same_rank(b, above, _number(b, size - 1)))


def _number(b: Builder, value: int) -> Value:
    return b.constant([value], DType.INT32)


def _size(value: Value, axis: int, count: int) -> int:
    return prod(value.shape[axis : axis + count])


def _in_front(value: Value, axis: int, count: int) -> tuple[list[int], list[int]]:
    """Return the order with some dimensions first, and the extents of the others."""
    named = range(axis, axis + count)
    others = [dim for dim in range(value.type.rank) if dim not in named]
    return [*named, *others], [value.shape[dim] for dim in others]


def _put_back(b: Builder, value: Value, axis: int, count: int) -> Value:
    """Bring the first `count` dimensions after the `axis` that follow them."""
    back = [*range(count, count + axis), *range(count), *range(count + axis, value.type.rank)]
    return permuted(b, value, back)


MOST_RANGES = 128
"""The most ranges of neighbours that a lookup joins: more are faster on a CPU."""


def joined(b: Builder, value: Value, axis: int, indices: npt.NDArray[Any]) -> Value:
    """Take constant indices along an axis, as slices that are joined."""
    ranges = ranges_of(indices.reshape(-1).tolist())
    return concat(b, [sliced(b, value, axis, start, count) for start, count in ranges], axis)


def ranges_of(indices: Sequence[int]) -> list[tuple[int, int]]:
    """Return start and length of each range of neighbours, in order."""
    cuts = [place + 1 for place, (one, other) in enumerate(pairwise(indices)) if other != one + 1]
    if len(cuts) >= MOST_RANGES:
        raise RefusedError(
            f"its indices are {len(cuts) + 1} ranges of neighbours, and at most {MOST_RANGES} "
            "are joined on the NPU",
            "sort the indices, or reorder the weights before it",
        )
    bounds = [0, *cuts, len(indices)]
    return [(indices[start], end - start) for start, end in pairwise(bounds)]
