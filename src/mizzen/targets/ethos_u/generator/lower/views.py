"""Where the elements of a value lie: a tensor, a start, and a stride for each axis of the value.

Shapes change here and nothing is moved: RESHAPE, SLICE, TRANSPOSE and REVERSE of a view are views
wherever strides can say them. All numbers are in elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

Ints = tuple[int, ...]

AXES = 3
"""Axes of a feature map: height, width, depth."""

MOST = 1 << 16
"""Extent of an axis of a feature map at most: the registers have 16 bits. Ref: ISA, IFM_DEPTH_M1
and its like."""

FAR_FEWER = 4
"""Elements along the first axis for one along another, from which it is better to go along that."""


@dataclass(frozen=True, slots=True)
class View:
    """Elements of a tensor: element `index` is at `offset + sum(index * strides)`."""

    tensor: int
    offset: int
    shape: Ints
    strides: Ints

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def is_same(self, other: View) -> bool:
        """Whether another view has the same elements at the same places."""
        return (self.tensor, self.offset, self.shape) == (
            other.tensor,
            other.offset,
            other.shape,
        ) and all(
            extent == 1 or one == two
            for extent, one, two in zip(self.shape, self.strides, other.strides, strict=True)
        )

    def sliced(self, starts: Sequence[int], shape: Sequence[int]) -> View:
        """Return a part of so many elements along each axis."""
        offset = self.offset + sum(a * b for a, b in zip(starts, self.strides, strict=True))
        return View(self.tensor, offset, tuple(shape), self.strides)

    def stepped(self, axis: int, step: int, count: int) -> View:
        """Return every `step`-th element along an axis, `count` of them."""
        shape, strides = list(self.shape), list(self.strides)
        shape[axis], strides[axis] = count, strides[axis] * step
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def part(self, axis: int, start: int, count: int) -> View:
        """Return some elements along one axis."""
        starts, shape = [0] * len(self.shape), list(self.shape)
        starts[axis], shape[axis] = start, count
        return self.sliced(starts, shape)

    def permuted(self, axes: Sequence[int]) -> View:
        """Return the view with axis i of the result being axis `axes[i]`."""
        shape = tuple(self.shape[axis] for axis in axes)
        strides = tuple(self.strides[axis] for axis in axes)
        return replace(self, shape=shape, strides=strides)

    def reversed(self, axis: int) -> View:
        """Return the view with one axis backwards."""
        strides = list(self.strides)
        offset = self.offset + (self.shape[axis] - 1) * strides[axis]
        strides[axis] = -strides[axis]
        return View(self.tensor, offset, self.shape, tuple(strides))

    def reshaped(self, shape: Sequence[int]) -> View | None:
        """Return the elements in another shape; None where strides cannot say it."""
        wanted = tuple(shape)
        if prod(wanted) != self.elements:
            return None
        strides = _reshaped(self.shape, self.strides, wanted)
        return None if strides is None else replace(self, shape=wanted, strides=strides)


def dense(tensor: int, shape: Sequence[int]) -> View:
    """Return the view of a whole tensor in a shape."""
    return View(tensor, 0, tuple(shape), dense_strides(shape))


def dense_strides(shape: Sequence[int]) -> Ints:
    """Return the strides of elements that follow each other."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _reshaped(shape: Ints, strides: Ints, wanted: Ints) -> Ints | None:
    """Return the strides in another shape of as many elements; None where there are none.

    Runs of axes whose elements follow each other at one stride are taken apart as the other shape
    needs it.
    """
    runs = _runs(shape, strides)
    found: list[int] = []
    place, left = 0, 1
    step = 0
    for extent in reversed(wanted):
        if extent == 1:
            found.append(step * 1 if step else 1)
            continue
        if left == 1:
            if place == len(runs):
                return None
            left, step = runs[place]
            place += 1
        if left % extent:
            return None
        found.append(step)
        left, step = left // extent, step * extent
    return tuple(reversed(found)) if left == 1 else None


def _runs(shape: Ints, strides: Ints) -> list[tuple[int, int]]:
    """Return (elements, stride) of runs of axes that are like one axis, the innermost first."""
    runs: list[tuple[int, int]] = []
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent == 1:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1] = (runs[-1][0] * extent, runs[-1][1])
        else:
            runs.append((extent, stride))
    return runs


def planes(*views: View) -> Iterator[tuple[View, ...]]:
    """Cut views of as many axes into views of height, width and depth, which belong together.

    An axis along which a view has one element and another more is broadcast. Depth has a stride of
    1 in every view that has more than one element along it.
    """
    yield from in_threes(views, len(views))


def in_threes(views: tuple[View, ...], pixeled: int) -> Iterator[tuple[View, ...]]:
    """Cut views as `planes` does; depth has a stride of 1 only in so many of the first views."""
    views = _without_leading(views)
    if not all(pixels(view) for view in views[:pixeled]):
        views = tuple(_with_axis(view) for view in views)
    while len(views[0].shape) > AXES:
        merged = _without_ones(views) or _merged(views, pixeled)
        if merged is None:
            axis = _fewest(views)
            for index in range(max(view.shape[axis] for view in views)):
                yield from in_threes(tuple(_at(view, axis, index) for view in views), pixeled)
            return
        views = merged
    while len(views[0].shape) < AXES:
        views = tuple(_in_front(view) for view in views)
    for axis in range(AXES):
        extent = max(view.shape[axis] for view in views)
        if extent > MOST:
            for half in _halves(views, axis, extent):
                yield from in_threes(half, pixeled)
            return
    yield views


