"""Which bytes hold something that is still needed, operation by operation.

A value is what one write leaves: its bytes live from there to the last operation that reads any of
them before they are overwritten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.report.memory import Use
from mizzen.targets.ethos_u.judge.hazards.intervals import Intervals, merged

TABLE_CELLS = 1 << 24
"""Bytes of a table of what is alive, of which there are as many as it takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """An operation's write to an area of memory, or its read.

    name   of what it writes; None for a read
    grain  bytes that belong together: gaps that are shorter hold nothing else
    """

    operation: int
    area: str
    bytes: Intervals
    name: str | None = None
    use: Use = Use.FEATURE_MAP
    grain: int = 1


@dataclass(slots=True, eq=False)
class Value:
    """What a write left, and until when it is needed."""

    name: str
    area: str
    use: Use
    bytes: Intervals
    first: int
    last: int
    grain: int = 1

    @property
    def taken(self) -> Intervals:
        """The bytes, and what is left of their grains."""
        if self.grain == 1:
            return self.bytes
        starts, ends = self.bytes.starts, self.bytes.ends
        low = starts[0]
        whole = -(-(ends - low) // self.grain) * self.grain + low
        return merged((starts - low) // self.grain * self.grain + low, whole)


def values_of(events: Sequence[Event]) -> list[Value]:
    """Follow the bytes of one area through the events of an inference, in their order."""
    edges = _edges(event.bytes for event in events)
    owner = np.full(max(len(edges) - 1, 0), -1, np.int64)
    values: list[Value] = []
    for event in events:
        pieces = _pieces(edges, event.bytes)
        if event.name is None:
            for index in np.unique(owner[pieces]).tolist():
                if index >= 0:
                    values[index].last = event.operation
            continue
        owners: list[int] = np.unique(owner[pieces]).tolist()
        if len(owners) == 1 and owners[0] >= 0 and values[owners[0]].use is Use.STATE:
            continue  # the next value of state lies where the last one did
        owner[pieces] = len(values)
        at = event.operation
        value = Value(event.name, event.area, event.use, event.bytes, at, at, event.grain)
        values.append(value)
    return values


def _edges(sets: Iterable[Intervals]) -> npt.NDArray[np.int64]:
    sides = [side for intervals in sets for side in (intervals.starts, intervals.ends)]
    return np.unique(np.concatenate(sides)) if sides else np.zeros(0, np.int64)


def _pieces(edges: npt.NDArray[np.int64], bytes_: Intervals) -> npt.NDArray[np.int64]:
    """Return the pieces between edges that some bytes consist of."""
    starts = np.searchsorted(edges, bytes_.starts)
    counts = np.searchsorted(edges, bytes_.ends) - starts
    steps = np.ones(int(counts.sum()), np.int64)
    if not len(steps):
        return steps
    steps[0] = starts[0]
    behind = np.cumsum(counts)[:-1]
    steps[behind] = starts[1:] - (starts[:-1] + counts[:-1] - 1)
    return np.cumsum(steps)


@dataclass(slots=True)
class _Cluster:
    """Values of one name that are parts of one tensor."""

    values: list[Value] = field(default_factory=list[Value])
    start: int = 0
    end: int = 0
    last: int = 0


def joined(values: Iterable[Value]) -> list[Value]:
    """Put parts of one tensor together, as stripes that operations write one after the other.

    Parts have one name, lie at or over one another, and are there at the same time.
    """
    open_: defaultdict[tuple[str, Use], list[_Cluster]] = defaultdict(list)
    clusters: list[_Cluster] = []
    for value in values:
        cluster = next(
            (each for each in open_[value.name, value.use] if _is_part(each, value)), None
        )
        if cluster is None:
            cluster = _Cluster([], value.bytes.first, value.bytes.end, value.last)
            open_[value.name, value.use].append(cluster)
            clusters.append(cluster)
        cluster.values.append(value)
        cluster.start = min(cluster.start, value.bytes.first)
        cluster.end = max(cluster.end, value.bytes.end)
        cluster.last = max(cluster.last, value.last)
    return _told_apart([_united(each.values) for each in clusters])


def _told_apart(values: Sequence[Value]) -> list[Value]:
    """Say of what an operation leaves for others of the same operator that it is not the result.

    The result is what is left last; what lies at the same place is an earlier part of it.
    """
    results = {value.name: value for value in values}
    return [
        value
        if _is_result(value, results[value.name])
        else replace(value, name=f"inside {value.name}")
        for value in values
    ]


def _is_result(value: Value, result: Value) -> bool:
    same = (value.bytes.first, value.bytes.end) == (result.bytes.first, result.bytes.end)
    return same or value.use is not Use.FEATURE_MAP or value.area != result.area


def _is_part(cluster: _Cluster, value: Value) -> bool:
    touches = value.bytes.first <= cluster.end and cluster.start <= value.bytes.end
    return touches and value.first < cluster.last


def _united(values: Sequence[Value]) -> Value:
    if len(values) == 1:
        return values[0]
    starts = np.concatenate([value.taken.starts for value in values])
    ends = np.concatenate([value.taken.ends for value in values])
    first, last = min(value.first for value in values), max(value.last for value in values)
    return Value(
        values[0].name,
        values[0].area,
        values[0].use,
        merged(starts, ends),
        first,
        last,
        values[0].grain,
    )


def live_bytes(values: Sequence[Value], operations: int) -> tuple[int, ...]:
    """Return how many bytes of one area are alive at each operation; shared bytes count once."""
    edges = _edges(value.taken for value in values)
    sizes = np.diff(edges)
    live: list[int] = []
    block = max(1, TABLE_CELLS // max(1, len(sizes)))
    pieces = [_pieces(edges, value.taken) for value in values]
    for start in range(0, operations, block):
        stop = min(operations, start + block)
        alive: npt.NDArray[Any] = np.zeros((len(sizes), stop - start), np.bool_)
        for value, taken in zip(values, pieces, strict=True):
            low, high = max(value.first, start), min(value.last + 1, stop)
            if low < high:
                alive[taken, low - start : high - start] = True
        live += (sizes @ alive).tolist()
    return tuple(live)
