"""Bytes that go from one tensor to another as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Bytes,
    Copy,
    Kernel,
    Map,
    Operation,
    Pooling,
    Scale,
)
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode

SIGNED_BYTE = np.dtype(np.int8)
TRANSFERRED_BYTES = 16
"""Ends and lengths of transfers of U55 are multiples. Ref: Vela 5.2.0, check_dma_op."""
LONGEST_MAP = 1 << 16
"""Of a map along each axis."""

End = tuple[int, int]
"""A tensor, and a byte of it."""
Run = tuple[int, int]
"""The first of some bytes, and how many there are."""


def carried(
    origin: Origin, source: End, destination: End, runs: Sequence[Run]
) -> Iterator[Operation]:
    """Yield what brings runs of bytes from one tensor to another, each counted from both ends.

    U55 transfers whole lines of memory only; fewer bytes go through the array, which changes none.
    Runs of one length at equal distances go there at once.
    """
    for start, length, count, distance in _series(runs):
        ends = (source[0], source[1] + start), (destination[0], destination[1] + start)
        is_aligned = not any(
            number % TRANSFERRED_BYTES for number in (ends[0][1], ends[1][1], length)
        )
        if count == 1 and (is_aligned or length > LONGEST_MAP):
            yield Copy(origin, *ends[0], *ends[1], length)
        else:
            yield _through_array(origin, ends, length, count, distance)


def _series(runs: Sequence[Run]) -> Iterator[tuple[int, int, int, int]]:
    """Yield start and length of the first of runs that are alike, how many, and their distance."""
    first = 0
    while first < len(runs):
        start, length = runs[first]
        distance = runs[first + 1][0] - start if first + 1 < len(runs) else length
        count = 1
        while runs[first + count : first + count + 1] == [(start + count * distance, length)]:
            count += 1
        yield start, length, count, distance
        first += count


def _through_array(
    origin: Origin, ends: tuple[End, End], length: int, count: int, distance: int
) -> Pooling:
    strides = count * distance, distance, 1
    ifm, ofm = (
        Map(Bytes(tensor, (1, count, length), at, strides), SIGNED_BYTE) for tensor, at in ends
    )
    unchanged = Activation(-128, 127)
    return Pooling(origin, PoolingMode.AVERAGE, ifm, ofm, Kernel(), Scale(1, 0), unchanged)
