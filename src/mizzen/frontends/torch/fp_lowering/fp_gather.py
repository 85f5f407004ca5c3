"""Rows and elements by index. Ref: TOSA 1.0, 2.11.1 GATHER.

Indices are integers of 32 bits in the graph, whatever they are in PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.lookup import numbered, taken, written
from mizzen.frontends.arrangement.movement import permuted, reshape, tiled
from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_lower import FpCall
from mizzen.graph import DType, Value
from mizzen.ops import Builder


def embedding(call: FpCall) -> Value:
    """Look up rows of a table."""
    return _rows(call, call.value("weight"), call.value("indices"), 0)


def index_select(call: FpCall) -> Value:
    """Take indices along one dimension."""
    return _rows(call, call.value("self"), call.value("index"), call.axis())


def index(call: FpCall) -> Value:
    """Take indices along neighbouring dimensions, which theirs replace."""
    axis, count, places = _places(call)
    return reshape(call.b, taken(call.b, call.value("self"), axis, count, places), call.shape)


def index_put(call: FpCall) -> Value:
    """Write a tensor at indices of neighbouring dimensions, each once."""
    call.need(not call["accumulate"], "it adds to what is there", "add the tensors")
    axis, count, places = _places(call)
    return _put(call, axis, count, places, call["values"])


def index_copy(call: FpCall) -> Value:
    """Write a tensor at indices of one dimension."""
    axis = call.axis()
    indices = a.cast(call.b, call.value("index"), DType.INT32)
    places = numbered(call.b, [reshape(call.b, indices, (indices.type.elements,))],
                      call.shape[axis : axis + 1])  # fmt: skip
    return _put(call, axis, 1, places, call["source"])


def _places(call: FpCall) -> tuple[int, int, Value]:
    """Return the first indexed dimension, how many there are, and places among them."""
    b, shape = call.b, call.shape_of("self")
    given = [(axis, node) for axis, node in enumerate(call["indices"]) if node is not None]
    first, last = given[0][0], given[-1][0]
    call.need(last - first == len(given) - 1, "its indices are of dimensions apart")
    for _, node in given:
        meta = str(node.meta["val"].dtype)
        call.need(meta != "torch.bool", "its shape depends on data", "use torch.where")
    sizes = shape[first : last + 1]
    indices = [
        a.cast(b, _not_negative(b, call.context.value(node), shape[axis]), DType.INT32)
        for axis, node in given
    ]
    return first, len(given), numbered(b, indices, sizes)


def _put(call: FpCall, axis: int, count: int, places: Value, values: Any) -> Value:
    shape = [*call.shape[:axis], *places.shape, *call.shape[axis + count :]]

    def build(value: Value, other: Value) -> Value:
        return written(call.b, value, axis, count, places, tiled(call.b, other, shape))

    return call.alike([call["self"], values], build)


def _not_negative(b: Builder, index: Value, size: int) -> Value:
    """Count indices from the front."""
    if index.constant is not None:
        return b.constant(np.where(index.constant < 0, index.constant + size, index.constant),
                          index.dtype)  # fmt: skip
    below = b("GREATER", *a.matched(b, 0, index))
    return a.select(b, below, a.add(b, index, size), index, index.dtype)


def _rows(call: FpCall, x: Value, index: Value, axis: int) -> Value:
    """Take indices of any shape along a dimension; their dimensions take its place."""
    b = call.b
    order = [axis, *(dim for dim in range(x.type.rank) if dim != axis)]
    turned = permuted(b, x, order)
    count, rest = x.shape[axis], [x.shape[dim] for dim in order[1:]]
    table = reshape(b, turned, (1, count, prod(rest)))
    flat = reshape(b, a.cast(b, index, DType.INT32), (1, index.type.elements))
    value = reshape(b, b("GATHER", table, flat), (*index.shape, *rest))
    places = index.type.rank
    back = [*range(places, places + axis), *range(places), *range(places + axis, value.type.rank)]
    return reshape(b, permuted(b, value, back), call.shape)


def gather(call: FpCall) -> Value:
    """Take one element for each index: [..., J, ...] of [..., K, ...]."""
    b, x, index, axis = call.b, call.value("self"), call.value("index"), call.axis()
    strides = _strides(x.shape)
    base = np.zeros(index.shape, np.int64)
    for dim, extent in enumerate(index.shape):
        if dim != axis:
            shape = [-1 if other == dim else 1 for other in range(len(index.shape))]
            base = base + (np.arange(extent) * strides[dim]).reshape(shape)
    places = a.mul(b, a.cast(b, index, DType.INT32), strides[axis])
    places = a.add(b, places, b.constant(base, DType.INT32))
    table = reshape(b, x, (1, x.type.elements, 1))
    flat = reshape(b, places, (1, index.type.elements))
    return reshape(b, b("GATHER", table, flat), call.shape)


def _strides(shape: Sequence[int]) -> list[int]:
    return [prod(shape[dim + 1 :]) for dim in range(len(shape))]
