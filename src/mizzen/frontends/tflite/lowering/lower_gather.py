"""Elements by index, and at the places of indices.

Ref: TFLite Micro, kernels/gather.cc; TensorFlow Lite, kernels/scatter_nd.cc.
"""

from __future__ import annotations

from math import prod

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, lowers
from mizzen.graph import DType, Value


@lowers("GATHER")
def gather(call: Call) -> Value:
    """[*A,*O,K,*I] at indices [*A,W]: RESHAPE to [A,O,K,I] and, if O is not 1, TRANSPOSE to
    [A,K,O,I]; RESHAPE, GATHER, and back: RESHAPE, TRANSPOSE, RESHAPE."""
    call.need(call.input(1).type is FileType.INT32, "its indices are not INT32")
    call.need(call.input(0).type is call.output().type, "its output is of another type")
    named, value, b = call.input(1).shape, call.value(), call.b
    axis = call.axis(int(call.option("axis")), value.type.rank)
    batches = int(call.option("batch_dims"))
    batches += len(named) if batches < 0 else 0
    call.need(0 <= batches <= axis, "its batches are after its axis")
    shape = value.shape
    call.need(named[:batches] == shape[:batches], "its indices are of other batches")
    outer, middle = prod(shape[:batches]), prod(shape[batches:axis])
    extent, inner = shape[axis], prod(shape[axis + 1 :])
    places = _places(call, outer, extent)
    value = _swapped(call, value, (outer, middle, extent, inner))
    value = b("RESHAPE", value, b.shape((outer, extent, middle * inner)))
    value = b("GATHER", value, places)
    value = _swapped(call, value, (outer, places.shape[1], middle, inner))
    return b("RESHAPE", value, b.shape(call.output().shape))


def _places(call: Call, outer: int, extent: int) -> Value:
    """Return the indices of a GATHER as [outer, W]; constant ones must be inside."""
    tensor, b = call.input(1), call.b
    if tensor.data is None:
        count = prod(tensor.shape) // outer
        return b("RESHAPE", call.value(1), b.shape((outer, count)))
    indices = call.contents(1)
    inside = indices.size and indices.min() >= 0 and indices.max() < extent
    call.need(bool(inside), "it takes elements outside its input")
    return b.constant(np.ascontiguousarray(indices.reshape(outer, -1)), DType.INT32)


@lowers("SCATTER_ND")
def scatter(call: Call) -> Value:
    """[W,*I] to the places [W,1] of [K,*I], 0 elsewhere: RESHAPE, SCATTER, RESHAPE."""
    indices, updates, output = call.input(0), call.input(1), call.output()
    call.need(indices.type is FileType.INT32, "its indices are not INT32")
    call.need(updates.type is output.type, "its output is of another type than its input")
    call.need(indices.shape[-1:] == (1,), "its indices are of several axes")
    places = call.contents(0).reshape(-1)
    extent, inner = output.shape[0], prod(output.shape[1:])
    inside = places.size and places.min() >= 0 and places.max() < extent
    call.need(bool(inside), "it writes elements outside its output")
    call.need(np.unique(places).size == places.size, "it writes one element twice")
    b, value = call.b, call.value(1)
    value = b("RESHAPE", value, b.shape((1, places.size, inner)))
    least = -128 if output.type is FileType.UINT8 else 0
    nothing = b.constant(np.full((1, extent, inner), least), value.dtype)
    made = b("SCATTER", nothing, b.constant(places[None].copy(), DType.INT32), value)
    return b("RESHAPE", made, b.shape(output.shape))


def _swapped(call: Call, value: Value, shape: tuple[int, int, int, int]) -> Value:
    """Exchange the axes in the middle of four."""
    if 1 in shape[1:3]:
        return value
    value = call.b("RESHAPE", value, call.b.shape(shape))
    return call.b("TRANSPOSE", value, perms=(0, 2, 1, 3))
