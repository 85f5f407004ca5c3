"""Tensors, and the maps that operations read and write of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from mizzen.targets.ethos_u.machine.commands_values import Layout

Shape = tuple[int, int, int]
"""Height, width, depth in elements."""

BRICK = 16
"""Channels in one brick of NHCWB16."""


class Role(Enum):
    """What a tensor is to the program; the caller sees all but scratch and constants."""

    INPUT = "input"
    OUTPUT = "output"
    STATE = "state"
    SCRATCH = "scratch"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """What operations hand on.

    shape   height, width, depth in elements; as the operations see it
    layout  in which it has to lie; None if any operation but those that see it in `Bytes` permits
            any. What the caller sees is NHWC, and so is what is read or written as `Bytes`
    data    of a constant, its bytes (uint8) as they lie
    """

    name: str
    shape: Shape
    dtype: np.dtype[np.integer[Any]]
    role: Role = Role.SCRATCH
    layout: Layout | None = None
    data: np.ndarray[Any, np.dtype[np.uint8]] | None = None

    def size_bytes(self, layout: Layout) -> int:
        """Return the bytes that it takes in a layout."""
        height, width, depth = self.shape
        if layout is Layout.NHCWB16:
            depth = BRICK * -(-depth // BRICK)
        return height * width * depth * self.dtype.itemsize

    def strides_bytes(self, layout: Layout) -> tuple[int, int, int]:
        """Return the bytes between rows, columns, and channels (bricks of channels in NHCWB16)."""
        _, width, depth = self.shape
        size = self.dtype.itemsize
        if layout is Layout.NHCWB16:
            bricks = -(-depth // BRICK)
            return BRICK * size * width * bricks, BRICK * size, BRICK * size * width
        return size * width * depth, size * depth, size


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a tensor, whatever its layout: every `steps`-th row and column from `start` on.

    In NHCWB16 `start` is a multiple of 16 channels, and columns are not stepped over.
    """

    tensor: int
    shape: Shape
    start: Shape = (0, 0, 0)
    steps: tuple[int, int] = (1, 1)

    def takes_bricks(self, across: int = 1) -> bool:
        """Whether it may be one of a tensor in bricks: of whole bricks and of every column.

        across  the axis that lies along rows, if it is not the width
        """
        return self.start[2] % BRICK == 0 and (self.steps[across] == 1 or self.shape[across] == 1)


@dataclass(frozen=True, slots=True)
class Tiles:
    """Where the rows and columns of a map go on at other places, as registers say it.

    Rows below `height_0` (right of `width_0` below `height_1`) go on at `offsets_bytes`: of the
    tile right, below, below right, from the start of the tensor.
    """

    height_0: int
    height_1: int
    width_0: int
    offsets_bytes: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Bytes:
    """A map made of a tensor's bytes, whatever the tensor's shape.

    strides_bytes  between rows, columns, and channels (bricks of channels in NHCWB16)
    """

    tensor: int
    shape: Shape
    offset_bytes: int
    strides_bytes: tuple[int, int, int]
    layout: Layout = Layout.NHWC
    tiles: Tiles | None = None


@dataclass(frozen=True, slots=True)
class Map:
    """A feature map as an operation sees it; what is between its numbers is not its own."""

    view: Box | Bytes
    dtype: np.dtype[np.integer[Any]]
    zero_point: int = 0

    @property
    def tensor(self) -> int:
        """Index of the tensor in the sequence."""
        return self.view.tensor

    @property
    def shape(self) -> Shape:
        """Height, width, depth."""
        return self.view.shape

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.view.shape)
