"""Which tensor of a network, and which part of it, a map in memory is: told by its numbers alone.

A compiler may cut a tensor into stripes and slices, write it in bricks, exchange its axes or give
it another rank. So a map is looked for among all tensors of the network: as a whole, as a run of
its elements, and as a box in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.interface import Array
from mizzen.diagnostics import Origin

Shape = tuple[int, int, int]
Places = npt.NDArray[np.int64]

DISTINCT = 4
"""Different numbers that a map has at least, to be a part of something and not of another."""

PROBES = 12
"""Elements that are looked at before all are."""

MOST_PLACES = 64
"""Places at which a box is compared as a whole."""


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A tensor of the network as it must be, `[N, *shape]`, and the operator that gives it."""

    name: str
    origin: Origin
    array: Array

    @property
    def three(self) -> Array:
        """It as `[N, H, W, C]`, unsigned numbers of its bytes."""
        count, *shape = self.array.shape
        return _numbers(self.array).reshape(count, *as_three(shape))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What of a tensor a map is: the place in the tensor of each of its elements, `[H, W, C]`."""

    reference: Reference
    places: Places

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the tensor."""
        return self.places.size == self.reference.array[0].size


def as_three(shape: Sequence[int]) -> Shape:
    """Return a shape of any rank as height, width, depth."""
    padded = (1, 1, 1, *shape)
    return prod(padded[:-2]), padded[-2], padded[-1]


def _numbers(array: Array) -> Array:
    """Return an array's elements as unsigned numbers, whatever they stand for."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def _digest(array: Array) -> tuple[int, bytes]:
    return array.dtype.itemsize, blake2b(np.ascontiguousarray(array).data, digest_size=16).digest()


class Library:
    """The tensors of a network, to be found by what they hold."""

    def __init__(self, references: Sequence[Reference]) -> None:
        self.references = tuple(references)
        self._whole: dict[tuple[int, bytes], list[Part]] = {}
        for reference in references:
            for part, moved in _orders(reference):
                self._whole.setdefault(_digest(moved), []).append(part)

    def parts(self, map_: Array) -> list[Part]:
        """Return what a map `[N, H, W, C]` is: whole tensors, else parts of tensors."""
        numbers = _numbers(map_)
        shape = map_.shape[1:]
        whole = [
            Part(part.reference, part.places.reshape(shape))
            for part in self._whole.get(_digest(numbers), ())
        ]
        return whole or list(self._cut(numbers))

    def _cut(self, numbers: Array) -> Iterator[Part]:
        if len(np.unique(numbers)) < DISTINCT:
            return
        for reference in self.references:
            array = reference.array
            if array.dtype.itemsize != numbers.dtype.itemsize or array[0].size <= numbers[0].size:
                continue
            places = _run(numbers, reference)
            if places is None:
                places = _box(numbers, reference)
            if places is not None:
                yield Part(reference, places)


def _orders(reference: Reference) -> Iterator[tuple[Part, Array]]:
    """Yield a tensor with its axes in each order."""
    three = reference.three
    shape = three.shape[1:]
    places = np.arange(prod(shape), dtype=np.int64).reshape(shape)
    seen = set[tuple[int, ...]]()
    for order in permutations(range(3)):
        real = tuple(axis for axis in order if shape[axis] > 1)
        if real not in seen:
            seen.add(real)
            moved = three.transpose(0, *(1 + axis for axis in order))
            yield Part(reference, places.transpose(order)), moved


def _run(numbers: Array, reference: Reference) -> Places | None:
    """Return the places of a map that is a run of a tensor's elements, in their order."""
    size, item = numbers[0].size, numbers.dtype.itemsize
    flat = _numbers(reference.array).reshape(len(reference.array), -1)
    wanted, held = numbers[0].tobytes(), flat[0].tobytes()
    at = held.find(wanted)
    while at >= 0:
        start = at // item
        if at % item == 0 and np.array_equal(
            flat[:, start : start + size], numbers.reshape(len(numbers), -1)
        ):
            return np.arange(start, start + size, dtype=np.int64).reshape(numbers.shape[1:])
        at = held.find(wanted, at + 1)
    return None


def _box(numbers: Array, reference: Reference) -> Places | None:
    """Return the places of a map that is a box in a tensor."""
    three = reference.three
    extents, shape = three.shape[1:], numbers.shape[1:]
    if any(own > all_ for own, all_ in zip(shape, extents, strict=True)):
        return None
    values, counts = np.unique(numbers[0], return_counts=True)
    rarest = values[int(np.argmin(counts))]
    anchor = tuple(int(each) for each in np.argwhere(numbers[0] == rarest)[0])
    rng = np.random.default_rng(0)
    probes = [anchor, *(tuple(map(int, rng.integers(0, shape))) for _ in range(PROBES))]
    room = tuple(all_ - own + 1 for own, all_ in zip(shape, extents, strict=True))
    fits = np.ones(room, np.bool_)
    for y, x, c in probes:
        seen: Any = three[0, y : y + room[0], x : x + room[1], c : c + room[2]]
        fits &= seen == numbers[0, y, x, c]
        if not fits.any():
            return None
    places = np.arange(prod(extents), dtype=np.int64).reshape(extents)
    for start in np.argwhere(fits)[:MOST_PLACES]:
        box = tuple(
            slice(int(first), int(first) + own) for first, own in zip(start, shape, strict=True)
        )
        if np.array_equal(three[(slice(None), *box)], numbers):
            return places[box]
    return None
