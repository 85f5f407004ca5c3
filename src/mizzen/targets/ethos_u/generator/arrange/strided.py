"""Maps as strides over bytes: what a rewrite needs to see one in another way."""

from __future__ import annotations

from dataclasses import replace

from mizzen.targets.ethos_u.generator.operations import (
    Box,
    Bytes,
    Copy,
    Map,
    Role,
    Sequence,
    Shape,
    Tensor,
    as_bytes,
    maps_read,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout

HEIGHT, WIDTH = 0, 1


def in_bytes(map_: Map, tensors: tuple[Tensor, ...]) -> Bytes | None:
    """Return a map as strides over a tensor in NHWC; None of bricks and of several tiles."""
    return as_bytes(map_.view, tensors[map_.tensor])


def part(map_: Map, axis: int, first: int, step: int, count: int) -> Map:
    """Return every `step`-th row (`axis` 0) or column (1) of a map without tiles."""
    view, shape = map_.view, list(map_.shape)
    shape[axis], step = count, step if count > 1 else 1
    match view:
        case Box():
            start, steps = list(view.start), list(view.steps)
            start[axis] += first * steps[axis]
            steps[axis] = steps[axis] * step if count > 1 else 1
            part_ = Box(
                tensor=view.tensor,
                shape=_shape(shape),
                start=_shape(start),
                steps=(steps[0], steps[1]),
            )
        case Bytes():
            strides = list(view.strides_bytes)
            offset = view.offset_bytes + first * strides[axis]
            strides[axis] *= step
            part_ = replace(
                view, shape=_shape(shape), offset_bytes=offset, strides_bytes=_shape(strides)
            )
    return replace(map_, view=part_)


def has_tiles(map_: Map) -> bool:
    """Whether rows or columns of a map go on at another place."""
    return isinstance(map_.view, Bytes) and map_.view.tiles is not None


def is_planes(view: Box | Bytes) -> bool:
    """Whether a map is strides over bricks."""
    return isinstance(view, Bytes) and view.layout is Layout.NHCWB16 and view.tiles is None


def is_dense(view: Bytes, size_bytes: int) -> bool:
    """Whether a map's elements lie one after the other."""
    _, width, depth = view.shape
    stride_y, stride_x, _ = view.strides_bytes
    columns = stride_x == depth * size_bytes or width == 1
    return columns and (stride_y == width * depth * size_bytes or view.shape[0] == 1)


def freed(sequence: Sequence) -> Sequence:
    """Return a sequence whose tensors of its own lie in NHWC only if some operation needs it.

    Boxes that bricks do not permit need it, as do bytes and transfers.
    """
    flat = {*sequence.inputs, *sequence.outputs}
    for operation in sequence.operations:
        if isinstance(operation, Copy):
            flat |= {operation.source, operation.destination}
            continue
        for map_ in (*maps_read(operation), operation.ofm):
            if isinstance(map_.view, Bytes) or not map_.view.takes_bricks():
                flat.add(map_.tensor)
    tensors = list(sequence.tensors)
    for index, tensor in enumerate(tensors):
        if tensor.role is Role.SCRATCH and index not in flat and tensor.layout is Layout.NHWC:
            tensors[index] = replace(tensor, layout=None)
        if index in flat and tensor.layout is None:
            tensors[index] = replace(tensor, layout=Layout.NHWC)
    return replace(sequence, tensors=tuple(tensors))


def _shape(values: list[int]) -> Shape:
    return values[0], values[1], values[2]
