"""How much work an operation means, and whether the bytes that it touches can mean so much.

A stride of zero or a wrong size costs a stream nothing, and whoever executes it hours. What an
operation has to compute is known before it runs; so are the bytes that it reads and writes. In
networks the first is at most some thousand times the second: a product needs a weight and an
element, and each of them is used for as many results as the other has places.
"""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.judge.sim.memory import pieces
from mizzen.targets.ethos_u.judge.sim.operations import (
    FIRST_CHAIN,
    Convolution,
    Dma,
    Elementwise,
    FeatureMap,
    MatrixProduct,
    Operation,
    Pool,
    Pooling,
    Resize,
)

MOST_STEPS_PER_BYTE = 1 << 17
"""Products, sums and comparisons for a byte that an operation touches. A convolution of 4,096
channels to as many, 3 x 3, over 64 x 64 places has 3,400, a mean of 256 x 256 elements 65,536."""

MOST_ELEMENTS_PER_BYTE = 64
"""Elements of maps for a byte of memory under them: a map that is read with a stride of zero has
more elements than bytes, but what is made of it has as many."""

SMALL = 1 << 24
"""Steps or elements that no one waits for."""

PRODUCTS_A_SECOND = 4e9
"""Multiplications and additions of a product of matrices in 64-bit floating point."""
STEPS_A_SECOND = 3e8
"""Of depthwise convolutions, pooling and elementwise operations."""
ELEMENTS_A_SECOND = 5e7
"""Read, scaled, clipped and written. All three: the simulator's own, on one core."""


@dataclass(frozen=True, slots=True)
class Work:
    """What an operation does.

    steps     products, sums or comparisons
    elements  of its feature maps
    bytes     that it touches, each once
    is_product  whether its steps are those of a product of matrices, which hosts are best at
    """

    steps: int
    elements: int
    bytes: int
    is_product: bool = False

    @property
    def seconds(self) -> float:
        """About how long a host takes, from measurements on one core of 2026."""
        rate = PRODUCTS_A_SECOND if self.is_product else STEPS_A_SECOND
        return self.steps / rate + self.elements / ELEMENTS_A_SECOND


def work_of(operation: Operation) -> Work:
    """Return the work of an operation on one inference."""
    if isinstance(operation, Dma):
        moved = operation.length * operation.rows * operation.planes
        return Work(moved, 0, moved)
    output = operation.output.fm
    maps = [output, *_inputs(operation)]
    streams = operation.weights if isinstance(operation, Convolution) else ()
    sizes = (*map(_bytes, maps), *(stream.length for stream in streams))
    results = output.height * output.width * output.depth
    product = isinstance(operation, MatrixProduct) or (
        isinstance(operation, Convolution) and not operation.depthwise
    )
    steps = results * _for_one(operation)
    return Work(steps, sum(map(_elements, maps)), sum(sizes), product)


def require_sense(operation: Operation) -> Work:
    """Return the work of an operation. E644 where its bytes cannot mean so much."""
    work = work_of(operation)
    for count, most, what in (
        (work.elements, MOST_ELEMENTS_PER_BYTE, "elements"),
        (work.steps, MOST_STEPS_PER_BYTE, "steps of arithmetic"),
    ):
        if count > max(SMALL, most * work.bytes):
            raise fail(
                "E644",
                f"{operation.where.name}: an operation that touches {work.bytes:,} bytes must have "
                f"at most {max(SMALL, most * work.bytes):,} {what}, and this one has {count:,}",
                origin=operation.where.origin,
                help="a size, a stride or the kernel is wrong: see the registers before it with "
                "mizzen inspect --listing",
            )
    return work


def _inputs(
    operation: Convolution | MatrixProduct | Pooling | Elementwise | Resize,
) -> list[FeatureMap]:
    match operation:
        case Elementwise():
            return operation.maps
        case MatrixProduct():
            return [operation.ifm, operation.weights]
        case _:
            return [operation.ifm]


def _for_one(operation: Convolution | MatrixProduct | Pooling | Elementwise | Resize) -> int:
    """Return the steps for one element of the result."""
    match operation:
        case Convolution():
            depth = 1 if operation.depthwise else operation.ifm.depth
            return operation.kernel.height * operation.kernel.width * depth
        case MatrixProduct():
            return operation.ifm.depth
        case Pooling():
            depth = operation.ifm.depth if operation.mode is Pool.REDUCE_SUM else 1
            return operation.kernel.height * operation.kernel.width * depth
        case _:
            return 1


def _elements(fm: FeatureMap) -> int:
    return fm.height * fm.width * fm.depth


def _bytes(fm: FeatureMap) -> int:
    """Return how many bytes lie under a map, at most: its elements', or first to last."""
    dense = _elements(fm) * fm.dtype.itemsize
    if fm.region <= FIRST_CHAIN:
        return dense
    return min(dense, sum(high - low for low, high in (piece.extent for piece in pieces(fm))))
