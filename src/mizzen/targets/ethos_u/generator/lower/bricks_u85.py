"""Second operands of matrix products in bricks, as U85 takes them.

A tensor of which products read parts lies in bricks, if all that see it can see it there; else in
planes of bricks, in which heads of a projection follow each other; else what a product reads is
copied.

Ref: Vela's streams for U85, in which no other second operand occurs.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mizzen.targets.ethos_u.generator.operations import (
    BRICK,
    Activation,
    Box,
    Bytes,
    Chain,
    Copy,
    Kernel,
    Map,
    MatrixProduct,
    Operation,
    Planes,
    Pooling,
    Role,
    Scale,
    Sequence,
    Tensor,
    maps_read,
    tensor_written,
    tensors_read,
    with_maps,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode, RoundMode


def in_bricks(sequence: Sequence) -> Sequence:
    """Return a sequence in which second operands of products are in bricks."""
    for tensor in sorted({map_.tensor for map_ in _operands(sequence)}):
        sequence = _lying(sequence, tensor)
    return _copied(sequence)


def _operands(sequence: Sequence) -> list[Map]:
    return [row.ifm2 for row in sequence.operations if isinstance(row, MatrixProduct)]


def _lying(sequence: Sequence, index: int) -> Sequence:
    """Return a sequence with a tensor in bricks, or in planes; the same where it can be neither."""
    tensor = sequence.tensors[index]
    ends = index in (*sequence.inputs, *sequence.outputs)
    if tensor.role is not Role.SCRATCH or ends or _is_transferred(sequence, index):
        return sequence
    maps = [map_ for map_ in _maps(sequence) if map_.tensor == index]
    seconds = [map_ for map_ in _operands(sequence) if map_.tensor == index]
    tensors = list(sequence.tensors)
    boxes = all(isinstance(map_.view, Box) and map_.view.takes_bricks() for map_ in maps)
    if boxes and all(_is_of_rows(map_, tensor) for map_ in seconds):
        tensors[index] = replace(tensor, layout=Layout.NHCWB16)
        return replace(sequence, tensors=tuple(tensors))
    planes = Planes(tensor)
    views = {map_: planes.view(map_) for map_ in maps}
    if None in views.values() or not all(_is_all_rows(map_, tensor) for map_ in seconds):
        return sequence
    tensors[index] = planes.in_planes

    def seen(map_: Map) -> Map:
        view = views.get(map_)
        return map_ if view is None else replace(map_, view=view)

    operations = tuple(
        row if isinstance(row, Copy | Chain) else with_maps(row, seen)
        for row in sequence.operations
    )
    return replace(sequence, operations=operations, tensors=tuple(tensors))


def _is_transferred(sequence: Sequence, tensor: int) -> bool:
    return any(
        tensor in (*tensors_read(row), tensor_written(row))
        for row in sequence.operations
        if isinstance(row, Copy)
    )


def _maps(sequence: Sequence) -> list[Map]:
    return [
        map_
        for row in sequence.operations
        if not isinstance(row, Copy)
        for map_ in (*maps_read(row), row.ofm)
    ]


def _is_of_rows(map_: Map, tensor: Tensor) -> bool:
    """Whether the bricks of a second operand follow each other, as they do in Vela's streams."""
    return map_.shape[1] == tensor.shape[1] or map_.shape[2] <= BRICK


def _is_all_rows(map_: Map, tensor: Tensor) -> bool:
    """Whether the planes of a second operand follow each other."""
    return map_.shape[1] == math.prod(tensor.shape[:2]) or map_.shape[2] <= BRICK


def _copied(sequence: Sequence) -> Sequence:
    """Return a sequence in which operands that lie otherwise are copied."""
    tensors, operations = list(sequence.tensors), list[Operation]()
    for row in sequence.operations:
        if not isinstance(row, MatrixProduct) or _is_in_bricks(row.ifm2, sequence):
            operations.append(row)
            continue
        _, width, depth = row.ifm2.shape
        dtype, layout = row.ifm2.dtype, Layout.NHCWB16
        tensors.append(Tensor("copy", (1, width, depth), dtype, layout=layout))
        place = Map(Box(len(tensors) - 1, (1, width, depth)), dtype, row.ifm2.zero_point)
        operations += [_copy(row, place), replace(row, ifm2=place)]
    return replace(sequence, tensors=tuple(tensors), operations=tuple(operations))


def _is_in_bricks(map_: Map, sequence: Sequence) -> bool:
    view = map_.view
    layout = view.layout if isinstance(view, Bytes) else sequence.tensors[map_.tensor].layout
    return layout is Layout.NHCWB16


def _copy(row: MatrixProduct, place: Map) -> Pooling:
    """Return what copies the second operand of a product."""
    info = np.iinfo(place.dtype)
    return Pooling(
        row.origin,
        PoolingMode.AVERAGE,
        replace(row.ifm2, zero_point=0),
        replace(place, zero_point=0),
        Kernel(),
        Scale(1, 0),
        Activation(int(info.min), int(info.max)),
        rounding=RoundMode.NATURAL,
    )
