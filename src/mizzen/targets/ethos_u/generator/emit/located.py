"""Where maps lie once tensors have addresses: what the registers of a feature map say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mizzen.diagnostics import Origin, fail
from mizzen.targets.ethos_u.generator.operations import (
    BRICK,
    Box,
    Bytes,
    Map,
    Place,
    Shape,
    Tensor,
    Tiles,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout

BRICK_ALIGNMENT_BYTES = 16
"""The address of a map in bricks is a multiple of this."""
FIRST_CHAIN = -2
"""Stands among the regions for the first buffer of a chain; the next is one less."""


@dataclass(frozen=True, slots=True)
class Located:
    """A feature map in memory: shape in elements, addresses and strides in bytes.

    Rows from `height_0` on, right of `width_0` from `height_1` on, go on at other bases.
    """

    region: int
    shape: Shape
    bases: tuple[int, int, int, int]
    height_0: int
    height_1: int
    width_0: int
    stride_y: int
    stride_x: int
    stride_c: int
    layout: Layout
    dtype: np.dtype[np.integer[Any]]
    zero_point: int

    @property
    def chain(self) -> int | None:
        """The number of the buffer inside the NPU that it goes through; None if it is in memory."""
        return FIRST_CHAIN - self.region if self.region <= FIRST_CHAIN else None

    @property
    def element_bytes(self) -> int:
        """Size of an element."""
        return self.dtype.itemsize

    def is_as(self, other: Located) -> bool:
        """Whether each element lies exactly where the other map has the one at its place."""
        return (
            self.region == other.region
            and self.shape == other.shape
            and self.bases == other.bases
            and self.tiles == other.tiles
            and self.strides == other.strides
            and self.layout is other.layout
            and self.element_bytes == other.element_bytes
        )

    @property
    def tiles(self) -> tuple[int, int, int]:
        """The sizes that say where other bases begin."""
        return self.height_0, self.height_1, self.width_0

    @property
    def strides(self) -> tuple[int, int, int]:
        """Bytes from row to row, column to column, brick to brick."""
        return self.stride_y, self.stride_x, self.stride_c


@dataclass(frozen=True, slots=True)
class Addresses:
    """The tensors of a sequence, and where each of them lies; None for one that is not used."""

    tensors: tuple[Tensor, ...]
    layouts: tuple[Layout, ...]
    places: tuple[Place | None, ...]

    def place(self, tensor: int, origin: Origin) -> Place:
        """Return where a tensor lies. E289 if the schedule does not say."""
        place = self.places[tensor]
        if place is None:
            name = self.tensors[tensor].name
            raise fail("E289", f'the schedule must say where tensor "{name}" lies', origin=origin)
        return place

    def locate(self, map_: Map, origin: Origin, channels: tuple[int, int] | None = None) -> Located:
        """Return where a map lies, or some channels of it.

        Raises E287 for a map that registers cannot describe, E289 for one without a place.
        """
        place = self.place(map_.tensor, origin)
        if isinstance(map_.view, Box):
            located = self._of_box(map_, map_.view, place)
        else:
            located = _of_bytes(map_, map_.view, place)
        if channels is not None:
            located = _sliced(located, channels)
        _check(located, map_, self.tensors[map_.tensor], origin)
        return located

    def _of_box(self, map_: Map, box: Box, place: Place) -> Located:
        tensor, layout = self.tensors[box.tensor], self.layouts[box.tensor]
        stride_y, stride_x, stride_c = tensor.strides_bytes(layout)
        y, x, c = box.start
        base = place.offset_bytes + y * stride_y + x * stride_x
        if layout is Layout.NHCWB16:
            base += c // BRICK * stride_c + c % BRICK * tensor.dtype.itemsize
        else:
            base += c * tensor.dtype.itemsize
        strides = stride_y * box.steps[0], stride_x * box.steps[1], stride_c
        return _located(map_, place.region, layout, (base, 0, 0, 0), strides, None)


def _of_bytes(map_: Map, view: Bytes, place: Place) -> Located:
    at = place.offset_bytes
    bases = (at + view.offset_bytes, 0, 0, 0)
    if view.tiles is not None:
        right, below, corner = view.tiles.offsets_bytes
        bases = (bases[0], at + right, at + below, at + corner)
    return _located(map_, place.region, view.layout, bases, view.strides_bytes, view.tiles)


def _located(
    map_: Map,
    region: int,
    layout: Layout,
    bases: tuple[int, int, int, int],
    strides: tuple[int, int, int],
    tiles: Tiles | None,
) -> Located:
    height, width, _ = map_.shape
    height_0, height_1, width_0 = height, height, width
    if tiles is not None:
        height_0, height_1, width_0 = tiles.height_0, tiles.height_1, tiles.width_0
    stride_y, stride_x, stride_c = strides
    return Located(
        region=region,
        shape=map_.shape,
        bases=bases,
        height_0=height_0,
        height_1=height_1,
        width_0=width_0,
        stride_y=stride_y,
        stride_x=stride_x,
        stride_c=stride_c,
        layout=layout,
        dtype=map_.dtype,
        zero_point=map_.zero_point,
    )


def handed_on(map_: Map, buffer: int, channels: tuple[int, int] | None) -> Located:
    """Return a map, or some channels of it, that an operation of a chain hands to a later one."""
    region, nowhere = FIRST_CHAIN - buffer, (0, 0, 0, 0)
    whole = _located(map_, region, Layout.NHCWB16, nowhere, (0, 0, 0), None)
    height, width, _ = map_.shape
    return (
        whole
        if channels is None
        else replace(whole, shape=(height, width, channels[1] - channels[0]))
    )


def _sliced(map_: Located, channels: tuple[int, int]) -> Located:
    """Return some channels of a map."""
    first, stop = channels
    if map_.layout is Layout.NHCWB16:
        moved = first // BRICK * map_.stride_c + first % BRICK * map_.element_bytes
    else:
        moved = first * map_.element_bytes
    height, width, _ = map_.shape
    inside = _inside(map_)
    bases = tuple(base + moved if at else 0 for base, at in zip(map_.bases, inside, strict=True))
    return replace(
        map_,
        shape=(height, width, stop - first),
        bases=(bases[0], bases[1], bases[2], bases[3]),
    )


def _inside(map_: Located) -> tuple[bool, bool, bool, bool]:
    """Tell of each base whether elements lie there."""
    height, width, _ = map_.shape
    right = width > map_.width_0
    return True, right, height > map_.height_0, right and height > map_.height_1


def _check(map_: Located, wanted: Map, tensor: Tensor, origin: Origin) -> None:
    """Refuse with E287 what the registers of a map have no way to say."""
    what, alignment, also = f'a map of tensor "{tensor.name}"', map_.element_bytes, ""
    if map_.layout is Layout.NHCWB16:
        what, alignment, also = (
            f"{what} in NHCWB16",
            BRICK_ALIGNMENT_BYTES,
            f" and of {BRICK} channels",
        )
        if isinstance(wanted.view, Box) and wanted.view.steps[1] != 1:
            text = f"{what} must have every column, not every second or later one"
            raise fail("E287", text, origin=origin)
    for base, is_used in zip(map_.bases, _inside(map_), strict=True):
        if is_used and base % alignment:
            raise fail(
                "E287",
                f"{what} must begin at a multiple of {alignment} bytes{also}, not at byte {base}",
                origin=origin,
            )
