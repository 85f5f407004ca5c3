"""Results that are written at once where a copy would bring them, in the order in which it does.

U85 stores what it computes in any order of axes, so that a transposition after an operation is
none of its own. A convolution whose last channels alone are copied, as the values of an attention
are, becomes several: of the others, and of each row of those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    BRICK,
    PERMUTATIONS,
    Box,
    Bytes,
    Chain,
    Changes,
    ChannelScales,
    Computation,
    Convolution,
    Copy,
    Kernel,
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
    rewritten,
    tensor_written,
    tensors_read,
    with_maps,
)
from mizzen.targets.ethos_u.machine.commands_values import UpscaleMode


def fused(sequence: Sequence) -> Sequence:
    """Return a sequence without copies of what operations can write there themselves."""
    return rewritten(sequence, _without)


def _without(sequence: Sequence, index: int) -> Sequence:
    """Return a sequence without operation `index`; the same where it is no copy, or has to be."""
    copy = sequence.operations[index]
    if not isinstance(copy, Pooling) or not copy.moves or not _is_own(sequence, copy.ifm.tensor):
        return sequence
    writers, readers = _users(sequence, copy.ifm.tensor, index)
    if len(writers) != 1 or not _may_be_early(sequence, writers[0], index):
        return sequence
    source = sequence.operations[writers[0]]
    if isinstance(source, Copy | Chain) or source.order != AS_COMPUTED:
        return sequence
    if not readers:
        return _stored(sequence, writers[0], source, index, copy)
    if not isinstance(source, Convolution) or source.depthwise or source.written is not None:
        return sequence
    split = _Split.of(sequence, source, copy, readers)
    return sequence if split is None else split.done(writers[0], index, readers)


def _is_own(sequence: Sequence, tensor: int) -> bool:
    role = sequence.tensors[tensor].role
    return role is Role.SCRATCH and tensor not in (*sequence.inputs, *sequence.outputs)


def _users(sequence: Sequence, tensor: int, copy: int) -> tuple[list[int], list[int]]:
    """Return who writes a tensor, and who else than a copy reads it."""
    rows = list(enumerate(sequence.operations))
    writers = [index for index, row in rows if tensor_written(row) == tensor]
    readers = [index for index, row in rows if tensor in tensors_read(row) and index != copy]
    return writers, readers


def _may_be_early(sequence: Sequence, source: int, copy: int) -> bool:
    """Whether nothing from an operation to its copy sees what the copy writes."""
    target = tensor_written(sequence.operations[copy])
    between = sequence.operations[source:copy]
    return not any(target in (*tensors_read(row), tensor_written(row)) for row in between)


def _stored(
    sequence: Sequence, place: int, source: Computation, index: int, copy: Pooling
) -> Sequence:
    """Return a sequence in which an operation writes what the copy reads, if that is all of it."""
    whole = source.ofm.elements == math.prod(sequence.tensors[source.ofm.tensor].shape)
    if not whole or copy.ifm.view != source.ofm.view:
        return sequence
    ofm = replace(copy.ofm, zero_point=source.ofm.zero_point)
    return replaced(sequence, {place: (replace(source, ofm=ofm, order=copy.order),), index: ()})


@dataclass(frozen=True, slots=True)
class _Channels:
    """What a map sees of a tensor: channels `start + row * step`, `count` of them, for each row.

    position, down  the first position, and those from one row to the next
    across          positions from one column to the next
    """

    position: int
    down: int
    across: int
    start: int
    step: int
    count: int

    @staticmethod
    def of(map_: Map, tensor: Tensor) -> _Channels | None:
        """Return what a map sees; None where it does not see channels of positions."""
        seen, size = as_bytes(map_.view, tensor), tensor.dtype.itemsize
        if seen is None or map_.dtype.itemsize != size or seen.strides_bytes[2] != size:
            return None
        depth = tensor.shape[2]
        height, width, count = seen.shape
        position, start = divmod(seen.offset_bytes // size, depth)
        stride_y, stride_x = (stride // size for stride in seen.strides_bytes[:2])
        down, step = divmod(stride_y, depth) if height > 1 else (0, 0)
        across, beside = divmod(stride_x, depth) if width > 1 else (0, 0)
        if beside or start + (height - 1) * step + count > depth:
            return None
        return _Channels(position, down, across, start, step, count)

    def end(self, rows: int) -> int:
        """Return the channel after the last one of so many rows."""
        return self.start + (rows - 1) * self.step + self.count

    def map(self, map_: Map, tensor: Tensor) -> Map:
        """Return the map of the same positions and channels of a tensor of another depth."""
        size, depth = tensor.dtype.itemsize, tensor.shape[2]
        strides = self.down * depth + self.step, self.across * depth, 1
        view = Bytes(
            map_.tensor,
            map_.shape,
            (self.position * depth + self.start) * size,
            (strides[0] * size, strides[1] * size, size),
        )
        return replace(map_, view=as_box(view, tensor))


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """A convolution, and a copy of its last channels, which nobody else reads.

    kept  what other operations see of the tensor
    """

    sequence: Sequence
    source: Convolution
    copy: Pooling
    copied: _Channels
    kept: dict[Map, _Channels]

    @staticmethod
    def of(
        sequence: Sequence, source: Convolution, copy: Pooling, readers: list[int]
    ) -> _Split | None:
        """Return what is to be split; None where it cannot be."""
        index, tensor = copy.ifm.tensor, sequence.tensors[copy.ifm.tensor]
        copied, own = _Channels.of(copy.ifm, tensor), _Channels.of(source.ofm, tensor)
        rows = [sequence.operations[reader] for reader in readers]
        maps = [map_ for row in rows for map_ in maps_read(row) if map_.tensor == index]
        kept = {map_: _Channels.of(map_, tensor) for map_ in maps}
        if copied is None or own is None or any(isinstance(row, Copy | Chain) for row in rows):
            return None
        seen = {map_: part for map_, part in kept.items() if part is not None}
        positions = math.prod(tensor.shape[:2])
        whole = source.ofm.elements == math.prod(tensor.shape)
        last = copied.end(copy.ifm.shape[0]) == tensor.shape[2] and not copied.start % BRICK
        each = copied.down == 0 and copied.position == 0 and copied.across <= 1
        rest = all(part.end(map_.shape[0]) <= copied.start for map_, part in seen.items())
        if not (whole and last and each and rest and len(seen) == len(kept)):
            return None
        if copy.ifm.shape[1] != positions or _in_a_row(source, sequence) is None:
            return None
        return _Split(sequence, source, copy, copied, seen)

    def done(self, place: int, copy: int, readers: list[int]) -> Sequence:
        """Return the sequence with several convolutions in the place of one, and without a copy."""
        index = self.source.ofm.tensor
        tensor = self.sequence.tensors[index]
        height, width, _ = tensor.shape
        rest = replace(tensor, shape=(height, width, self.copied.start))
        tensors = list(self.sequence.tensors)
        tensors[index] = rest
        changes: Changes = {
            reader: (self._seeing(self.sequence.operations[reader], rest),) for reader in readers
        }
        changes[copy] = ()
        changes[place] = (self._rest(rest), *(self._row(row) for row in range(self._rows)))
        return replaced(self.sequence, changes, tensors=tuple(tensors))

    @property
    def _rows(self) -> int:
        return self.copy.ifm.shape[0]

    def _seeing(self, operation: Operation, rest: Tensor) -> Operation:
        assert not isinstance(operation, Copy | Chain), "neither reads the tensor"
        return with_maps(
            operation,
            lambda map_: self.kept[map_].map(map_, rest) if map_ in self.kept else map_,
        )

    def _rest(self, rest: Tensor) -> Convolution:
        """Return the convolution of the channels that others read."""
        height, width, _ = self.source.ofm.shape
        whole = _Channels.of(self.source.ofm, self.sequence.tensors[self.source.ofm.tensor])
        assert whole is not None
        count = self.copied.start
        view = replace(self.source.ofm.view, shape=(height, width, count))
        ofm = replace(whole, count=count).map(replace(self.source.ofm, view=view), rest)
        return replace(_channels_of(self.source, 0, count), ofm=ofm)

    def _row(self, row: int) -> Convolution:
        """Return the convolution of the channels of one row, which are stored as the copy does."""
        source = _in_a_row(self.source, self.sequence)
        assert source is not None
        start = self.copied.start + row * self.copied.step
        part = _channels_of(source, start, start + self.copied.count)
        axis = PERMUTATIONS[self.copy.order.transpose].index(0)
        ofm = _one(self.copy.ofm, axis, row, self.sequence.tensors[self.copy.ofm.tensor])
        zeroed = replace(ofm, zero_point=source.ofm.zero_point)
        return replace(part, ofm=zeroed, order=self.copy.order)


def _in_a_row(source: Convolution, sequence: Sequence) -> Convolution | None:
    """Return a convolution of one row of positions; None where it is not one."""
    view = as_bytes(source.ifm.view, sequence.tensors[source.ifm.tensor])
    if source.ifm.shape[0] == 1 and source.kernel.height == 1:
        return source
    if source.kernel != Kernel() or source.upscale is not UpscaleMode.NONE or view is None:
        return None
    height, width, depth = view.shape
    stride_y, stride_x, size = view.strides_bytes
    if width > 1 and stride_y != width * stride_x:
        return None
    pitch = stride_x if width > 1 else stride_y
    shape = 1, height * width, depth
    seen = replace(view, shape=shape, strides_bytes=(pitch * height * width, pitch, size))
    box = as_box(seen, sequence.tensors[source.ifm.tensor])
    return replace(source, ifm=replace(source.ifm, view=box))


def _channels_of(source: Convolution, start: int, stop: int) -> Convolution:
    """Return a convolution of some of its channels."""
    scales = source.scales
    return replace(
        source,
        weights=np.ascontiguousarray(source.weights[start:stop]),
        scales=ChannelScales(
            scales.biases[start:stop], scales.multipliers[start:stop], scales.shifts[start:stop]
        ),
    )


def _one(map_: Map, axis: int, place: int, tensor: Tensor) -> Map:
    """Return one row, column or channel of a map."""
    view, shape = map_.view, _with(map_.shape, axis, 1)
    if isinstance(view, Box):
        step = (*view.steps, 1)[axis]
        start = _with(view.start, axis, view.start[axis] + place * step)
        return replace(map_, view=replace(view, shape=shape, start=start))
    offset = view.offset_bytes + place * view.strides_bytes[axis]
    one = replace(view, shape=shape, offset_bytes=offset)
    return replace(map_, view=as_box(one, tensor))


def _with(shape: Shape, axis: int, value: int) -> Shape:
    changed = [*shape]
    changed[axis] = value
    return changed[0], changed[1], changed[2]
