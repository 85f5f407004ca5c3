"""Elements looked up, or written, at constant indices and in windows: slices, joined.

Indices that are computed have 64 bits in PyTorch, which no NPU takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.int_lowering.int_context import IntCall, Integers, Term
from mizzen.frontends.torch.movement import concat, permuted, reshape, sliced, tiled
from mizzen.frontends.torch.program import Array
from mizzen.graph import Value
from mizzen.ops import Builder

MOST_RANGES = 128
"""The most ranges of neighbours that a lookup joins: more are faster in PyTorch."""


def index_select(call: IntCall) -> Term:
    """Take constant indices along one dimension."""
    axis = call.axis()
    found = _constant(call, call["index"], call.shape_of("self")[axis])
    return call.moved(lambda value: _taken(call.b, value, axis, found))


def index(call: IntCall) -> Term:
    """Take constant indices along neighbouring dimensions, whose places theirs then are."""
    given = [(axis, node) for axis, node in enumerate(call["indices"]) if node is not None]
    first, last = given[0][0], given[-1][0]
    call.need(last - first == len(given) - 1, "its indices are of dimensions apart")
    shape = call.shape_of("self")
    sizes = shape[first : last + 1]
    parts = [_constant(call, node, shape[axis]) for axis, node in given]
    flat: Array = np.asarray(np.ravel_multi_index(tuple(np.broadcast_arrays(*parts)), sizes))

    def move(value: Value) -> Value:
        rows = reshape(call.b, value, (*shape[:first], prod(sizes), *shape[last + 1 :]))
        return reshape(call.b, _taken(call.b, rows, first, flat), call.shape)

    return call.moved(move)


def gather(call: IntCall) -> Term:
    """Take one element for each constant index."""
    axis, shape = call.axis(), call.shape_of("self")
    places = list(np.indices(call.shape))
    places[axis] = _constant(call, call["index"], shape[axis])
    return _picked(call, np.asarray(np.ravel_multi_index(tuple(places), shape)))


def diagonal(call: IntCall) -> Term:
    """Take the elements whose indices in two dimensions are equal, or an offset apart."""
    shape = call.shape_of("self")
    places = np.arange(prod(shape)).reshape(shape)
    return _picked(call, places.diagonal(int(call["offset"]), int(call["dim1"]), int(call["dim2"])))


def as_strided(call: IntCall) -> Term:
    """Take elements by their places in memory, where those are in order."""
    given = call["self"].meta["val"]
    whole = given.is_contiguous() and given.storage_offset() == 0
    call.need(whole, "its input is in another order in memory, or a part of another tensor")
    places = np.full(call.shape, int(call["storage_offset"] or 0))
    for index, stride in zip(np.indices(call.shape), call["stride"], strict=True):
        places = places + index * int(stride)
    return _picked(call, places)


def unfold(call: IntCall) -> Term:
    """Take windows of one dimension, which overlap or not; what is in them comes last."""
    axis = int(call["dimension"]) % len(call.shape_of("self"))
    size, step, count = int(call["size"]), int(call["step"]), call.shape[axis]
    places = np.arange(count)[:, None] * step + np.arange(size)
    rest = call.shape_of("self")
    cut = (*rest[:axis], count, size, *rest[axis + 1 :])
    order = [dim for dim in range(len(cut)) if dim != axis + 1]

    def move(value: Value) -> Value:
        taken = reshape(call.b, _taken(call.b, value, axis, places), cut)
        return permuted(call.b, taken, [*order, axis + 1])

    return call.moved(move)


def _picked(call: IntCall, places: Array) -> Term:
    """Take elements by their places among all."""

    def move(value: Value) -> Value:
        row = reshape(call.b, value, (value.type.elements,))
        return reshape(call.b, _taken(call.b, row, 0, places), call.shape)

    return call.moved(move)


def index_put(call: IntCall) -> Term:
    """Write a tensor at constant indices of one dimension."""
    given = [(axis, node) for axis, node in enumerate(call["indices"]) if node is not None]
    call.need(len(given) == 1, f"it has indices in {len(given)} dimensions")
    call.need(not call["accumulate"], "it adds to what is there", "add the tensors")
    axis, node = given[0]
    return _written(call, axis, node, call["values"])


def index_copy(call: IntCall) -> Term:
    """Write a tensor at constant indices of one dimension."""
    return _written(call, call.axis(), call["index"], call["source"])


def _constant(call: IntCall, node: Any, size: int) -> Array:
    """Return constant indices, counted from the front."""
    term = call.term_of(node)
    if not isinstance(term, Integers) or term.array.dtype == np.bool_:
        raise RefusedError(
            "its indices have 64 bits, which no NPU takes",
            "look up on the host, and give the model the rows; constant indices are slices",
        )
    return np.asarray(term.array % size)


def _taken(b: Builder, value: Value, axis: int, indices: Array) -> Value:
    ranges = _ranges(indices.reshape(-1).tolist())
    return concat(b, [sliced(b, value, axis, start, count) for start, count in ranges], axis)


def _ranges(indices: Sequence[int]) -> list[tuple[int, int]]:
    """Return start and length of each range of neighbours, in order."""
    cuts = [place + 1 for place, (one, other) in enumerate(pairwise(indices)) if other != one + 1]
    if len(cuts) >= MOST_RANGES:
        raise RefusedError(
            f"its indices are {len(cuts) + 1} ranges of neighbours, and at most {MOST_RANGES} "
            "are joined on the NPU",
            "sort the indices, or reorder the weights in front of it",
        )
    bounds = [0, *cuts, len(indices)]
    return [(indices[start], end - start) for start, end in pairwise(bounds)]


def _written(call: IntCall, axis: int, node: Any, values: Any) -> Term:
    b, shape = call.b, list(call.shape)
    indices: list[int] = _constant(call, node, shape[axis]).reshape(-1).tolist()
    size = shape[axis]
    written = {place: size + number for number, place in enumerate(indices)}
    ranges = _ranges([written.get(place, place) for place in range(size)])
    rows = [*shape[:axis], len(indices), *shape[axis + 1 :]]

    def build(value: Value, other: Value) -> Value:
        both = concat(b, [value, tiled(b, other, rows)], axis)
        return concat(b, [sliced(b, both, axis, start, count) for start, count in ranges], axis)

    return call.alike([call["self"], values], build)
