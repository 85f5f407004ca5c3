"""Many copies of single rows or columns as one."""

from __future__ import annotations

from dataclasses import replace

from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Box,
    Kernel,
    Map,
    Operation,
    Pooling,
    Sequence,
)
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode, UpscaleMode


def merged(sequence: Sequence) -> Sequence:
    """Return a sequence in which copies of rows or columns at equal distances are one operation.

    Rules copy row by row where a map is mirrored, or resized by a ratio that strides cannot say.
    """
    operations: list[Operation] = []
    index = 0
    while index < len(sequence.operations):
        count, one = _longest(sequence.operations, index)
        operations.append(one)
        index += count
    if len(operations) == len(sequence.operations):
        return sequence
    return replace(sequence, operations=tuple(operations))


def _longest(operations: tuple[Operation, ...], start: int) -> tuple[int, Operation]:
    """Return how many operations from `start` on are one, and that one."""
    first = operations[start]
    best: tuple[int, Operation] = (1, first)
    if not isinstance(first, Pooling) or not _is_copy(first):
        return best
    for axis in (0, 1):
        joined = _along(operations, start, first, axis)
        best = max(best, joined, key=lambda run: run[0])
    return best


def _is_copy(operation: Pooling) -> bool:
    """Whether each element becomes the one at its place, in another tensor."""
    return (
        operation.mode is PoolingMode.AVERAGE
        and operation.kernel == Kernel()
        and operation.order == AS_COMPUTED
        and operation.upscale is UpscaleMode.NONE
        and isinstance(operation.ifm.view, Box)
        and isinstance(operation.ofm.view, Box)
        and operation.ifm.tensor != operation.ofm.tensor
    )


def _along(
    operations: tuple[Operation, ...], start: int, first: Pooling, axis: int
) -> tuple[int, Operation]:
    """Return how many copies follow each other along an axis, and one of all of them."""
    steps: tuple[int, int] | None = None
    count = 1
    for other in operations[start + 1 :]:
        moved = _moved(first, other, axis)
        if moved is None:
            break
        steps = steps or moved
        if moved != (count * steps[0], count * steps[1]) or (axis == 1 and steps != (1, 1)):
            break
        count += 1
    if steps is None or count == 1:
        return 1, first
    ifm, ofm = (
        _longer(map_, axis, count, step)
        for map_, step in zip((first.ifm, first.ofm), steps, strict=True)
    )
    return count, replace(first, ifm=ifm, ofm=ofm)


def _moved(first: Pooling, other: Operation, axis: int) -> tuple[int, int] | None:
    """Return how far a copy's input and output lie from another's; None if it is another copy."""
    if not isinstance(other, Pooling) or not _is_copy(other):
        return None
    steps: list[int] = []
    for one, two in ((first.ifm, other.ifm), (first.ofm, other.ofm)):
        assert isinstance(one.view, Box)
        assert isinstance(two.view, Box)
        step = two.view.start[axis] - one.view.start[axis]
        start = list(one.view.start)
        start[axis] += step
        moved = replace(one, view=replace(one.view, start=(start[0], start[1], start[2])))
        if moved != two or one.view.shape[axis] != 1 or step < 1:
            return None
        steps.append(step)
    same = replace(other, origin=first.origin, ifm=first.ifm, ofm=first.ofm)
    return (steps[0], steps[1]) if same == first else None


def _longer(map_: Map, axis: int, count: int, step: int) -> Map:
    """Return a map of more rows or columns, so many apart."""
    view = map_.view
    assert isinstance(view, Box)
    shape, steps = list(view.shape), list(view.steps)
    shape[axis], steps[axis] = count, step
    grown = replace(view, shape=(shape[0], shape[1], shape[2]), steps=(steps[0], steps[1]))
    return replace(map_, view=grown)
