"""Let convolutions write the channels that a constant would be copied to.

A map padded with channels, so that a narrow map can be added to a wide one, is written by copies of
a constant: a whole operation, and bytes out of slow memory. A convolution gives any constant in
further channels, with weights of zero and the bias that gives it. Through operations that compute
each channel by itself the wish goes on to what they read: a sum of two zeros is zero.

Conditions: the constant is one number at all positions; it stands for zero where a sum or an
average gives it; all on the way are boxes of tensors that the caller does not see. Channels that
were not read before are new ones. Numbers that were there stay: exact."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mizzen.targets.ethos_u.generator.arrange.copies import is_identity
from mizzen.targets.ethos_u.generator.arrange.units import identity_scales
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Box,
    Chain,
    ChannelScales,
    Computation,
    Convolution,
    Copy,
    Elementwise,
    Map,
    Operation,
    Pooling,
    Role,
    Scalar,
    Sequence,
    Tensor,
    maps_read,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.machine.commands_values import AccFormat, ElementwiseMode, PoolingMode

ZERO_OF_ZEROS = (
    ElementwiseMode.ADD, ElementwiseMode.SUB, ElementwiseMode.MUL, ElementwiseMode.MIN,
    ElementwiseMode.MAX,
)  # fmt: skip


def without_constant(sequence: Sequence, index: int) -> Sequence | None:
    """Return a sequence in which others write the constant channels that `index` copies.

    None where it copies no constant, or an operation on the way has no form for that.
    """
    operation = sequence.operations[index]
    value = _constant(operation, sequence)
    if value is None or not isinstance(operation, Pooling):
        return None
    box, height_width = operation.ofm.view, sequence.tensors[operation.ofm.tensor].shape[:2]
    if not isinstance(box, Box) or box.shape[:2] != height_width:
        return None
    draft = _Draft(
        tensors=list(sequence.tensors),
        operations=list(sequence.operations),
        sequence=sequence,
        leaves=index,
    )
    if not draft.hold(box.tensor, box.start[2], box.shape[2], value):
        return None
    del draft.operations[index]
    return replace(sequence, tensors=tuple(draft.tensors), operations=tuple(draft.operations))


def _constant(operation: Operation, sequence: Sequence) -> int | None:
    """Return the one number that an operation copies; None where it copies none."""
    if not is_identity(operation):
        return None
    tensor = sequence.tensors[tensors_read(operation)[0]]
    if tensor.role is not Role.CONSTANT or tensor.data is None:
        return None
    values = np.frombuffer(tensor.data.tobytes(), tensor.dtype)
    return int(values[0]) if values.size and (values == values[0]).all() else None


@dataclass(slots=True)
class _Draft:
    """Tensors and operations that are changed, and the copy that is to leave."""

    tensors: list[Tensor]
    operations: list[Operation]
    sequence: Sequence
    leaves: int

    def hold(self, tensor: int, start: int, count: int, value: int) -> bool:
        """Let channels of a tensor hold a number at all positions; whether that can be.

        They are those that the copy wrote, or new ones after the last.
        """
        held = self.tensors[tensor]
        if start == held.shape[2] and not self._grow(tensor, count):
            return False
        positions = 0
        for place, operation in enumerate(self.operations):
            if place == self.leaves or tensor_written(operation) != tensor:
                continue
            if isinstance(operation, Copy | Chain) or not isinstance(operation.ofm.view, Box):
                return False
            box = operation.ofm.view
            if box.start[2] + box.shape[2] != start:
                if box.start[2] < start + count and start < box.start[2] + box.shape[2]:
                    return False
                continue
            if not self._extend(place, operation, count, value):
                return False
            positions += math.prod(box.shape[:2])
        return positions == math.prod(held.shape[:2])

    def _grow(self, tensor: int, count: int) -> bool:
        """Add channels to a tensor."""
        grown = self.tensors[tensor]
        seen = (*self.sequence.inputs, *self.sequence.outputs)
        if grown.role is not Role.SCRATCH or tensor in seen:
            return False
        for operation in self.operations:
            if isinstance(operation, Copy):
                if tensor in (operation.source, operation.destination):
                    return False
                continue
            views = (map_.view for map_ in (*maps_read(operation), operation.ofm))
            if any(view.tensor == tensor and not isinstance(view, Box) for view in views):
                return False
        height, width, depth = grown.shape
        self.tensors[tensor] = replace(grown, shape=(height, width, depth + count))
        return True

    def _extend(self, place: int, operation: Computation, count: int, value: int) -> bool:
        """Let an operation write so many further channels, of one number."""
        if operation.order != AS_COMPUTED:
            return False
        ofm = _deeper(operation.ofm, count)
        activation = operation.activation
        clipped = not activation.minimum <= value <= activation.maximum
        if activation.table is not None or activation.function != "RELU" or clipped:
            return False
        match operation:
            case Convolution(depthwise=False, accumulators=AccFormat.I32, written=None):
                self.operations[place] = _more_outputs(operation, ofm, value)
                return True
            case Elementwise():
                return self._extend_elements(place, operation, ofm, value)
            case Pooling():
                return self._extend_pool(place, operation, ofm, value)
            case _:
                return False

    def _extend_elements(self, place: int, operation: Elementwise, ofm: Map, value: int) -> bool:
        count = ofm.shape[2] - operation.ofm.shape[2]
        if operation.mode not in ZERO_OF_ZEROS or value != operation.ofm.zero_point:
            return False
        if (
            operation.ifm2 is None
            or isinstance(operation.ifm2, Scalar)
            or operation.ofm.dtype.itemsize > 2
        ):
            return False
        changed = replace(operation, ofm=ofm)
        for name, map_ in (("ifm", operation.ifm), ("ifm2", operation.ifm2)):
            if map_.shape != operation.ofm.shape or not self._wish(map_, count, map_.zero_point):
                return False
            changed = replace(changed, **{name: _deeper(map_, count)})
        self.operations[place] = changed
        return True

    def _extend_pool(self, place: int, operation: Pooling, ofm: Map, value: int) -> bool:
        count = ofm.shape[2] - operation.ofm.shape[2]
        if operation.mode is PoolingMode.REDUCE_SUM or value != operation.ofm.zero_point:
            return False
        padded = operation.mode is PoolingMode.MAX and any(operation.kernel.pads)
        if padded or not self._wish(operation.ifm, count, operation.ifm.zero_point):
            return False
        self.operations[place] = replace(operation, ifm=_deeper(operation.ifm, count), ofm=ofm)
        return True

    def _wish(self, map_: Map, count: int, value: int) -> bool:
        """Let the channels after those that are read hold a number."""
        if not isinstance(map_.view, Box):
            return False
        read = self.tensors[map_.tensor]
        end = map_.view.start[2] + map_.view.shape[2]
        return end == read.shape[2] and self.hold(map_.tensor, end, count, value)


def _deeper(map_: Map, count: int) -> Map:
    view = map_.view
    assert isinstance(view, Box), "only boxes are extended"
    height, width, depth = view.shape
    return replace(map_, view=replace(view, shape=(height, width, depth + count)))


def _more_outputs(operation: Convolution, ofm: Map, value: int) -> Convolution:
    """Return a convolution that writes a number in further channels."""
    count, scales = ofm.shape[2] - operation.ofm.shape[2], operation.scales
    biases = np.full(count, value - operation.ofm.zero_point, np.int64)
    more = identity_scales(count, biases)
    return replace(
        operation,
        ofm=ofm,
        weights=np.pad(operation.weights, ((0, count), (0, 0), (0, 0), (0, 0))),
        scales=ChannelScales(
            np.append(scales.biases, more.biases),
            np.append(scales.multipliers, more.multipliers),
            np.append(scales.shifts, more.shifts),
        ),
    )
