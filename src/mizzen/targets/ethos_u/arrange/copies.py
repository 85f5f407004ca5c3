"""Let what only moves numbers leave: the tensors at its ends become one.

A copy is a pool of one position that neither scales nor clips, or a transfer. Where all of a tensor
comes from a part of another, whoever reads it reads that part; where all of a tensor goes to a part
of another, as in a concatenation, whoever writes it writes there.

Conditions: what the copy writes, nothing else does, and what it reads is not written again behind
it, so that both tensors hold the same numbers for as long as anybody looks. The caller's tensors
stay at their own places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mizzen.targets.ethos_u.arrange.strided import replaced
from mizzen.targets.ethos_u.commands_values import ClipRange, PoolingMode, UpscaleMode
from mizzen.targets.ethos_u.operations import (
    Box,
    Bytes,
    Copy,
    Elementwise,
    Kernel,
    Map,
    Operation,
    Pooling,
    Role,
    Scale,
    Sequence,
    Shape,
    Tensor,
    maps_read,
    tensor_written,
    tensors_read,
)

ONE_POSITION = Kernel()
UNSCALED = Scale(1, 0)
Ends = tuple[Box, Box]
"""What a copy reads and what it writes, of as many rows, columns and channels."""


def without_copy(sequence: Sequence, index: int) -> Sequence | None:
    """Return a sequence without operation `index`; None where it is no copy, or has to be."""
    operation = sequence.operations[index]
    if _stays_in_place(operation):
        return replaced(sequence, {index: ()})
    ends = copied(operation, sequence)
    if ends is None:
        return None
    source, target = ends
    if _is_whole(target, sequence) and _may_read(sequence, index, target.tensor, source):
        return _moved(sequence, index, target.tensor, source)
    if _is_whole(source, sequence) and _may_write(sequence, index, source.tensor, target):
        return _moved(sequence, index, source.tensor, target)
    return None


def copied(operation: Operation, sequence: Sequence) -> Ends | None:
    """Return the boxes that an operation copies between; None where it does anything else."""
    if isinstance(operation, Copy):
        return _transferred(operation, sequence)
    if not is_identity(operation):
        return None
    assert isinstance(operation, Pooling), "only pools are"
    source = boxed(operation.ifm, sequence.tensors)
    target = boxed(operation.ofm, sequence.tensors)
    return None if source is None or target is None else (source, target)


def is_identity(operation: Operation) -> bool:
    """Whether an operation gives the numbers that it reads."""
    if not isinstance(operation, Pooling) or operation.mode is PoolingMode.REDUCE_SUM:
        return False
    ifm, ofm, activation = operation.ifm, operation.ofm, operation.activation
    info = np.iinfo(ofm.dtype)
    return (
        operation.kernel == ONE_POSITION
        and operation.upscale is UpscaleMode.NONE
        and (operation.mode is PoolingMode.MAX or operation.scale == UNSCALED)
        and (ifm.dtype, ifm.zero_point) == (ofm.dtype, ofm.zero_point)
        and info.bits <= 16
        and activation.table is None
        and activation.function == "RELU"
        and activation.clip_range is ClipRange.OFM_PRECISION
        and activation.minimum <= info.min
        and activation.maximum >= info.max
    )


def _stays_in_place(operation: Operation) -> bool:
    if isinstance(operation, Copy):
        places = operation.source_offset_bytes, operation.destination_offset_bytes
        return operation.source == operation.destination and places[0] == places[1]
    return is_identity(operation) and maps_read(operation)[0].view == operation.ofm.view


def _transferred(operation: Copy, sequence: Sequence) -> Ends | None:
    """Return the ends of a transfer of all of a tensor into all of one like it."""
    source, target = (sequence.tensors[row] for row in (operation.source, operation.destination))
    length = math.prod(source.shape) * source.dtype.itemsize
    whole = (0, 0, length) == (
        operation.source_offset_bytes, operation.destination_offset_bytes, operation.length_bytes,
    )  # fmt: skip
    alike = (source.shape, source.dtype, source.layout) == (
        target.shape, target.dtype, target.layout,
    )  # fmt: skip
    if not whole or not alike:
        return None
    return Box(operation.source, source.shape), Box(operation.destination, target.shape)


def boxed(map_: Map, tensors: tuple[Tensor, ...]) -> Box | None:
    """Return the box of its tensor that a map is; None where it is none."""
    if isinstance(map_.view, Box):
        return map_.view
    return None


def _is_whole(box: Box, sequence: Sequence) -> bool:
    """Whether a box is all of a tensor that nobody outside sees."""
    row = sequence.tensors[box.tensor]
    alone = row.role is Role.SCRATCH and box.tensor not in (*sequence.inputs, *sequence.outputs)
    return alone and box.shape == row.shape


def _may_read(sequence: Sequence, index: int, tensor: int, source: Box) -> bool:
    """Whether who reads a tensor may read a part of another, after the copy `index`."""
    if not _fit(sequence, index, tensor, source):
        return False
    for place, operation in enumerate(sequence.operations):
        if place == index:
            continue
        if tensor_written(operation) == tensor:
            return False
        if tensor in tensors_read(operation) and place < index:
            return False
        if place > index and _writes(operation, source):
            return False
    return True


def _may_write(sequence: Sequence, index: int, tensor: int, target: Box) -> bool:
    """Whether who writes and reads a tensor may do so in a part of another, but for the copy."""
    if sequence.tensors[target.tensor].role in (Role.STATE, Role.INPUT, Role.CONSTANT):
        return False
    if target.tensor in sequence.inputs or not _fit(sequence, index, tensor, target):
        return False
    for place, operation in enumerate(sequence.operations):
        if place == index:
            continue
        if place > index and tensor_written(operation) == tensor:
            return False
        if _writes(operation, target) or (place < index and _reads(operation, target)):
            return False
    return True


def _fit(sequence: Sequence, index: int, tensor: int, into: Box) -> bool:
    """Whether every view of a tensor, but of the copy `index`, is one of a part of another."""
    one, other = sequence.tensors[tensor], sequence.tensors[into.tensor]
    if one.dtype != other.dtype or one.layout not in (None, other.layout):
        return False
    for place, operation in enumerate(sequence.operations):
        if place == index:
            continue
        if isinstance(operation, Copy):
            if tensor in (operation.source, operation.destination):
                return False
            continue
        views = (map_.view for map_ in (*maps_read(operation), operation.ofm))
        for view in views:
            if view.tensor == tensor and _inside(view, into, other) is None:
                return False
    return True


def _writes(operation: Operation, box: Box) -> bool:
    if tensor_written(operation) != box.tensor:
        return False
    return isinstance(operation, Copy) or _touches(operation.ofm, box)


def _reads(operation: Operation, box: Box) -> bool:
    if isinstance(operation, Copy):
        return operation.source == box.tensor
    return any(map_.tensor == box.tensor and _touches(map_, box) for map_ in maps_read(operation))


def _touches(map_: Map, box: Box) -> bool:
    """Whether a map may share elements with a box of its tensor."""
    view = map_.view
    if isinstance(view, Bytes):
        return True
    return all(
        one < other + spans[1] and other < one + spans[0]
        for one, other, spans in zip(
            view.start, box.start, zip(_spans(view), _spans(box), strict=True), strict=True
        )
    )


def _spans(box: Box) -> Shape:
    (height, width, depth), (down, across) = box.shape, box.steps
    return (height - 1) * down + 1, (width - 1) * across + 1, depth


def _inside(view: Box | Bytes, into: Box, other: Tensor) -> Box | Bytes | None:
    """Return what a view of a tensor is once the tensor is a part of another; None if it is none.

    Bytes stay in order where the part is all of the other's columns and channels.
    """
    if isinstance(view, Box):
        (y, x, c), (down, across) = into.start, into.steps
        start = y + view.start[0] * down, x + view.start[1] * across, c + view.start[2]
        steps = view.steps[0] * down, view.steps[1] * across
        return Box(into.tensor, view.shape, start, steps)
    whole_rows = into.steps == (1, 1) and into.shape[1:] == other.shape[1:]
    if not whole_rows:
        return None
    row = math.prod(other.shape[1:]) * other.dtype.itemsize
    return replace(view, tensor=into.tensor, offset_bytes=view.offset_bytes + into.start[0] * row)


def _moved(sequence: Sequence, index: int, tensor: int, into: Box) -> Sequence:
    """Return a sequence without operation `index`, and a tensor as a part of another."""
    other = sequence.tensors[into.tensor]
    changes: dict[int, tuple[Operation, ...]] = {index: ()}
    for place, operation in enumerate(sequence.operations):
        if place == index or isinstance(operation, Copy):
            continue
        if tensor in (*tensors_read(operation), tensor_written(operation)):
            changes[place] = (_with_maps(operation, tensor, into, other),)
    return replaced(sequence, changes)


def _with_maps(operation: Operation, tensor: int, into: Box, other: Tensor) -> Operation:
    assert not isinstance(operation, Copy), "copies of such a tensor make it stay"

    def moved(map_: Map) -> Map:
        if map_.tensor != tensor:
            return map_
        view = _inside(map_.view, into, other)
        assert view is not None, "all views were found to fit"
        return replace(map_, view=view)

    changed = replace(operation, ifm=moved(operation.ifm), ofm=moved(operation.ofm))
    if isinstance(changed, Elementwise) and isinstance(changed.ifm2, Map):
        return replace(changed, ifm2=moved(changed.ifm2))
    return changed


def copies(sequence: Sequence) -> Iterator[int]:
    """Return the operations that only move numbers."""
    for index, operation in enumerate(sequence.operations):
        if isinstance(operation, Copy) or is_identity(operation):
            yield index
