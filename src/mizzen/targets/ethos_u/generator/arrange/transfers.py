"""Copies of long runs as transfers, which U85 does beside what the array is at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.targets.ethos_u.generator.arrange.strided import freed, replaced
from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Bytes,
    Copy,
    Operation,
    Pooling,
    Sequence,
    as_bytes,
)

MOST_RUNS = 8
"""Transfers for one copy: more take longer to issue than they save."""

LEAST_BYTES = 1024
"""Of a copy: what waits for a transfer begins with empty buffers."""

UNIT_BYTES = 16
"""What transfers start and end at."""


def transferred(sequence: Sequence) -> Sequence:
    """Return a sequence in which transfers do what copies of long runs do."""
    changes = {
        index: moves
        for index, operation in enumerate(sequence.operations)
        if (moves := tuple(_transfers(operation, sequence)))
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
