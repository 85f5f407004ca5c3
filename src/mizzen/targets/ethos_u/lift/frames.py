"""The map that several views of one run of bytes have in common, if they have one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from mizzen.targets.ethos_u.generator.operations import BRICK, Box, Bytes, Shape
from mizzen.targets.ethos_u.machine.commands_values import Layout


@dataclass(frozen=True, slots=True)
class View:
    """A view over a region and the bytes of its elements; whether it is written."""

    view: Bytes
    itemsize: int
    written: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole map from an address on: views are boxes of it.

    pitch_y     bytes between rows
    pitch_x     bytes between columns, in NHWC; between bricks of channels in NHCWB16
    """

    layout: Layout
    start: int
    shape: Shape
    pitch_y: int
    pitch_x: int
    itemsize: int

    def box(self, row: View) -> Box | None:
        """Return the box that a view is; None if it is not one. The tensor is left 0."""
        view = row.view
        if row.itemsize != self.itemsize or view.tiles is not None:
            return None
        offset = view.offset_bytes - self.start
        if offset < 0:
            return None
        found = (
            self._flat(view, offset) if self.layout is Layout.NHWC else self._brick(view, offset)
        )
        return found if found and self._has(found) else None

    def _has(self, box: Box) -> bool:
        (height, width, depth), (y, x, c), (down, across) = box.shape, box.start, box.steps
        return (
            y + (height - 1) * down < self.shape[0]
            and x + (width - 1) * across < self.shape[1]
            and c + depth <= self.shape[2]
        )

    def _flat(self, view: Bytes, offset: int) -> Box | None:
        across = _flat_pitch(view, self.itemsize)
        if across is None:
            return None
        (height, width, _), down = view.shape, view.strides_bytes[0]
        y, rest = divmod(offset, self.pitch_y)
        x, rest = divmod(rest, self.pitch_x)
        c, rest = divmod(rest, self.itemsize)
        steps = _steps(height, down, self.pitch_y), _steps(width, across, self.pitch_x)
        if rest or steps[0] is None or steps[1] is None:
            return None
        return Box(0, view.shape, (y, x, c), (steps[0], steps[1]))

    def _brick(self, view: Bytes, offset: int) -> Box | None:
        (height, width, depth), (down, across, brick) = view.shape, view.strides_bytes
        pixel = BRICK * self.itemsize
        if view.layout is Layout.NHWC:
            if width > 1 and across != pixel:
                return None
            brick = pixel
        if depth > BRICK and brick != self.pitch_x:
            return None
        y, rest = divmod(offset, self.pitch_y)
        c, rest = divmod(rest, self.pitch_x)
        x, rest = divmod(rest, pixel)
        step = _steps(height, down, self.pitch_y)
        if rest or step is None:
            return None
        return Box(0, view.shape, (y, x, c * BRICK), (step, 1))


def _steps(count: int, stride: int, pitch: int) -> int | None:
    if count == 1:
        return 1
    return stride // pitch if stride > 0 and stride % pitch == 0 else None


def _flat_pitch(view: Bytes, itemsize: int) -> int | None:
    """Return the bytes between columns of a view whose channels follow each other, else None."""
    _, width, depth = view.shape
    if view.layout is Layout.NHWC:
        return view.strides_bytes[1]
    if depth <= BRICK:
        return BRICK * itemsize
    if width == 1 and view.strides_bytes[2] == BRICK * itemsize:
        return BRICK * itemsize
    return None


def is_flat(row: View) -> bool:
    """Return whether the channels of a view follow each other, so that it is a view of NHWC."""
    return row.view.tiles is None and _flat_pitch(row.view, row.itemsize) is not None


def flattened(row: View) -> Bytes:
    """Return a view whose channels follow each other as one of NHWC."""
    view, across = row.view, _flat_pitch(row.view, row.itemsize)
    assert across is not None
    if view.layout is Layout.NHWC:
        return view
    strides = view.strides_bytes[0], across, row.itemsize
    return Bytes(view.tensor, view.shape, view.offset_bytes, strides)


def frames(
    views: Sequence[View], start: int, stop: int, shape: Shape | None, itemsize: int
) -> Iterator[Frame]:
    """Return the maps that bytes `start .. stop` may hold, the likeliest first.

    `shape` is what the program's interface says of them.
    """
    if shape is not None:
        yield whole(start, shape, itemsize)
    ordered = sorted(views, key=lambda row: not row.written)
    same = [row for row in ordered if row.itemsize == itemsize and row.view.tiles is None]
    bricks = [row.view for row in same if row.view.layout is Layout.NHCWB16]
    for down, across in _unique((view.strides_bytes[0], view.strides_bytes[2]) for view in bricks):
        pixel = BRICK * itemsize
        if across > 0 and across % pixel == 0 and down > 0 and down % across == 0:
            made = _frame(Layout.NHCWB16, start, stop, down, across, itemsize)
            yield _narrowed(made, same)
    flat = [flattened(row) for row in same if is_flat(row)]
    pairs = _unique((view.strides_bytes[0], view.strides_bytes[1]) for view in flat)
    rows = dict.fromkeys([*(down for down, _ in pairs), stop - start])
    columns = dict.fromkeys(across for _, across in pairs)
    for down, across in _unique([*pairs, *product(rows, columns)]):
        if across > 0 and across % itemsize == 0 and down > 0 and down % across == 0:
            yield _frame(Layout.NHWC, start, stop, down, across, itemsize)


def whole(start: int, shape: Shape, itemsize: int) -> Frame:
    """Return a dense map in NHWC."""
    _, width, depth = shape
    return Frame(Layout.NHWC, start, shape, width * depth * itemsize, depth * itemsize, itemsize)


def _frame(layout: Layout, start: int, stop: int, down: int, across: int, itemsize: int) -> Frame:
    height = -(-(stop - start) // down)
    if layout is Layout.NHCWB16:
        shape = height, across // (BRICK * itemsize), BRICK * (down // across)
    else:
        shape = height, down // across, across // itemsize
    return Frame(layout, start, shape, down, across, itemsize)


def _narrowed(frame: Frame, views: Sequence[View]) -> Frame:
    """Return a map in bricks with no more channels than its views have."""
    boxes = [box for box in map(frame.box, views) if box]
    depth = max((box.start[2] + box.shape[2] for box in boxes), default=frame.shape[2])
    height, width, _ = frame.shape
    shape = height, width, depth
    return Frame(frame.layout, frame.start, shape, frame.pitch_y, frame.pitch_x, frame.itemsize)


def _unique(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    return list(dict.fromkeys(pairs))


def best(
    views: Sequence[View], start: int, stop: int, shape: Shape | None, itemsize: int
) -> Frame | None:
    """Return the map of which most views are boxes; None if none of them is of any map."""
    found: Frame | None = None
    most = 0
    for frame in frames(views, start, stop, shape, itemsize):
        count = sum(frame.box(row) is not None for row in views)
        if count > most:
            found, most = frame, count
        if count == len(views):
            break
    return found
