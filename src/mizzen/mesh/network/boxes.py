"""Boxes of tensors: for each axis, the first index and the one after the last."""

from __future__ import annotations

import math

Box = tuple[tuple[int, int], ...]


def box_of(shape: tuple[int, ...]) -> Box:
    """Return the box that is a whole tensor."""
    return tuple((0, extent) for extent in shape)


def shape_of(box: Box) -> tuple[int, ...]:
    """Return the extents of a box."""
    return tuple(stop - start for start, stop in box)


def elements_of(box: Box) -> int:
    """Return how many elements a box has."""
    return math.prod(stop - start for start, stop in box)


def intersection(one: Box, other: Box) -> Box | None:
    """Return the box that two boxes of one tensor share; None if they share nothing."""
    common = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return common if all(start < stop for start, stop in common) else None


def within(box: Box, outer: Box) -> Box:
    """Return a box in the coordinates of another that it lies in."""
    return tuple(
        (start - first, stop - first) for (start, stop), (first, _) in zip(box, outer, strict=True)
    )


def slices(box: Box) -> tuple[slice, ...]:
    """Return a box as NumPy takes it."""
    return tuple(slice(start, stop) for start, stop in box)
