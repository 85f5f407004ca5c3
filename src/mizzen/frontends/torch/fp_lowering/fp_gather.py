"""Rows and elements by index. Ref: TOSA 1.0, 2.11.1 GATHER.

Indices are integers of 32 bits in the graph, whatever they are in PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_lower import FpCall
from mizzen.frontends.torch.movement import permuted, reshape
from mizzen.graph import DType, Value
from mizzen.ops import Builder


def embedding(call: FpCall) -> Value:
    """Look up rows of a table."""
    return _rows(call, call.value("weight"), call.value("indices"), 0)


def index_select(call: FpCall) -> Value:
    """Take indices along one dimension."""
    return _rows(call, call.value("self"), call.value("index"), call.axis())


def index(call: FpCall) -> Value:
    """Take indices along one dimension, which another one's or more may follow."""
    given = [(axis, node) for axis, node in enumerate(call["indices"]) if node is not None]
    if len(given) != 1:
        raise RefusedError(
            f"it has indices in {len(given)} dimensions", "use indices in one dimension"
        )
    (axis, node), x = given[0], call.value("self")
    meta = str(node.meta["val"].dtype)
    call.need(meta != "torch.bool", "its shape depends on data", "use torch.where")
    found = _not_negative(call.b, call.context.value(node), x.shape[axis])
    return _rows(call, x, found, axis)


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
