"""What Mesa's compiler for Ethos-U knows of an operation before it is encoded.

Nothing here, and in the files beside it, is of Mizzen's generator: the tests hold Mizzen's judges
against streams whose maker shares nothing with them but the table of commands.

Ref: Mesa, src/gallium/drivers/ethosu/ethosu_ml.h, ethosu_lower.c, ethosu_cmd.c, ethosu_sched.c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Shape = tuple[int, int, int]
"""Height, width, channels."""

COEFFICIENTS, MEMORY, SRAM, INTERNAL = 0, 1, 2, 3
"""Regions. The last is the memory of tables, inside the NPU."""
MAX, AVERAGE, REDUCE_SUM, SUM = 0, 1, 2, 3
"""Modes of pooling; SUM is of U85."""
MUL, ADD, SUB, MINIMUM, MAXIMUM, CLZ, SHR, SHL = 0, 1, 2, 3, 4, 7, 8, 9
DOUBLE, NATURAL = 0, 2
"""Rounding."""
BRICK = 16


@dataclass(frozen=True)
class Range:
    """Bytes of a region."""

    region: int
    address: int
    size: int

    def meets(self, other: Range) -> bool:
        """Whether a byte is in both."""
        return (
            self.region == other.region
            and self.address < other.address + other.size
            and other.address < self.address + self.size
        )


@dataclass(frozen=True)
class Map:
    """A feature map in memory, one number, or what goes from an operation to the next on chip."""

    shape: Shape
    dtype: np.dtype[Any]
    region: int = MEMORY
    address: int = 0
    bricks: bool = False
    zero_point: int = 0
    scale: float = 1.0
    strides: Shape | None = None
    scalar: int | None = None
    chain: int | None = None

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def stride(self) -> Shape:
        """Bytes from row to row, column to column, and brick to brick or channel to channel."""
        if self.strides is not None:
            return self.strides
        _, width, depth = self.shape
        if self.bricks:
            wide = BRICK * self.size
            return self.size * width * (-(-depth // BRICK) * BRICK), wide, wide * width
        return width * depth * self.size, depth * self.size, self.size

    @property
    def span(self) -> int:
        """Bytes from its first to its last."""
        (height, width, depth), (y, x, c) = self.shape, self.stride
        steps, last = (-(-depth // BRICK), BRICK * self.size) if self.bricks else (depth, self.size)
        return last + (height - 1) * y + (width - 1) * x + (steps - 1) * c

    @property
    def range(self) -> Range | None:
        """Its bytes, if it is in memory."""
        if self.scalar is not None or self.chain is not None:
            return None
        return Range(self.region, self.address, self.span)


@dataclass(frozen=True)
class Operation:
    """An operation; `command` is the one that starts it, `operator` the network's.

    scale, opa, opb  numbers and shifts of SET_OFM_SCALE and of those of the operands
    scaled           which operand U65 scales: 0 none, 1 the first, 2 the second
    pad              top, left, bottom, right
    table            where in the NPU its table lies, and `slot` its number
    """

    command: str
    operator: int
    ofm: Map | None = None
    ifm: Map | None = None
    ifm2: Map | None = None
    mode: int = 0
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    upscale: int = 0
    rounding: int = DOUBLE
    scale: tuple[int, int] = (1, 0)
    opa: tuple[int, int] | None = None
    opb: tuple[int, int] | None = None
    doubling: int = 0
    scaled: int = 0
    per_channel: bool = False
    swapped: bool = False
    limits: tuple[int, int] | None = None
    table: Range | None = None
    slot: int = 0
    weights: Range | None = None
    records: Range | None = None
    part_kernel: bool = False
    sparse: bool = False
    source: Range | None = None
    target: Range | None = None

    @property
    def reads(self) -> list[Range]:
        """The bytes that it reads."""
        maps = (each.range for each in (self.ifm, self.ifm2) if each is not None)
        others = self.weights, self.records, self.table, self.source
        return [each for each in (*maps, *others) if each is not None]

    @property
    def writes(self) -> list[Range]:
        """The bytes that it writes."""
        result = None if self.ofm is None else self.ofm.range
        return [each for each in (result, self.target) if each is not None]
