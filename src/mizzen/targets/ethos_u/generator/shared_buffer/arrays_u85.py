"""The rows of U85's sizes: microblocks, and the memories of inputs, accumulators and results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from mizzen.targets.ethos_u.generator.operations import Shape

KIB = 1024
BRICK_BYTES = 16
"""Inputs are held by so many bytes of a pixel."""


class Work(Enum):
    """How the array of U85 works on an operation."""

    CONVOLUTION = auto()
    PRODUCT = auto()
    DEPTHWISE = auto()
    POOL = auto()
    REDUCE_SUM = auto()
    ELEMENTWISE = auto()
    RESIZE = auto()


EVERY_INPUT = (Work.CONVOLUTION, Work.PRODUCT, Work.REDUCE_SUM)
"""Work of which an output channel needs all input channels."""

_DENSE = frozenset({Work.CONVOLUTION, Work.PRODUCT, Work.REDUCE_SUM, Work.ELEMENTWISE, Work.RESIZE})
_THIN = frozenset({Work.DEPTHWISE, Work.POOL, Work.ELEMENTWISE, Work.RESIZE})
_ALL = frozenset(Work)
_DEEP = frozenset({Work.CONVOLUTION, Work.PRODUCT, Work.ELEMENTWISE})


@dataclass(frozen=True, slots=True)
class Unit:
    """A microblock: height, width and depth of the output that is computed at once.

    input_units  by which inputs are given room, for jobs of at most 16 bytes of a pixel, of 32,
                 and of more: height, width, and depth in units of 16 bytes
    bytes_       the work on 8-bit input that it does
    words        the same on wider input
    flat_words   whether it does convolutions of one element, depth first, on wider input too
    """

    shape: Shape
    input_units: tuple[Shape, Shape, Shape]
    bytes_: frozenset[Work]
    words: frozenset[Work]
    flat_words: bool = False

    def granule(self, job_bytes: int) -> Shape:
        """Return the height, width and bytes of a pixel by which a job's input is given room.

        job_bytes  of a pixel that a job reads at most
        """
        place = 0 if job_bytes <= BRICK_BYTES else 1 if job_bytes <= 2 * BRICK_BYTES else 2
        height, width, depth = self.input_units[place]
        return height, width, BRICK_BYTES * depth


@dataclass(frozen=True, slots=True)
class Array:
    """A size of U85; memories in bytes.

    units         its microblocks, in order of preference
    ifm_bytes     of inputs
    acc_bytes     of accumulators
    output_bytes  of results on their way out
    chain_bytes   of what one operation hands to another, and of operands that are broadcast
    halves_slabs  whether microblocks of 16 channels have jobs of half as many input channels
    """

    units: tuple[Unit, ...]
    ifm_bytes: int
    acc_bytes: int
    output_bytes: int
    chain_bytes: int
    halves_slabs: bool = False

    @property
    def microblock(self) -> Shape:
        """The microblock that is preferred."""
        return self.units[0].shape

    @property
    def keeps_tables(self) -> bool:
        """Whether tables outlive operations without one: they have a memory of their own."""
        return True

    @property
    def table_start_bytes(self) -> int:
        """Where slot 0 of the tables lies in that memory."""
        return 0


def _thin(shape: Shape, narrow: Shape, halved: Shape, wide: Shape) -> Unit:
    only = frozenset({Work.ELEMENTWISE, Work.RESIZE})
    return Unit(shape, (narrow, halved, wide), _THIN, only, flat_words=True)


def _dense(shape: Shape, narrow: Shape, halved: Shape, wide: Shape) -> Unit:
    return Unit(shape, (narrow, halved, wide), _DENSE, _ALL)


def _every(shape: Shape, narrow: Shape, halved: Shape, wide: Shape) -> Unit:
    return Unit(shape, (narrow, halved, wide), _ALL, _ALL)


def _deep(shape: Shape, narrow: Shape, halved: Shape, wide: Shape) -> Unit:
    return Unit(shape, (narrow, halved, wide), _DEEP, _DEEP)


def _shallow(shape: Shape, narrow: Shape, halved: Shape, wide: Shape) -> Unit:
    most = _ALL - {Work.PRODUCT}
    return Unit(shape, (narrow, halved, wide), most, most)


ARRAYS: dict[str, Array] = {
    "ethos-u85-128": Array(
        (
            _dense((1, 2, 8), (1, 2, 1), (1, 1, 2), (1, 1, 2)),
            _thin((1, 1, 16), (1, 2, 1), (1, 1, 2), (1, 1, 2)),
        ),
        8 * KIB, 8 * KIB, 2 * KIB, 768, halves_slabs=True,
    ),
    "ethos-u85-256": Array(
        (
            _thin((1, 2, 16), (2, 2, 1), (1, 2, 2), (1, 1, 4)),
            _dense((1, 4, 8), (1, 4, 1), (1, 2, 2), (1, 1, 4)),
            _dense((2, 2, 8), (2, 2, 1), (1, 2, 2), (1, 1, 4)),
        ),
        16 * KIB, 16 * KIB, 2 * KIB, 1536, halves_slabs=True,
    ),
    "ethos-u85-512": Array(
        (
            _every((2, 2, 16), (2, 2, 1), (1, 2, 2), (1, 1, 4)),
            _every((1, 4, 16), (1, 4, 1), (1, 2, 2), (1, 1, 4)),
        ),
        16 * KIB, 32 * KIB, 4 * KIB, 3072,
    ),
    "ethos-u85-1024": Array(
        (
            _deep((2, 2, 32), (2, 4, 1), (2, 2, 2), (1, 2, 4)),
            _deep((1, 4, 32), (2, 4, 1), (1, 4, 2), (1, 2, 4)),
            _shallow((2, 4, 16), (2, 4, 1), (2, 2, 2), (1, 2, 4)),
        ),
        16 * KIB, 64 * KIB, 4 * KIB, 6144,
    ),
    "ethos-u85-2048": Array(
        (
            _deep((2, 2, 64), (4, 4, 1), (2, 4, 2), (2, 2, 4)),
            _deep((1, 4, 64), (4, 4, 1), (2, 4, 2), (1, 4, 4)),
            _shallow((4, 4, 16), (4, 4, 1), (2, 4, 2), (2, 2, 4)),
        ),
        32 * KIB, 128 * KIB, 8 * KIB, 12288,
    ),
}  # fmt: skip
"""Ref: Vela 5.2.0, ethosu85.cpp, whose streams have exactly these microblocks and stay within these
memories."""
