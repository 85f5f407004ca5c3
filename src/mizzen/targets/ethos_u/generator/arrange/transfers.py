"""Copies of long runs as transfers, which U85 does beside what the array is at; others as bytes.

What is no transfer, and lies at one position in wide numbers, leaves most of the array idle. As
bytes at many positions it is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mizzen.targets.ethos_u.generator.arrange.strided import freed
from mizzen.targets.ethos_u.generator.arrange.units import whole_range
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    BRICK,
    Bytes,
    Copy,
    Map,
    Operation,
    Pooling,
    Sequence,
    Shape,
    as_bytes,
    replaced,
)
from mizzen.targets.ethos_u.generator.tuned import VIEW_WIDTHS
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode

MOST_RUNS = 8
"""Transfers for one copy: more take longer to issue than they save."""

LEAST_BYTES = 1024
"""Of a copy: what waits for a transfer begins with empty buffers."""

UNIT_BYTES = 16
"""What transfers start and end at."""


def transferred(sequence: Sequence) -> Sequence:
    """Return a sequence in which transfers, or copies of bytes, do what other copies do."""
    changes = {
        index: moves
        for index, operation in enumerate(sequence.operations)
        if (moves := tuple(_transfers(operation, sequence)) or tuple(_bytes(operation, sequence)))
    }
    return freed(replaced(sequence, changes)) if changes else sequence


@dataclass(frozen=True, slots=True)
class _Runs:
    """Where runs of so many bytes start, in the source and in the destination."""

    length_bytes: int
    starts: tuple[tuple[int, int], ...]


def _transfers(operation: Operation, sequence: Sequence) -> Iterator[Operation]:
    """Return the transfers that a copy is; none of another operation."""
    if not isinstance(operation, Pooling) or not operation.moves or operation.order != AS_COMPUTED:
        return
    source, destination = (
        as_bytes(map_.view, sequence.tensors[map_.tensor])
        for map_ in (operation.ifm, operation.ofm)
    )
    if source is None or destination is None or source.tensor == destination.tensor:
        return
    runs = _runs(source, destination)
    if runs is None or runs.length_bytes * len(runs.starts) < LEAST_BYTES:
        return
    for start, to in runs.starts:
        yield Copy(
            operation.origin, source.tensor, start, destination.tensor, to, runs.length_bytes
        )


def _runs(source: Bytes, destination: Bytes) -> _Runs | None:
    """Return the runs of two maps of one shape; None where they are too many or out of step."""
    pairs = zip(source.strides_bytes, destination.strides_bytes, source.shape, strict=True)
    axes = sorted((row for row in pairs if row[2] > 1), key=lambda row: row[0])
    length = min(source.strides_bytes[2], destination.strides_bytes[2])
    starts = [(source.offset_bytes, destination.offset_bytes)]
    for step, other, extent in axes:
        if step == other == length and len(starts) == 1:
            length *= extent
            continue
        if len(starts) * extent > MOST_RUNS:
            return None
        starts = [
            (a + place * step, b + place * other) for a, b in starts for place in range(extent)
        ]
    places = (place for pair in starts for place in pair)
    if length % UNIT_BYTES or any(place % UNIT_BYTES for place in places):
        return None
    return _Runs(length, tuple(starts))


def _bytes(operation: Operation, sequence: Sequence) -> Iterator[Operation]:
    """Return the copy of bytes at many positions that a copy of wide numbers at one position is."""
    if not isinstance(operation, Pooling) or not _copies_wide(operation):
        return
    length_bytes = operation.ofm.elements * operation.ofm.dtype.itemsize
    positions = length_bytes // BRICK
    if operation.ofm.shape[:2] != (1, 1) or length_bytes % BRICK:
        return
    columns = max(count for count in range(1, max(VIEW_WIDTHS) + 1) if not positions % count)
    shape = positions // columns, columns, BRICK
    ifm, ofm = (_seen(map_, sequence, shape) for map_ in (operation.ifm, operation.ofm))
    if ifm is not None and ofm is not None:
        yield replace(
            operation,
            mode=PoolingMode.AVERAGE,
            ifm=ifm,
            ofm=ofm,
            activation=whole_range(ofm.dtype),
        )


def _copies_wide(operation: Pooling) -> bool:
    """Whether it gives the numbers of 16 or 32 bits that it reads, in their order."""
    in_order = operation.order == AS_COMPUTED
    return in_order and operation.ofm.dtype.itemsize > 1 and operation.keeps_numbers


def _seen(map_: Map, sequence: Sequence, shape: Shape) -> Map | None:
    """Return the bytes of a map at one position in a shape."""
    view = as_bytes(map_.view, sequence.tensors[map_.tensor])
    if view is None:
        return None
    strides = shape[1] * shape[2], shape[2], 1
    seen = replace(view, shape=shape, strides_bytes=strides)
    return replace(map_, view=seen, dtype=np.dtype(np.int8), zero_point=0)
