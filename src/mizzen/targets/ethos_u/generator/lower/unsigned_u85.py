"""Unsigned bytes that operations read and write as they are, where the graph has signed ones.

A network of unsigned bytes is computed with signed ones, 128 less: a pool brings its inputs there
and its outputs back. What takes a zero point off reads unsigned bytes as well, with 128 more as
zero point; what adds one writes them. So most of these pools are for nothing. On U85 they are slow:
a map of three channels takes as long as one of sixteen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Box,
    Convolution,
    Elementwise,
    Kernel,
    Map,
    Operation,
    Pooling,
    Role,
    Scale,
    Sequence,
    rewritten,
    tensor_written,
    tensors_read,
    with_maps,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ClipRange,
    ElementwiseMode,
    PoolingMode,
    UpscaleMode,
)

UINT8 = np.dtype(np.uint8)
INT8 = np.dtype(np.int8)
OFFSET = 128
"""By how much an unsigned byte is more than the signed one that stands for it."""
OF_ZERO_POINTS = (ElementwiseMode.ADD, ElementwiseMode.SUB, ElementwiseMode.MUL)


def with_unsigned(sequence: Sequence) -> Sequence:
    """Return a sequence without pools between signed and unsigned bytes, where it needs none."""
    return rewritten(sequence, _without)


def _without(sequence: Sequence, index: int) -> Sequence:
    """Return a sequence without pool `index`; the same where it is none such, or has to be."""
    pool = sequence.operations[index]
    if not isinstance(pool, Pooling) or not _is_whole(sequence, pool):
        return sequence
    types, zeros = (pool.ifm.dtype, pool.ofm.dtype), (pool.ifm.zero_point, pool.ofm.zero_point)
    if (types, zeros) == ((UINT8, INT8), (OFFSET, 0)):
        return _seen(sequence, index, pool.ofm.tensor, pool.ifm.tensor, _reading)
    if (types, zeros) == ((INT8, UINT8), (0, OFFSET)):
        return _seen(sequence, index, pool.ifm.tensor, pool.ofm.tensor, _writing)
    return sequence


def _is_whole(sequence: Sequence, pool: Pooling) -> bool:
    """Whether a pool gives all numbers of a tensor, in their order."""
    activation = pool.activation
    source, made = (sequence.tensors[each.tensor].shape for each in (pool.ifm, pool.ofm))
    return (
        pool.mode is PoolingMode.AVERAGE
        and pool.kernel == Kernel()
        and pool.upscale is UpscaleMode.NONE
        and pool.scale == Scale(1, 0)
        and pool.order == AS_COMPUTED
        and activation.table is None
        and activation.maximum - activation.minimum >= 2 * OFFSET - 1
        and (pool.ifm.view, pool.ofm.view) == (Box(pool.ifm.tensor, source),
                                               Box(pool.ofm.tensor, made))
        and source == made
    )  # fmt: skip


Change = Callable[[Operation, int, int], Operation | None]


def _seen(sequence: Sequence, index: int, signed: int, unsigned: int, change: Change) -> Sequence:
    """Return a sequence in which all see unsigned bytes; the same where one of them cannot."""
    ends = (*sequence.inputs, *sequence.outputs)
    if sequence.tensors[signed].role is not Role.SCRATCH or signed in ends:
        return sequence
    operations: list[Operation] = []
    for place, operation in enumerate(sequence.operations):
        if place == index:
            continue
        sees = signed in (*tensors_read(operation), tensor_written(operation))
        other = change(operation, signed, unsigned) if sees else operation
        if other is None:
            return sequence
        operations.append(other)
    return replace(sequence, operations=tuple(operations))


def _reading(operation: Operation, signed: int, unsigned: int) -> Operation | None:
    """Return an operation that reads unsigned bytes; None if it has no form for that."""
    match operation:
        case Convolution(written=None):
            pass
        case Pooling(mode=PoolingMode.AVERAGE) if not operation.moves:
            pass
        case _:
            return None
    if operation.ofm.tensor == signed:
        return None
    return with_maps(operation, lambda map_: _unsigned(map_, signed, unsigned))


def _writing(operation: Operation, signed: int, unsigned: int) -> Operation | None:
    """Return an operation that writes unsigned bytes; None if it has no form for that."""
    match operation:
        case Convolution() | Pooling(mode=PoolingMode.AVERAGE):
            pass
        case Elementwise(mode=mode) if mode in OF_ZERO_POINTS:
            pass
        case _:
            return None
    activation = operation.activation
    if (
        activation.table is not None
        or activation.function != "RELU"
        or activation.clip_range is not ClipRange.OFM_PRECISION
        or operation.ofm.dtype != INT8
        or signed in tensors_read(operation)
    ):
        return None
    bounds = activation.minimum + OFFSET, activation.maximum + OFFSET
    clipped = replace(activation, minimum=bounds[0], maximum=bounds[1])
    moved = with_maps(operation, lambda map_: _unsigned(map_, signed, unsigned))
    return replace(moved, activation=clipped)


def _unsigned(map_: Map, signed: int, unsigned: int) -> Map:
    if map_.tensor != signed:
        return map_
    view = replace(map_.view, tensor=unsigned)
    return Map(view, UINT8, map_.zero_point + OFFSET)
