"""How a pass uses the SRAM: stripes, tiles, where they lie.

A stripe is the part of a tensor that is worked on at a time; a tile is the SRAM for one or more
stripes of a tensor.
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_n.commands_values import Strategy
from mizzen.targets.ethos_n.config import BRICK_GROUP_SHAPE, BlockConfig
from mizzen.targets.ethos_n.tensors import Shape

BRICK_HEIGHT, BRICK_WIDTH, BRICK_CHANNELS = BRICK_GROUP_SHAPE[1:]
"""Of a brick group."""


def divide_up(number: int, divisor: int) -> int:
    """Return the quotient rounded up."""
    return -(-number // divisor)


def round_up(number: int, multiple: int) -> int:
    """Return the next multiple."""
    return -(-number // multiple) * multiple


def volume(shape: Shape) -> int:
    """Return the number of elements, which is that of bytes."""
    return shape[0] * shape[1] * shape[2] * shape[3]


def brick_bytes(shape: Shape) -> int:
    """Return the size of a map in whole brick groups."""
    planes = round_up(shape[1], BRICK_HEIGHT) * round_up(shape[2], BRICK_WIDTH)
    return shape[0] * planes * round_up(shape[3], BRICK_CHANNELS)


@dataclass(frozen=True, slots=True)
class Tile:
    """The SRAM of one tensor in a pass.

    bytes   over all banks
    stripes that fit in it
    offset_bytes within each bank
    """

    stripe: Shape
    bytes: int
    stripes: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class McePlan:
    """How a pass of the compute engines cuts its tensors and where they lie.

    ple_offset_bytes  of the kernel of the programmable layer engine, within each bank
    """

    strategy: Strategy
    block: BlockConfig
    input: Tile
    weights: Tile
    output: Tile
    ple_offset_bytes: int


@dataclass(frozen=True, slots=True)
class PlePlan:
    """How a pass of the programmable layer engine alone cuts its tensors and where they lie."""

    inputs: tuple[Tile, ...]
    output: Tile
    ple_offset_bytes: int
