"""Maps as strides over bytes: what a rewrite needs to see one in another way."""

from __future__ import annotations

from dataclasses import replace

from mizzen.targets.ethos_u.commands_values import Layout
from mizzen.targets.ethos_u.operations import (
    Box,
    Bytes,
    Map,
    Operation,
    Sequence,
    Shape,
    Tensor,
)

HEIGHT, WIDTH = 0, 1


def in_bytes(map_: Map, tensors: tuple[Tensor, ...]) -> Bytes | None:
    """Return a map as strides over a tensor in NHWC; None of bricks and of several tiles."""
    view = map_.view
    if isinstance(view, Bytes):
        return view if view.layout is Layout.NHWC and view.tiles is None else None
    tensor = tensors[view.tensor]
    if tensor.layout is Layout.NHCWB16:
        return None
    row, column, size = tensor.strides_bytes(Layout.NHWC)
    offset = view.start[0] * row + view.start[1] * column + view.start[2] * size
    strides = row * view.steps[0], column * view.steps[1], size
    return Bytes(view.tensor, view.shape, offset, strides)


def part(map_: Map, axis: int, first: int, step: int, count: int) -> Map:
    """Return every `step`-th row (`axis` 0) or column (1) of a map without tiles."""
    view, shape = map_.view, list(map_.shape)
    shape[axis] = count
    match view:
        case Box():
            start, steps = list(view.start), list(view.steps)
            start[axis] += first * steps[axis]
            steps[axis] *= step
            part_ = Box(view.tensor, _shape(shape), _shape(start), (steps[0], steps[1]))
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


def is_dense(view: Bytes, size_bytes: int) -> bool:
    """Whether a map's elements lie one behind the other."""
    _, width, depth = view.shape
    row, column, _ = view.strides_bytes
    columns = column == depth * size_bytes or width == 1
    return columns and (row == width * depth * size_bytes or view.shape[0] == 1)


def replaced(
    sequence: Sequence, changes: dict[int, tuple[Operation, ...]], **more: object
) -> Sequence:
    """Return a sequence with others for some of its operations, by their index."""
    operations = tuple(
        new for index, old in enumerate(sequence.operations) for new in changes.get(index, (old,))
    )
    return replace(sequence, operations=operations, **more)


def _shape(values: list[int]) -> Shape:
    return values[0], values[1], values[2]
