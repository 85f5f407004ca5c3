"""Let what only moves numbers leave: the tensors at its ends become one.

A copy is a pool of one position that neither scales nor clips, or a transfer. Where all of a tensor
comes from a part of another, operations that read it read that part; where all of a tensor goes to
a part of another, as in a concatenation, operations that write it write there. Where a copy gives a
map another shape, the part is the same bytes in the same order.

Conditions: what the copy writes, nothing else does, and what it reads is not written again as long
as the copy is read, so that both tensors hold the same numbers as long as they are read. A state
holds what it held before until its new numbers are written, so that these may be written there at
once when the old ones are not read any more. The caller's tensors stay at their own places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mizzen.targets.ethos_u.generator.arrange.strided import (
    freed,
    in_bytes,
    is_dense,
)
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Box,
    Bytes,
    Chain,
    Copy,
    Map,
    Operation,
    Pooling,
    Role,
    Sequence,
    Shape,
    Tensor,
    as_box,
    as_bytes,
    maps_read,
    replaced,
    tensor_written,
    tensors_read,
    with_maps,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    Layout,
)


@dataclass(frozen=True, slots=True)
class Embedding:
    """Where all of a tensor is in another: in a box, or in bytes from an offset on, in NHWC."""

    tensor: int
    box: Box | None
    offset_bytes: int = 0

    def view(self, view: Box | Bytes, own: Tensor, other: Tensor) -> Box | Bytes | None:
        """Return what a view of the tensor is of the other; None if it is not one."""
        if self.box is None:
            strided = as_bytes(view, own)
            if strided is None:
                return None
            offset = strided.offset_bytes + self.offset_bytes
            return as_box(replace(strided, tensor=self.tensor, offset_bytes=offset), other)
        if isinstance(view, Bytes):
            return None
        (y, x, c), (down, across) = self.box.start, self.box.steps
        start = y + view.start[0] * down, x + view.start[1] * across, c + view.start[2]
        steps = view.steps[0] * down, view.steps[1] * across
        return Box(tensor=self.tensor, shape=view.shape, start=start, steps=steps)


def without_copy(sequence: Sequence, index: int) -> Sequence | None:
    """Return a sequence without operation `index`; None where it is no copy, or has to be."""
    operation = sequence.operations[index]
    if _stays_in_place(operation):
        return replaced(sequence, {index: ()})
    ends = _ends(operation, sequence)
    if ends is None:
        return None
    source, target = ends
    for place in _places(target, source, sequence):
        if _may_read(sequence, index, target.tensor, place, source):
            return _moved(sequence, index, target.tensor, place)
    for place in _places(source, target, sequence):
        if _may_write(sequence, index, source.tensor, place, target):
            return _moved(sequence, index, source.tensor, place)
    return None


def _places(whole: Map, into: Map, sequence: Sequence) -> Iterator[Embedding]:
    """Return where a map is in the other's tensor, if it is all of a tensor of our own."""
    tensor = sequence.tensors[whole.tensor]
    if tensor.role is not Role.SCRATCH or whole.tensor in (*sequence.inputs, *sequence.outputs):
        return
    if isinstance(whole.view, Box) and isinstance(into.view, Box) and whole.shape == tensor.shape:
        yield Embedding(into.tensor, into.view)
    one, other = in_bytes(whole, sequence.tensors), in_bytes(into, sequence.tensors)
    size = whole.dtype.itemsize
    if one is None or other is None or not (is_dense(one, size) and is_dense(other, size)):
        return
    if one.offset_bytes == 0 and math.prod(whole.shape) * size == tensor.size_bytes(Layout.NHWC):
        yield Embedding(into.tensor, None, other.offset_bytes)


def _ends(operation: Operation, sequence: Sequence) -> tuple[Map, Map] | None:
    """Return the maps that an operation copies between; None where it does anything else."""
    if isinstance(operation, Copy):
        return None if operation.lines is not None else _transferred(operation, sequence)
    if isinstance(operation, Pooling) and is_identity(operation):
        return operation.ifm, operation.ofm
    return None


def is_identity(operation: Operation) -> bool:
    """Whether an operation gives the numbers that it reads, where it reads them."""
    return isinstance(operation, Pooling) and operation.moves and operation.order == AS_COMPUTED


