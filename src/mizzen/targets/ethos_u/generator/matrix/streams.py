"""A product of two maps as a convolution: the stream of its weights, and who writes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Box,
    Bytes,
    ChannelScales,
    Convolution,
    Copy,
    Kernel,
    Map,
    Operation,
    Pooling,
    Role,
    Scale,
    Table,
    Tensor,
    Tiles,
    WrittenWeights,
)
from mizzen.targets.ethos_u.generator.weights import (
    LEAST_BYTE,
    MOST_BYTE,
    byte_of,
    gapped_stream,
    microblock_depth,
    orders_of,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode, RoundMode
from mizzen.targets.ethos_u.machine.config import Accelerator

LARGEST_BLOCK_DEPTH = 128
GROUP = 8
"""Input channels whose weights lie one after the other."""
BYTE = np.dtype(np.int8)
UNCHANGED = Scale(1, 0)


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor, as a product reads or writes all of it."""

    tensor: int
    dtype: np.dtype[np.integer[Any]]
    zero_point: int


@dataclass(frozen=True, slots=True)
class Product:
    """For each head, the product of `left` [rows, depth] and `right` [columns, depth] transposed.

    shape   heads, rows, columns, depth; the result is [heads, rows, columns]. Both operands are
            NHWC, [heads, rows, depth] and [heads, columns, depth]
    """

    origin: Origin
    left: Operand
    right: Operand
    result: Operand
    shape: tuple[int, int, int, int]
    scale: Scale
    rounding: RoundMode
    activation: Activation


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What makes a product.

    tensors     that are new: the stream with gaps, constant, and the one whose gaps are filled
    bringing    the transfer of one into the other, to be done once before the operations
    """

    tensors: tuple[Tensor, Tensor]
    bringing: Copy
    operations: tuple[Operation, ...]


def is_possible(product: Product) -> bool:
    """Whether operands are bytes, and what takes the zero point off is a weight."""
    is_narrow = product.left.dtype.itemsize == product.right.dtype.itemsize == 1
    return is_narrow and LEAST_BYTE <= _constant(product.right) <= MOST_BYTE


def _shift(right: Operand) -> int:
    """Return the amount that brings the operand's numbers into the range of weights."""
    return LEAST_BYTE - int(np.iinfo(right.dtype).min)


def _constant(right: Operand) -> int:
    """Return the weight under the input's second copy: with the other it takes the zero point off.

    x * (number - zero_point) is x * (number + shift) + x * constant.
    """
    return -right.zero_point - _shift(right)


