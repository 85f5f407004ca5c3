"""What holds the inputs and the accumulators of an operation of U85, by its number of MACs.

U85 has no layout in its registers: how an operation's jobs lie in these memories follows from its
block and its microblock alone.

Ref: Ethos-U85 technical reference manual, "Microarchitecture"; Vela 5.2.0, the C++ core's table of
accelerators (sizes, microblocks, units of allocation). The sizes of the input memory agree with the
beats that Arm's Corstone-320 model reads, see `docs/explanation/timing.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

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
BRICK_BITS = 128
"""Of channels, what is allocated at once."""
SUBKERNEL = 8
"""Kernels are cut into parts of at most so many elements along each axis."""


@dataclass(frozen=True, slots=True)
class Array:
    """A row: the memories of one size of U85.

    input_bytes, accumulator_bytes  of the memories
    units  by height and width of a microblock, what jobs' inputs of at most 128 and 256 bits of
           channels, and of more, are allocated in: height, width, and bricks of 128 bits
    """

    input_bytes: int
    accumulator_bytes: int
    units: dict[tuple[int, int], tuple[Shape, Shape, Shape]]


_NARROW = (1, 2, 1), (1, 1, 2), (1, 1, 2)
_SQUARE = (2, 2, 1), (1, 2, 2), (1, 1, 4)
_ROW = (1, 4, 1), (1, 2, 2), (1, 1, 4)
_WIDE = (2, 4, 1), (2, 2, 2), (1, 2, 4)
_WIDE_ROW = (2, 4, 1), (1, 4, 2), (1, 2, 4)
_LARGE = (4, 4, 1), (2, 4, 2), (2, 2, 4)
_LARGE_ROW = (4, 4, 1), (2, 4, 2), (1, 4, 4)
KIB = 1024

ARRAYS: dict[int, Array] = {
    #          input    accumulators  units by microblock
    128: Array(8 * KIB, 8 * KIB, {(1, 2): _NARROW, (1, 1): _NARROW}),
    256: Array(16 * KIB, 16 * KIB, {(1, 2): _SQUARE, (2, 2): _SQUARE, (1, 4): _ROW}),
    512: Array(16 * KIB, 32 * KIB, {(2, 2): _SQUARE, (1, 4): _ROW}),
    1024: Array(16 * KIB, 64 * KIB, {(2, 2): _WIDE, (2, 4): _WIDE, (1, 4): _WIDE_ROW}),
    2048: Array(32 * KIB, 128 * KIB, {(2, 2): _LARGE, (4, 4): _LARGE, (1, 4): _LARGE_ROW}),
}
"""By MACs."""


def jobs_kept(blocks: Blocks, macs: int, sides: tuple[int, int]) -> int:
    """Return how many jobs' inputs the memory keeps; 0 where nothing is known of jobs."""
    item = blocks.inputs[0] if blocks.inputs else None
    if item is None or item.slab is None or not isinstance(item.window, Sliding):
        return 0
    units = ARRAYS[macs].units.get(sides)
    if units is None:
        return 0
    window, size = item.window, item.map.element_bytes
    bits = item.slab * size * 8
    high, wide, bricks = units[0 if bits <= BRICK_BITS else 1 if bits <= 2 * BRICK_BITS else 2]
    area = 1
    for axis, step, unit in zip((window.y, window.x), blocks.block, (high, wide), strict=False):
        needed = (step - 1) * axis.stride + min(axis.extent, SUBKERNEL)
        area *= _rounded(-(-needed // axis.upscale), unit)
    channels = min(item.slab, item.map.shape[2]) * size
    return ARRAYS[macs].input_bytes // (area * _rounded(channels, bricks * BRICK_BITS // 8))


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
