"""TFLite's lookups by indices that are computed, and writes where they say.

Ref: TFLite Micro, kernels/gather.cc, gather_nd.cc, embedding_lookup.cc, dynamic_update_slice.cc.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mizzen.package.c.layout import Binary, Reduction
from mizzen.package.c.lowering.context import Given, Rule, elements, ref
from mizzen.package.c.lowering.elementwise import convert, emit_binary
from mizzen.package.c.lowering.reduction import reduce_axes, take
from mizzen.package.c.lowering.strides import (
    View,
    broadcast_shape,
    copy,
    dense,
    folded,
    move,
    whole,
)


def looked_up(given: Given) -> None:
    """GATHER; the first axes may be batches, each with indices of its own."""
    source, indices = given.present()
    rank = len(given.row(source).shape)
    axis = given.whole("axis", 0) % rank
    batches = given.whole("batch_dims", 0) % (len(given.row(indices).shape) + 1)
    if batches == 0:
        take(given, source, indices, axis, given.output())
    else:
        _in_batches(given, source, indices, axis, batches)


def _in_batches(given: Given, source: int, indices: int, axis: int, batches: int) -> None:
    """Write an index for each element of the output, then look each up."""
    shape, target = given.row(source).shape, given.row(given.output()).shape
    tensor = given.row(indices)
    count = len(tensor.shape) - batches
    own = dense(tensor.shape)
    between, behind = axis - batches, len(shape) - axis - 1
    strides = (*own[:batches], *[0] * between, *own[batches:], *[0] * behind)
    spread = given.lowering.temporary(target, tensor.dtype)
    move(given, indices, spread, View(target, strides), whole(target))
    walked = dense(shape)
    along = (*walked[:axis], *[0] * count, *walked[axis + 1 :])
    extents, steps = folded(target, along)
    arguments = (ref(source), ref(spread), shape[axis], walked[axis], extents, steps)
    given.emit("gather", arguments, (given.output(),))


def looked_up_in_table(given: Given) -> None:
    """EMBEDDING_LOOKUP in a table of the output's own numbers."""
    indices, table = given.present()
    tensor, output = given.row(table), given.row(given.output())
    given.must(tensor.dtype == output.dtype, "table and output must have one type")
    take(given, table, indices, 0, given.output())


def looked_up_in_several(given: Given) -> None:
    """GATHER_ND: several indices make one of all that is before a slice."""
    source, indices = given.present()
    shape, tensor = given.row(source).shape, given.row(indices)
    count = tensor.shape[-1]
    strides = dense(shape[:count])
    apart = given.lowering.temporary(tensor.shape, tensor.dtype)
    steps = given.lowering.constant(strides, tensor.dtype)
    emit_binary(given, Binary.MULTIPLY, indices, steps, apart)
    place = given.lowering.temporary(tensor.shape[:-1], tensor.dtype)
    reduce_axes(given, Reduction.SUM, apart, [len(tensor.shape) - 1], place)
    arguments = (ref(source), ref(place), elements(shape[:count]), elements(shape[count:]))
    given.emit("take", arguments, (given.output(),))


def updated(given: Given) -> None:
    """DYNAMIC_UPDATE_SLICE whose place is constant, as far as the slice fits."""
    source, part, starts = given.present()
    shape, inner = given.row(source).shape, given.row(part).shape
    strides = dense(shape)
    places = given.held(starts).tolist()
    first = sum(
        min(max(place, 0), outer - size) * stride
        for place, outer, size, stride in zip(places, shape, inner, strides, strict=True)
    )
    copy(given, source, given.output())
    move(given, part, given.output(), whole(inner), View(inner, strides, first))


def broadcast_arguments(given: Given) -> None:
    """BROADCAST_ARGS of shapes that are known."""
    shapes = [tuple(given.held(index).tolist()) for index in given.present()]
    known = given.lowering.constant(broadcast_shape(*shapes), np.int32)
    convert(given, known, given.output())


RULES: Mapping[str, Rule] = {
    "tflite::GATHER": looked_up,
    "tflite::GATHER_ND": looked_up_in_several,
    "tflite::EMBEDDING_LOOKUP": looked_up_in_table,
    "tflite::DYNAMIC_UPDATE_SLICE": updated,
    "tflite::BROADCAST_ARGS": broadcast_arguments,
}
