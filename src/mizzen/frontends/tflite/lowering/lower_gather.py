"""Elements by index."""

from __future__ import annotations

from math import prod

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, lowers
from mizzen.graph import DType, Value


@lowers("GATHER")
def gather(call: Call) -> Value:
    """[*A,*O,K,*I] at constant indices [*A,W]: RESHAPE to [A,O,K,I] and, if O is not 1, TRANSPOSE
    to [A,K,O,I]; RESHAPE, GATHER, and back: RESHAPE, TRANSPOSE, RESHAPE."""
    call.need(call.input(1).type is FileType.INT32, "its indices are not INT32")
    indices, value, b = call.contents(1), call.value(), call.b
    rank = value.type.rank
    axis = call.axis(int(call.option("axis")), rank)
    batches = int(call.option("batch_dims"))
    batches += indices.ndim if batches < 0 else 0
    call.need(0 <= batches <= axis, "its batches are behind its axis")
    shape = value.shape
    call.need(indices.shape[:batches] == shape[:batches], "its indices are of other batches")
    outer, middle = prod(shape[:batches]), prod(shape[batches:axis])
    extent, inner = shape[axis], prod(shape[axis + 1 :])
    places = indices.reshape(outer, -1)
    inside = places.size and places.min() >= 0 and places.max() < extent
    call.need(bool(inside), "it takes elements outside its input")
    value = _swapped(call, value, (outer, middle, extent, inner))
    value = b("RESHAPE", value, b.shape((outer, extent, middle * inner)))
    value = b("GATHER", value, b.constant(np.ascontiguousarray(places), DType.INT32))
    value = _swapped(call, value, (outer, places.shape[1], middle, inner))
    return b("RESHAPE", value, b.shape(call.output().shape))


def _swapped(call: Call, value: Value, shape: tuple[int, int, int, int]) -> Value:
    """Exchange the axes in the middle of four."""
    if 1 in shape[1:3]:
        return value
    value = call.b("RESHAPE", value, call.b.shape(shape))
    return call.b("TRANSPOSE", value, perms=(0, 2, 1, 3))
