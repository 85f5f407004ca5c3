"""Rolling buffers unrolled: rows that are written over older ones get a place of their own.

A compiler that works by stripes keeps only as many rows of a map as the next operation needs. Every
row is told by its address and by when it was written, so that the map can be put together.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from mizzen.targets.ethos_u.generator.operations import BRICK, Bytes, Copy, Map
from mizzen.targets.ethos_u.lift import stripes
from mizzen.targets.ethos_u.lift.footprints import view_of
from mizzen.targets.ethos_u.lift.stream import Step, maps_of, with_maps
from mizzen.targets.ethos_u.lift.values import Values
from mizzen.targets.ethos_u.machine.commands_values import Layout

FIRST = 1 << 10
"""Number of the first region that is a map of its own, beyond all real ones."""


def unrolled(steps: list[Step], values: Values, kept: set[int]) -> list[Step]:
    """Return steps in which maps that were kept by few rows are whole; not those to be kept."""
    found = list(steps)
    for places in stripes.families(steps):
        pieces = [found[place] for place in places]
        if stripes.inputs(pieces, values) is not None:
            tensors = {values.of(step.written) for step in pieces}
            if not _is_plain(pieces, tensors) and not tensors & kept:
                _unroll(found, tensors, values)
    for tensor in _tiled(found, values) - kept:
        _unroll(found, {tensor}, values)
    return found


def _is_plain(pieces: list[Step], tensors: set[int]) -> bool:
    """Return whether stripes lie one below the other already."""
    pairs = pairwise(pieces)
    return len(tensors) == 1 and all(stripes.follows(one, other) for one, other in pairs)


def _tiled(steps: list[Step], values: Values) -> set[int]:
    """Return the tensors whose rows go on elsewhere."""
    return {
        values.of(piece)
        for step in steps
        for piece, row in maps_of(step)
        if piece is not None and view_of(row).tiles is not None
    }


def _rows(view: Bytes) -> list[int] | None:
    """Return the address of each row; None where columns go on elsewhere."""
    height, width, _ = view.shape
    down, tiles = view.strides_bytes[0], view.tiles
    if tiles is None:
        return [view.offset_bytes + down * row for row in range(height)]
    if width > tiles.width_0:
        return None
    first, below = tiles.height_0, tiles.offsets_bytes[1]
    return [
        view.offset_bytes + down * row if row < first else below + down * (row - first)
        for row in range(height)
    ]


def _unroll(steps: list[Step], tensors: set[int], values: Values) -> None:
    """Move the rows of a map to addresses of their own, if all that sees it sees rows.

    `tensors` hold it one after the other.
    """
    seen = {
        place: step
        for place, step in enumerate(steps)
        if any(
            piece is not None and values.of(piece) in tensors
            for piece in (*step.reads, step.written)
        )
    }
    known = {step.written for step in seen.values()}
    members = {piece for tensor in tensors for piece in values.members(tensor)}
    if not members <= known or any(isinstance(step.operation, Copy) for step in seen.values()):
        return
    rows = _Rows(values.new_region(FIRST))
    for place, step in list(seen.items()):
        maps: list[tuple[int | None, Map]] = []
        for index, (piece, row) in enumerate(pairs := maps_of(step)):
            moved: Map | None = row
            if piece is not None and values.of(piece) in tensors:
                moved = rows.written(row) if index == len(pairs) - 1 else rows.read(row)
            if moved is None:
                return
            maps.append((piece, moved))
        seen[place] = with_maps(step, maps)
    for place, step in seen.items():
        steps[place] = step
    values.move(values.join(sorted(members)), rows.region, rows.count * rows.pitch)


class _Rows:
    """The rows of a map: how many were written, and which lies at an address now."""

    def __init__(self, region: int) -> None:
        self.region = region
        self.count = 0
        self.pitch = 0
        self._kind: object = None
        self._extent = (0, 0)
        self._phase = 0
        self._at: dict[int, int] = {}

    def written(self, row: Map) -> Map | None:
        """Return where rows go on that are written now; None if they are not of this map."""
        view, itemsize = view_of(row), row.dtype.itemsize
        places = _rows(view)
        if places is None:
            return None
        if self._kind is None:
            self._kind, self._extent = _kind(view, itemsize), view.shape[1:]
            self.pitch = view.strides_bytes[0]
            self._phase = places[0] % self.pitch if self.pitch > 0 else 0
            if self.pitch <= 0 or _span(view, itemsize) > self.pitch:
                return None
        if _kind(view, itemsize) != self._kind or view.shape[1:] != self._extent:
            return None
        first = self.count
        for number, place in enumerate(places):
            if place % self.pitch != self._phase:
                return None
            self._at[place] = first + number
        self.count += len(places)
        return self._placed(row, first)

    def read(self, row: Map) -> Map | None:
        """Return where rows lie that are read now; None if they do not follow each other."""
        view, itemsize = view_of(row), row.dtype.itemsize
        places = _rows(view)
        if places is None or self._kind != _kind(view, itemsize):
            return None
        if any(mine > theirs for mine, theirs in zip(view.shape[1:], self._extent, strict=True)):
            return None
        first = self._at.get(places[0])
        if first is None:
            return None
        if any(self._at.get(place) != first + row for row, place in enumerate(places)):
            return None
        return self._placed(row, first)

    def _placed(self, row: Map, first: int) -> Map:
        view = replace(
            view_of(row), tensor=self.region, offset_bytes=first * self.pitch, tiles=None
        )
        return replace(row, view=view)


def _kind(view: Bytes, itemsize: int) -> object:
    """Return what rows of one map have in common."""
    down, across, brick = view.strides_bytes
    return itemsize, view.layout, down, across if view.layout is Layout.NHWC else brick


def _span(view: Bytes, itemsize: int) -> int:
    """Return the bytes from the first to the last of a row."""
    (_, width, depth), (_, across, brick) = view.shape, view.strides_bytes
    if view.layout is Layout.NHWC:
        return (width - 1) * across + depth * itemsize if across > 0 else 1 << 62
    return -(-depth // BRICK) * brick if brick >= width * BRICK * itemsize else 1 << 62