def pixels(view: View) -> bool:
    """Whether the elements along the last axis lie beside each other."""
    return not view.shape or view.shape[-1] == 1 or view.strides[-1] == 1


def upright(guide: View, views: Sequence[View]) -> tuple[View, ...]:
    """Return views with the axis last along which one of them has elements beside each other.

    Nothing changes where that is so of all.
    """
    if all(pixels(view) for view in views):
        return tuple(views)

    def step(axis: int) -> float:
        longer = [view for view in (guide, *views) if view.shape[axis] > 1]
        return abs(longer[0].strides[axis]) if longer else inf

    axes = sorted(range(len(guide.shape)), key=step, reverse=True)
    return tuple(view.permuted(axes) for view in views)


def rows(*views: View) -> Iterator[tuple[View, ...]]:
    """Cut views whose last axes differ, and the others not, into views that keep the last whole."""
    # Extents that differ keep the last axis from becoming one with another.
    marked = [
        replace(view, shape=(*view.shape[:-1], place), strides=(*view.strides[:-1], 1))
        for place, view in enumerate(views, start=2)
    ]
    for found in planes(*marked):
        yield tuple(
            replace(row, shape=(*row.shape[:2], view.shape[-1]))
            for row, view in zip(found, views, strict=True)
        )


def _halves(views: Sequence[View], axis: int, extent: int) -> Iterator[tuple[View, ...]]:
    half = -(-extent // 2)
    for start, count in ((0, half), (half, extent - half)):
        yield tuple(
            view if view.shape[axis] == 1 else view.part(axis, start, count) for view in views
        )


def _fewest(views: Sequence[View]) -> int:
    """Return the axis to take element by element: the first, or one of far fewer elements.

    The last axis stays. Behind the first what is left more often is a box of its tensor.
    """
    counts = [max(view.shape[axis] for view in views) for axis in range(len(views[0].shape) - 1)]
    least = min(counts)
    return 0 if counts[0] < FAR_FEWER * least else counts.index(least)


def _at(view: View, axis: int, index: int) -> View:
    start = 0 if view.shape[axis] == 1 else index
    return _dropped(view.part(axis, start, 1), axis)


def _in_front(view: View) -> View:
    whole = view.shape[0] * abs(view.strides[0]) if view.shape else 1
    return replace(view, shape=(1, *view.shape), strides=(whole, *view.strides))


def _with_axis(view: View) -> View:
    return replace(view, shape=(*view.shape, 1), strides=(*view.strides, 1))


def _without_leading(views: tuple[View, ...]) -> tuple[View, ...]:
    while len(views[0].shape) > AXES and all(view.shape[0] == 1 for view in views):
        views = tuple(_dropped(view, 0) for view in views)
    return views


def _without_ones(views: tuple[View, ...]) -> tuple[View, ...] | None:
    """Drop the first axis, but the last, along which no view has more than one element."""
    for axis in range(len(views[0].shape) - 1):
        if all(view.shape[axis] == 1 for view in views):
            return tuple(_dropped(view, axis) for view in views)
    return None


def _dropped(view: View, axis: int) -> View:
    shape, strides = list(view.shape), list(view.strides)
    del shape[axis], strides[axis]
    return replace(view, shape=tuple(shape), strides=tuple(strides))


def _merged(views: tuple[View, ...], pixeled: int) -> tuple[View, ...] | None:
    """Make one of two axes beside each other that are like one in every view.

    The last axis keeps a stride of 1 in so many of the first views.
    """
    count = len(views[0].shape)
    for axis in range(count - 1):
        if not all(_is_one(view, axis) for view in views) or not _alike(views, axis):
            continue
        joined = tuple(_joined(view, axis) for view in views)
        if axis < count - 2 or all(pixels(row) for row in joined[:pixeled]):
            return joined
    return None


def _is_one(view: View, axis: int) -> bool:
    outer, inner = view.shape[axis : axis + 2]
    return outer == 1 or inner == 1 or view.strides[axis] == view.strides[axis + 1] * inner


def _alike(views: Sequence[View], axis: int) -> bool:
    """Whether each view has all elements of both axes, or one of each."""
    full = tuple(max(view.shape[place] for view in views) for place in (axis, axis + 1))
    return all(view.shape[axis : axis + 2] in (full, (1, 1)) for view in views)


def _joined(view: View, axis: int) -> View:
    shape, strides = list(view.shape), list(view.strides)
    outer, inner = shape[axis : axis + 2]
    shape[axis : axis + 2] = [outer * inner]
    del strides[axis if inner > 1 else axis + 1]
    return replace(view, shape=tuple(shape), strides=tuple(strides))