def _stays_in_place(operation: Operation) -> bool:
    if isinstance(operation, Copy):
        places = operation.source_offset_bytes, operation.destination_offset_bytes
        same = operation.source == operation.destination and places[0] == places[1]
        return same and operation.lines is None
    return is_identity(operation) and maps_read(operation)[0].view == operation.ofm.view


def _transferred(operation: Copy, sequence: Sequence) -> tuple[Map, Map] | None:
    """Return the ends of a transfer of all of a tensor into all of one like it."""
    source, target = (
        sequence.tensors[tensor] for tensor in (operation.source, operation.destination)
    )
    length = math.prod(source.shape) * source.dtype.itemsize
    whole = (0, 0, length) == (
        operation.source_offset_bytes, operation.destination_offset_bytes, operation.length_bytes,
    )  # fmt: skip
    alike = (source.shape, source.dtype, source.layout) == (
        target.shape, target.dtype, target.layout,
    )  # fmt: skip
    if not whole or not alike:
        return None
    return (
        Map(Box(operation.source, source.shape), source.dtype),
        Map(Box(operation.destination, target.shape), target.dtype),
    )


def _may_read(sequence: Sequence, index: int, tensor: int, place: Embedding, source: Map) -> bool:
    """Whether operations that read a tensor may read a part of another, after the copy `index`."""
    if not _fit(sequence, index, tensor, place):
        return False
    reads = [
        step
        for step, operation in enumerate(sequence.operations)
        if tensor in tensors_read(operation)
    ]
    if reads and reads[0] < index:
        return False
    for step, operation in enumerate(sequence.operations):
        if step == index:
            continue
        if tensor_written(operation) == tensor:
            return False
        if index < step <= max(reads, default=index) and _writes(operation, source):
            return False
    return True


def _may_write(sequence: Sequence, index: int, tensor: int, place: Embedding, target: Map) -> bool:
    """Whether operations on a tensor, the copy left out, may be on a part of another."""
    if sequence.tensors[target.tensor].role not in (Role.SCRATCH, Role.OUTPUT, Role.STATE):
        return False
    if not _fit(sequence, index, tensor, place):
        return False
    writes = [
        step
        for step, operation in enumerate(sequence.operations)
        if tensor_written(operation) == tensor
    ]
    if not writes or writes[-1] > index:
        return False
    for step, operation in enumerate(sequence.operations):
        if step == index:
            continue
        if _writes(operation, target) or (writes[0] <= step < index and _reads(operation, target)):
            return False
    return True


def _fit(sequence: Sequence, index: int, tensor: int, place: Embedding) -> bool:
    """Whether every view of a tensor, but of the copy `index`, is one of a part of another."""
    one, other = sequence.tensors[tensor], sequence.tensors[place.tensor]
    if one.dtype != other.dtype:
        return False
    for step, operation in enumerate(sequence.operations):
        if step == index:
            continue
        if isinstance(operation, Copy | Chain):
            if tensor in (*tensors_read(operation), tensor_written(operation)):
                return False
            continue
        for map_ in (*maps_read(operation), operation.ofm):
            if map_.tensor == tensor and place.view(map_.view, one, other) is None:
                return False
    return True


def _writes(operation: Operation, here: Map) -> bool:
    if tensor_written(operation) != here.tensor:
        return False
    return isinstance(operation, Copy) or _touches(operation.ofm, here)


def _reads(operation: Operation, here: Map) -> bool:
    if isinstance(operation, Copy):
        return here.tensor in tensors_read(operation)
    return any(map_.tensor == here.tensor and _touches(map_, here) for map_ in maps_read(operation))


def _touches(map_: Map, here: Map) -> bool:
    """Whether two maps of a tensor may share elements."""
    view, box = map_.view, here.view
    if isinstance(view, Bytes) or isinstance(box, Bytes):
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


def _moved(sequence: Sequence, index: int, tensor: int, place: Embedding) -> Sequence:
    """Return a sequence without operation `index`, and a tensor as a part of another."""
    own, other = sequence.tensors[tensor], sequence.tensors[place.tensor]

    def moved(map_: Map) -> Map:
        if map_.tensor != tensor:
            return map_
        view = place.view(map_.view, own, other)
        assert view is not None, "all views were found to fit"
        return replace(map_, view=view)

    changes: dict[int, tuple[Operation, ...]] = {index: ()}
    for step, operation in enumerate(sequence.operations):
        if step != index and not isinstance(operation, Copy | Chain):
            changes[step] = (with_maps(operation, moved),)
    return freed(replaced(sequence, changes))
