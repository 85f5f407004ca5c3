"""The data memory of an element while it works on a batch of images."""

from __future__ import annotations

import numpy as np

from mizzen.diagnostics import MizzenError, fail
from mizzen.graph import Array
from mizzen.mesh.network.boxes import Box, elements_of, intersection, shape_of, slices, within
from mizzen.mesh.program import ElementProgram, MeshProgram, Region

SUMS = np.dtype(np.int32)


class Memory:
    """What is in the regions of an element, `[count, *box]`, and which boxes of them were written.

    Regions that share bytes do so here too: writing one makes the others void.
    """

    def __init__(
        self,
        program: MeshProgram,
        element: ElementProgram,
        dtypes: dict[int, np.dtype[np.generic]],
        count: int,
    ) -> None:
        self.program = program
        self.regions = element.regions
        self.dtypes = dtypes
        self.count = count
        self.arrays: dict[int, Array] = {}
        self.written: dict[int, list[Box]] = {}
        self.shared = _shared(element.regions)

    def fetch(self, region: int, tensor: Array) -> None:
        """Write a region from the whole of its tensor."""
        box = self._box(region)
        if len(box) + 1 != tensor.ndim:
            raise self._wrong(region, f"must have the {tensor.ndim - 1} axes of its tensor")
        self.write(region, box, tensor[(slice(None), *slices(box))])

    def write(self, region: int, box: Box, values: Array) -> None:
        """Write a box, in the tensor's coordinates, of a region."""
        outer = self._box(region, box)
        if intersection(box, outer) != box or values.shape != (self.count, *shape_of(box)):
            raise self._wrong(region, f"must hold {_shown(box)}, and holds {_shown(outer)}")
        array = self.arrays.get(region)
        if array is None:
            dtype = self._dtype(self.regions[region])
            array = self.arrays[region] = np.zeros((self.count, *shape_of(outer)), dtype)
        array[(slice(None), *slices(within(box, outer)))] = values
        self.written.setdefault(region, []).append(box)
        for other in self.shared.get(region, ()):
            self.arrays.pop(other, None)
            self.written.pop(other, None)

    def read(self, region: int, box: Box) -> Array:
        """Return a box of a region. E532 if a part of it has not been written, or is no more."""
        outer = self._box(region, box)
        written = self.written.get(region, [])
        common = (intersection(each, box) for each in written)
        there = sum(elements_of(each) for each in common if each is not None)
        if there != elements_of(box):
            missing = elements_of(box) - there
            raise self._wrong(region, f"must have {_shown(box)}, of which {missing} are not there")
        return self.arrays[region][(slice(None), *slices(within(box, outer)))]

    def _box(self, region: int, part: Box = ()) -> Box:
        """Return the box of a region, which has as many axes as a part of it."""
        box = self.regions[region].box
        if box is None:
            raise self._wrong(region, "must hold a box of a tensor")
        if part and len(part) != len(box):
            raise self._wrong(region, f"must hold {_shown(part)}, and holds {_shown(box)}")
        return box

    def _dtype(self, region: Region) -> np.dtype[np.generic]:
        return SUMS if region.tensor is None else self.dtypes[region.tensor]

    def _wrong(self, region: int, what: str) -> MizzenError:
        kind = self.regions[region].kind.value
        return fail("E532", f"region {region} ({kind}) {what}")


def _shown(box: Box) -> str:
    return f"elements [{', '.join(f'{start}:{stop}' for start, stop in box)}]"


def _shared(regions: tuple[Region, ...]) -> dict[int, list[int]]:
    """Return the regions that share bytes with each region."""
    shared: dict[int, list[int]] = {}
    order = sorted(range(len(regions)), key=lambda index: regions[index].address)
    for place, index in enumerate(order):
        for other in order[place + 1 :]:
            if regions[other].address >= regions[index].end:
                break
            shared.setdefault(index, []).append(other)
            shared.setdefault(other, []).append(index)
    return shared
