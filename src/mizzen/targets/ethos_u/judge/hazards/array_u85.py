"""Microblocks of U85 by its number of MACs, and what holds inputs and accumulators of operations.

U85 has no layout in its registers: how an operation's jobs lie in these memories follows from its
block and its microblock alone.

Ref: Ethos-U85 technical reference manual, "Microarchitecture"; Vela 5.2.0, the C++ core's table of
accelerators (sizes, microblocks, units of allocation). The sizes of the input memory agree with the
beats that Arm's Corstone-320 model reads, see `docs/explanation/timing.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from mizzen.targets.ethos_u.judge.hazards.blocks import Blocks, Shape, Sliding

MICROBLOCK_SIDES: dict[str, tuple[int, int]] = {
    "U1X1": (1, 1),
    "U1X2": (1, 2),
    "U1X4": (1, 4),
    "U2X2": (2, 2),
    "U2X4": (2, 4),
    "U4X4": (4, 4),
}
"""Height and width of a microblock by its name; its depth is what the MACs leave."""
BRICK_BYTES = 16
"""Of channels, what is allocated at once."""
SUBKERNEL = 8
"""Kernels are cut into parts of at most so many elements along each axis."""


class Use(Enum):
    """What the array does with a microblock."""

    CONVOLUTION = auto()
    PRODUCT = auto()
    REDUCE_SUM = auto()
    DEPTHWISE = auto()
    POOL = auto()
    ELEMENTWISE = auto()
    RESIZE = auto()
    FLAT = auto()
    """A convolution of one element, depth first: where others with wide input are not done."""


_ALL = frozenset(Use)
_DENSE = frozenset({Use.CONVOLUTION, Use.PRODUCT, Use.REDUCE_SUM, Use.FLAT})
_DEEP = frozenset({Use.CONVOLUTION, Use.PRODUCT, Use.ELEMENTWISE, Use.FLAT})
_EITHER = frozenset({Use.ELEMENTWISE, Use.RESIZE})
_THIN = frozenset({Use.DEPTHWISE, Use.POOL})
_FLAT = frozenset({Use.PRODUCT, Use.FLAT})


@dataclass(frozen=True, slots=True)
class Unit:
    """A microblock.

    narrow, wide  what it does with 8-bit input, and with more
    room  what jobs' inputs of at most 16 bytes of a pixel, of 32, and of more are given room in:
          height, width, and bricks of 16 bytes
    """

    narrow: frozenset[Use]
    wide: frozenset[Use]
    room: tuple[Shape, Shape, Shape]


@dataclass(frozen=True, slots=True)
class Array:
    """A row: one size of U85.

    input_bytes, accumulator_bytes  of its memories
    units  its microblocks by name
    """

    input_bytes: int
    accumulator_bytes: int
    units: dict[str, Unit]


_PAIR = (1, 2, 1), (1, 1, 2), (1, 1, 2)
_SQUARE = (2, 2, 1), (1, 2, 2), (1, 1, 4)
_ROW = (1, 4, 1), (1, 2, 2), (1, 1, 4)
_WIDE = (2, 4, 1), (2, 2, 2), (1, 2, 4)
_WIDE_ROW = (2, 4, 1), (1, 4, 2), (1, 2, 4)
_LARGE = (4, 4, 1), (2, 4, 2), (2, 2, 4)
_LARGE_ROW = (4, 4, 1), (2, 4, 2), (1, 4, 4)
KIB = 1024

ARRAYS: dict[int, Array] = {
    128: Array(8 * KIB, 8 * KIB, {
        "U1X2": Unit(_DENSE | _EITHER, _ALL, _PAIR),
        "U1X1": Unit(_THIN | _EITHER, _FLAT | _EITHER, _PAIR),
    }),
    256: Array(16 * KIB, 16 * KIB, {
        "U1X2": Unit(_THIN | _EITHER, _FLAT | _EITHER, _SQUARE),
        "U1X4": Unit(_DENSE | _EITHER, _ALL, _ROW),
        "U2X2": Unit(_DENSE | _EITHER, _ALL, _SQUARE),
    }),
    512: Array(16 * KIB, 32 * KIB, {
        "U2X2": Unit(_ALL, _ALL, _SQUARE),
        "U1X4": Unit(_ALL, _ALL, _ROW),
    }),
    1024: Array(16 * KIB, 64 * KIB, {
        "U2X2": Unit(_DEEP, _DEEP, _WIDE),
        "U1X4": Unit(_DEEP, _DEEP, _WIDE_ROW),
        "U2X4": Unit(_ALL - {Use.PRODUCT}, _ALL - {Use.PRODUCT}, _WIDE),
    }),
    2048: Array(32 * KIB, 128 * KIB, {
        "U2X2": Unit(_DEEP, _DEEP, _LARGE),
        "U1X4": Unit(_DEEP, _DEEP, _LARGE_ROW),
        "U4X4": Unit(_ALL - {Use.PRODUCT}, _ALL - {Use.PRODUCT}, _LARGE),
    }),
}  # fmt: skip
"""By MACs."""


def job_bytes(blocks: Blocks, block: Shape, unit: Unit, beyond: int = 0) -> int:
    """Return what the input of a job takes in the memory; 0 where there is no sliding window.

    block   of the output, which need not be that of `blocks`
    beyond  rows and columns before an enlargement that are needed besides
    """
    item = blocks.inputs[0] if blocks.inputs else None
    if item is None or not isinstance(item.window, Sliding):
        return 0
    size = item.map.element_bytes
    slab = block[2] if item.slab is None else item.slab
    high, wide, bricks = room(unit, slab * size)
    rows, columns = covered(item.window, block, beyond)
    depth = slab if item.slab is None else min(slab, item.map.shape[2])
    return (
        _rounded(rows, high)
        * _rounded(columns, wide)
        * _rounded(depth * size, bricks * BRICK_BYTES)
    )


def covered(window: Sliding, block: Shape, beyond: int = 0) -> tuple[int, int]:
    """Return rows and columns of the input under a part of the kernel, for a block."""
    rows, columns = (
        -(-((step - 1) * axis.stride + min(axis.extent, SUBKERNEL) + beyond) // axis.upscale)
        for axis, step in ((window.y, block[0]), (window.x, block[1]))
    )
    return rows, columns


def room(unit: Unit, pixel_bytes: int) -> Shape:
    """Return what a job's input is given room in, for so many bytes of a pixel."""
    bricks = -(-pixel_bytes // BRICK_BYTES)
    return unit.room[0 if bricks <= 1 else 1 if bricks == 2 else 2]


def jobs_kept(blocks: Blocks, macs: int, microblock: str) -> int:
    """Return how many jobs' inputs the memory keeps; 0 where jobs have no slabs of channels."""
    unit = ARRAYS[macs].units.get(microblock)
    if unit is None or not blocks.inputs or blocks.inputs[0].slab is None:
        return 0
    needed = job_bytes(blocks, blocks.block, unit)
    return ARRAYS[macs].input_bytes // needed if needed else 0


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
