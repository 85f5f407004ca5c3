"""Elements looked up, or written: at constant indices, and in windows, slices that are joined.

By indices that are computed it is GATHER and SCATTER.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.lookup import (
    elements,
    joined,
    numbered,
    ranges_of,
    taken,
    written,
)
from mizzen.frontends.arrangement.movement import concat, lifted, permuted, reshape, sliced, tiled
from mizzen.frontends.quantized.terms import Integers, Term, Wide
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.narrowing import (
    SOURCE,
    Bound,
    found_below,
    is_narrowing,
    is_widening,
    moved_from,
)
from mizzen.frontends.torch.program import Array
from mizzen.graph import DType, Value


def index_select(call: IntCall) -> Term:
    """Take constant indices along one dimension."""
    axis, shape = call.axis(), call.shape_of("self")
    indices = _constant(call, call["index"], shape[axis])
    if indices is None:
        return _looked_up(call, axis, shape[axis : axis + 1], [call["index"]])
    return call.moved(lambda value: joined(call.b, value, axis, indices))


def embedding(call: IntCall) -> Term:
    """Look up rows of a table."""
    return _looked_up(call, 0, call.shape_of("weight")[:1], [call["indices"]])


def _looked_up(call: IntCall, axis: int, sizes: Sequence[int], nodes: Sequence[Any]) -> Term:
    """Take computed indices along neighbouring dimensions, which those of the indices replace."""
    b = call.b
    places = numbered(b, _indices(call, nodes, sizes), sizes)
    return call.moved(
        lambda value: reshape(b, taken(b, value, axis, len(sizes), places), call.shape)
    )


def index(call: IntCall) -> Term:
    """Take constant indices along neighbouring dimensions, whose places theirs then are."""
    given = [(axis, node) for axis, node in enumerate(call["indices"]) if node is not None]
    first, last = given[0][0], given[-1][0]
    call.need(last - first == len(given) - 1, "its indices are of dimensions apart")
    shape = call.shape_of("self")
    sizes = shape[first : last + 1]
    constants = [_constant(call, node, shape[axis]) for axis, node in given]
    parts = [part for part in constants if part is not None]
    if len(parts) < len(constants):
        return _looked_up(call, first, sizes, [node for _, node in given])
    flat: Array = np.asarray(np.ravel_multi_index(tuple(np.broadcast_arrays(*parts)), sizes))

    def move(value: Value) -> Value:
        flattened = reshape(call.b, value, (*shape[:first], prod(sizes), *shape[last + 1 :]))
        return reshape(call.b, joined(call.b, flattened, first, flat), call.shape)

    return call.moved(move)


def gather(call: IntCall) -> Term:
    """Take one element for each index."""
    b, axis, shape = call.b, call.axis(), call.shape_of("self")
    indices = _constant(call, call["index"], shape[axis])
    if indices is None:
        wanted = elements(b, _index(call, call["index"], shape[axis]), axis, shape)

        def move(value: Value) -> Value:
            return taken(b, reshape(b, value, (value.type.elements,)), 0, 1, wanted)

        return call.moved(move)
    places = list(np.indices(call.shape))
    places[axis] = indices
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
        taken = reshape(call.b, joined(call.b, value, axis, places), cut)
        return permuted(call.b, taken, [*order, axis + 1])

    return call.moved(move)


def _picked(call: IntCall, places: Array) -> Term:
    """Take elements by their places among all."""

    def move(value: Value) -> Value:
        flat = reshape(call.b, value, (value.type.elements,))
        return reshape(call.b, joined(call.b, flat, 0, places), call.shape)

    return call.moved(move)


def index_put(call: IntCall) -> Term:
    """Write a tensor at indices of neighbouring dimensions, or wherever a mask is true."""
    given = [(axis, node) for axis, node in enumerate(call["indices"]) if node is not None]
    call.need(not call["accumulate"], "it adds to what is there", "add the tensors")
    (first, node), last = given[0], given[-1][0]
    if len(given) == 1 and str(node.meta["val"].dtype) == "torch.bool":
        return _chosen(call, first, node)
    if last - first != len(given) - 1:
        return _put_apart(call, [axis for axis, _ in given])
    if len(given) == 1 and _constant(call, node, call.shape[first]) is not None:
        return _written(call, first, node, call["values"])
    nodes = [node for _, node in given]
    sizes = call.shape[first : last + 1]
    return _put(call, first, sizes, nodes, call["values"])


def _put_apart(call: IntCall, axes: list[int]) -> Term:
    """Write a tensor at indices of dimensions apart, which come first in what is written."""
    b = call.b
    order = [*axes, *(dim for dim in range(len(call.shape)) if dim not in axes)]
    shape = [call.shape[dim] for dim in order]
    count = len(axes)
    indices = _indices(call, [call["indices"][axis] for axis in axes], shape[:count])
    places = numbered(b, indices, shape[:count])
    extents = [*places.shape, *shape[count:]]

    def build(value: Value, other: Value) -> Value:
        new = written(b, permuted(b, value, order), 0, count, places, tiled(b, other, extents))
        return permuted(b, new, [order.index(dim) for dim in range(len(order))])

    return call.alike([call["self"], call["values"]], build)


def _chosen(call: IntCall, axis: int, mask: Any) -> Term:
    """Write one number, or a tensor of ones, wherever a mask of some dimensions is true."""
    shape: list[int] = [*mask.meta["val"].shape]
    ones = call["values"].meta["val"].numel() == 1
    call.need(ones, "what it writes depends on how many elements a mask has")
    truths = reshape(
        call.b,
        call.truth_of(mask),
        (*(1,) * axis, *shape, *(1,) * (len(call.shape) - axis - len(shape))),
    )

    def build(value: Value, other: Value) -> Value:
        return call.b("SELECT", truths, lifted(call.b, reshape(call.b, other, (1,)),
                                               len(call.shape)), value)  # fmt: skip

    return call.alike([call["self"], call["values"]], build)


def _put(call: IntCall, axis: int, sizes: Sequence[int], nodes: Sequence[Any], values: Any) -> Term:
    """Write a tensor at computed indices of neighbouring dimensions, each once."""
    b = call.b
    places = numbered(b, _indices(call, nodes, sizes), sizes)
    shape = [*call.shape[:axis], *places.shape, *call.shape[axis + len(sizes) :]]

    def build(value: Value, other: Value) -> Value:
        return written(b, value, axis, len(sizes), places, tiled(b, other, shape))

    return call.alike([call["self"], values], build)


def index_copy(call: IntCall) -> Term:
    """Write a tensor at indices of one dimension."""
    axis, node = call.axis(), call["index"]
    if _constant(call, node, call.shape[axis]) is None:
        return _put(call, axis, call.shape[axis : axis + 1], [node], call["source"])
    return _written(call, axis, node, call["source"])


def _constant(call: IntCall, node: Any, size: int) -> Array | None:
    """Return constant indices, counted from the front; None for those that are computed."""
    term = call.term_of(node)
    if not isinstance(term, Integers):
        return None
    call.need(term.array.dtype != np.bool_, "its indices are a mask", "choose by torch.where")
    return np.asarray(term.array % size)


def _indices(call: IntCall, nodes: Sequence[Any], sizes: Sequence[int]) -> list[Value]:
    return [_index(call, node, size) for node, size in zip(nodes, sizes, strict=True)]


def _index(call: IntCall, node: Any, size: int) -> Value:
    """Return indices of 32 bits that lie among `size` places, which the NPU does not check."""
    match call.term_of(node):
        case Wide(value) if _is_within(node, size):
            return value
        case Integers(array) if array.dtype != np.bool_:
            return call.b.constant(array % size, DType.INT32)
        case _:
            raise RefusedError(
                "nobody has checked that its indices are in range, and the NPU does not",
                "give the model indices of 64 bits, one tensor for each dimension",
            )


def _is_within(node: Any, size: int) -> bool:
    """Whether the host checks an index for `size` places, or what finds it has no more."""
    source = moved_from(node)
    short: Any = source.args[0] if is_widening(source) else None
    if short is None or not is_narrowing(short):
        return False
    bound: Bound | None = short.meta.get(SOURCE)
    if bound is None:
        return found_below(short.args[0]) <= size
    return bound.size == size or (bound.size < size and not bound.counts_back)


def _written(call: IntCall, axis: int, node: Any, values: Any) -> Term:
    b, shape = call.b, list(call.shape)
    array = _constant(call, node, shape[axis])
    assert array is not None
    indices: list[int] = array.reshape(-1).tolist()
    size = shape[axis]
    written = {place: size + number for number, place in enumerate(indices)}
    ranges = ranges_of([written.get(place, place) for place in range(size)])
    extents = [*shape[:axis], len(indices), *shape[axis + 1 :]]

    def build(value: Value, other: Value) -> Value:
        both = concat(b, [value, tiled(b, other, extents)], axis)
        return concat(b, [sliced(b, both, axis, start, count) for start, count in ranges], axis)

    return call.alike([call["self"], values], build)
