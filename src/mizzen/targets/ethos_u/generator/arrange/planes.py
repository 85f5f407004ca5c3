"""1x1 convolutions over tensors in planes of bricks, which they may see in any shape.

Ref: `operations.planes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Rows
from dataclasses import replace

from mizzen.targets.ethos_u.generator.arrange.orientation import NEVER, Estimate
from mizzen.targets.ethos_u.generator.arrange.strided import (
    is_planes,
)
from mizzen.targets.ethos_u.generator.arrange.views import positions_view, view_shapes
from mizzen.targets.ethos_u.generator.operations import (
    Chain,
    Computation,
    Convolution,
    Copy,
    Kernel,
    Operation,
    Planes,
    Pooling,
    Role,
    Sequence,
    Shape,
    maps_read,
    replaced,
    tensor_written,
    tensors_read,
    with_maps,
)
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode
from mizzen.targets.ethos_u.machine.config import Accelerator


def in_planes(sequence: Sequence, accelerator: Accelerator, estimate: Estimate) -> Sequence:
    """Return a sequence in which 1x1 convolutions see their maps, in planes, in the best shape.

    Of those, the ones that cost less so with what else sees these tensors; the same sequence if
    there are none.
    """
    users = _users(sequence)
    for index, operation in enumerate(sequence.operations):
        if isinstance(operation, Convolution) and operation.kernel == Kernel():
            shapes = view_shapes(operation, accelerator)
            sequence = _reshaped(sequence, index, users, shapes, estimate)
    return sequence


def _reshaped(
    sequence: Sequence,
    index: int,
    users: dict[int, list[int]],
    shapes: Iterable[Shape],
    estimate: Estimate,
) -> Sequence:
    """Return a sequence with the best view of one operation, of those with these shapes."""
    operation = sequence.operations[index]
    assert isinstance(operation, Convolution), "it is one"
    tensors = operation.ifm.tensor, operation.ofm.tensor
    seen = sorted({user for tensor in tensors for user in users.get(tensor, ())})
    planes: Sequence | None = sequence
    for tensor in tensors:
        planes = planes and _in_planes(planes, tensor, users.get(tensor))
    if planes is None:
        return sequence
    best, least = sequence, _cost(sequence, seen, estimate)
    for height, width, _ in shapes:
        trial = positions_view(planes, index, (height, width))
        cost = NEVER if trial is None else _cost(trial, seen, estimate)
        if trial is not None and cost < least:
            best, least = trial, cost
    return best


def _users(sequence: Sequence) -> dict[int, list[int]]:
    """Return the operations of each tensor that no one else sees."""
    users: dict[int, list[int]] = {
        index: []
        for index, tensor in enumerate(sequence.tensors)
        if tensor.role is Role.SCRATCH and index not in (*sequence.inputs, *sequence.outputs)
    }
    for index, operation in enumerate(sequence.operations):
        for tensor in {*tensors_read(operation), tensor_written(operation)}:
            if tensor in users:
                users[tensor].append(index)
    return users


def _cost(sequence: Sequence, indices: Rows[int], estimate: Estimate) -> float:
    total = 0.0
    for index in indices:
        operation = sequence.operations[index]
        assert not isinstance(operation, Copy), "it has no map"
        maps = (*maps_read(operation), operation.ofm)
        total += estimate(operation, tuple(sequence.tensors[map_.tensor].layout for map_ in maps))
    return total


def _in_planes(sequence: Sequence, index: int, users: Rows[int] | None) -> Sequence | None:
    """Return a sequence with a tensor in planes; None where not all of its users can see it so."""
    if users is None:
        return None
    operations = [sequence.operations[user] for user in users]
    if all(_sees_planes(operation, index) for operation in operations):
        return sequence
    tensor = sequence.tensors[index]
    planes = Planes(tensor)
    changes: dict[int, tuple[Operation, ...]] = {}
    for user, operation in zip(users, operations, strict=True):
        if isinstance(operation, Copy | Chain) or _needs_rows(operation, index):
            return None
        changed = _changed(operation, index, planes)
        if changed is None:
            return None
        changes[user] = (changed,)
    tensors = list(sequence.tensors)
    tensors[index] = planes.in_planes
    return replaced(sequence, changes, tensors=tuple(tensors))


def _sees_planes(operation: Operation, tensor: int) -> bool:
    """Whether all that an operation sees of a tensor is in planes already."""
    if isinstance(operation, Copy):
        return False
    maps = (*maps_read(operation), operation.ofm)
    return all(is_planes(map_.view) for map_ in maps if map_.tensor == tensor)


def _needs_rows(operation: Computation, tensor: int) -> bool:
    """Whether an operation adds up channels, which it takes in NHWC."""
    adds = isinstance(operation, Pooling) and operation.mode is PoolingMode.REDUCE_SUM
    return adds and operation.ifm.tensor == tensor


def _changed(operation: Computation, tensor: int, planes: Planes) -> Computation | None:
    maps = [map_ for map_ in (*maps_read(operation), operation.ofm) if map_.tensor == tensor]
    views = {map_: planes.view(map_) for map_ in maps}
    if None in views.values() or not all(planes.has_rows(map_) for map_ in maps):
        return None
    return with_maps(
        operation,
        lambda map_: (
            replace(map_, view=views[map_] or map_.view) if map_.tensor == tensor else map_
        ),
    )