def as_written(product: Product, first_tensor: int, accelerator: Accelerator) -> Written:
    """Return the operations that make a product; their new tensors are `first_tensor` and the next.

    The product must be possible (`is_possible`).
    """
    heads, _, columns, depth = product.shape
    unit = microblock_depth(accelerator)
    block_depth = min(LARGEST_BLOCK_DEPTH, unit * -(-columns // unit))
    orders = orders_of((columns, 2, 1, depth), (1, 1), block_depth, 8, False, False, accelerator)
    streams = [gapped_stream(order, _constant(product.right)) for order in orders if order.shape[0]]
    starts = np.cumsum([0, *(len(stream.data) for stream in streams)]).tolist()
    data = b"".join(stream.data for stream in streams)
    shape = (1, 1, len(data))
    lies = np.frombuffer(data, np.uint8)
    tensors = (
        Tensor("weights with gaps", shape, BYTE, Role.CONSTANT, Layout.NHWC, lies),
        Tensor("written weights", shape, BYTE, Role.SCRATCH, Layout.NHWC),
    )
    target = first_tensor + 1
    weights = WrittenWeights(
        target,
        block_depth,
        tuple((start, len(each.data)) for start, each in zip(starts[:-1], streams, strict=True))
        + ((0, 0),) * (len(orders) - len(streams)),
    )
    table = _table(product.right)
    operations: list[Operation] = []
    for head in range(heads):
        for core, stream in enumerate(streams):
            share = core, len(orders)
            operations += [
                _writing(product, part, head, share, target, table)
                for part in _writes(starts[core] + stream.offsets, orders[core].microblock)
            ]
        operations.append(_convolution(product, head, weights))
    bringing = Copy(product.origin, first_tensor, 0, target, 0, len(data))
    return Written(tensors, bringing, tuple(operations))


def _table(right: Operand) -> Table:
    """Return the byte of the stream for each number, in the order of tables."""
    indices = np.arange(-128, 128)
    numbers = indices if right.dtype == np.int8 else indices + 128
    return Table(byte_of(numbers + _shift(right)).tobytes())


@dataclass(frozen=True, slots=True)
class _Part:
    """Weights that one operation writes: squares of rows and columns of the operand.

    shape        squares, rows of each, columns of each
    source       row and column of the first weight
    source_step  rows and columns from one square to the next
    target       offset of the first weight in the tensor, in bytes; `target_step` to the next
                 square's; rows of a square are `GROUP` bytes apart
    """

    shape: tuple[int, int, int]
    source: tuple[int, int]
    source_step: tuple[int, int]
    target: int
    target_step: int


def _writes(offsets: npt.NDArray[np.int64], microblock: int) -> Iterator[_Part]:
    """Return the parts of a stream, in as few operations as strides permit."""
    channels, depth = offsets.shape
    for top, lines, high in _spans(channels, microblock):
        for column, columns, wide in _spans(depth, GROUP):
            grid = offsets[top : top + lines * high : high, column : column + columns * wide : wide]
            down = [
                _Part((number, high, wide), (top + high * at, column + wide * group), (high, 0),
                      int(grid[at, group]), step)
                for group in range(columns)
                for at, number, step in _runs(grid[:, group])
            ]  # fmt: skip
            across = [
                _Part((number, high, wide), (top + high * square, column + wide * at), (0, wide),
                      int(grid[square, at]), step)
                for square in range(lines)
                for at, number, step in _runs(grid[square])
            ]  # fmt: skip
            yield from min(down, across, key=len)


def _spans(total: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Return the begin, number and size of whole parts, and of the rest."""
    whole, rest = divmod(total, size)
    if whole:
        yield 0, whole, size
    if rest:
        yield whole * size, 1, rest


def _runs(offsets: npt.NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Return begin, length and step of runs of numbers at equal distances."""
    begin = 0
    while begin < len(offsets):
        steps = np.diff(offsets[begin:])
        step = int(steps[0]) if len(steps) else 0
        others = np.flatnonzero(steps != step)
        length = int(others[0]) + 1 if len(others) else len(offsets) - begin
        yield begin, length, step
        begin += length


def _writing(
    product: Product,
    part: _Part,
    head: int,
    share: tuple[int, int],
    target: int,
    table: Table,
) -> Pooling:
    """Return the operation that writes a part; `share` is the core's: the first, and each n-th."""
    _, _, columns, depth = product.shape
    core, cores = share
    line, column = part.source
    source = Bytes(
        product.right.tensor,
        part.shape,
        (head * columns + line * cores + core) * depth + column,
        (part.source_step[0] * cores * depth + part.source_step[1], cores * depth, 1),
    )
    written = Bytes(target, part.shape, part.target, (part.target_step, GROUP, 1))
    return Pooling(
        product.origin,
        PoolingMode.AVERAGE,
        Map(source, product.right.dtype),
        Map(written, BYTE),
        Kernel(),
        UNCHANGED,
        Activation(-128, 127, table),
        rounding=RoundMode.NATURAL,
    )


def _convolution(product: Product, head: int, weights: WrittenWeights) -> Convolution:
    _, height, columns, depth = product.shape
    start = head * height * depth
    twice = Tiles(height_0=1, height_1=1, width_0=height, offsets_bytes=(start, start, start))
    lines = Bytes(
        product.left.tensor, (2, height, depth), start, (height * depth, depth, 1), tiles=twice
    )
    result = Box(product.result.tensor, (1, height, columns), (head, 0, 0))
    scales = ChannelScales(
        np.zeros(columns, np.int64),
        np.full(columns, product.scale.multiplier, np.int64),
        np.full(columns, product.scale.shift, np.int64),
    )
    return Convolution(
        product.origin,
        Map(lines, product.left.dtype, product.left.zero_point),
        Map(result, product.result.dtype, product.result.zero_point),
        Kernel(height=2),
        np.zeros((columns, 2, 1, depth), np.int16),
        scales,
        product.activation,
        rounding=product.rounding,
        part_kernel=False,
        written=weights,
    )
