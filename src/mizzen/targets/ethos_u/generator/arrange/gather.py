"""Write what the windows cover of a row side by side, where rows are short.

A convolution of few channels leaves most of the array idle; what its windows cover of a row is
contiguous, but overlaps. Where a row is short, a 1x1 convolution writes all of it anew: its pixels
are rows, its channels the elements of a row, and its weights are ones and zeros that choose for
each output column the elements of its window, zeros of the padding included. The convolution then
has `kh` x 1 windows over a map of as many channels as a window has elements in a row. It is one
operation with one copy of its weights, where reading columns as channels takes several.

Where the window goes down by several rows at once, so many rows may be one pixel: `kh` becomes as
many times less, channels more. Rows that are left over at the end are written by an operation of
their own, which fills up their pixel with zeros.

What is chosen comes out as it is, by a multiplier and shift of one, and padding as the zero point:
exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.arrange.columns import (
    Line,
    few_channels,
    line_weights,
    one_element,
)
from mizzen.targets.ethos_u.generator.arrange.strided import HEIGHT, WIDTH, is_dense
from mizzen.targets.ethos_u.generator.arrange.units import identity_scales, whole_range
from mizzen.targets.ethos_u.generator.operations import (
    Box,
    Bytes,
    Convolution,
    Kernel,
    Sequence,
    Shape,
    Tensor,
    replaced,
)
from mizzen.targets.ethos_u.generator.tuned import MOST_GATHERING_WEIGHTS


@dataclass(frozen=True, slots=True)
class _Windows:
    """A new map: pixels of `rows` rows, and `made` columns of windows over `depth` channels."""

    line: Line
    depth: int
    rows: int
    height: int

    @property
    def shape(self) -> Shape:
        """Height, width and depth of the map."""
        height = -(-self.height // self.rows)
        return height, self.line.made, self.rows * self.line.size * self.depth

    @property
    def weight_count(self) -> int:
        """How many weights there are: with long rows more than can be made to be counted."""
        return math.prod(self.shape[1:]) * self.rows * self.line.given * self.depth

    @property
    def weights(self) -> npt.NDArray[np.int16]:
        """Weights [elements of a row of the map, 1, 1, elements of its rows]: ones, zeros."""
        line, depth, tall = self.line, self.depth, self.rows
        chosen = np.zeros((line.made, tall, line.size, depth, tall, line.given, depth), np.int16)
        for column, place_y, tap in np.ndindex(line.made, tall, line.size):
            place = column * line.stride - line.before + tap
            if 0 <= place < line.given:
                chosen[column, place_y, tap, :, place_y, place] = np.eye(depth, dtype=np.int16)
        return chosen.reshape(math.prod(chosen.shape[:4]), 1, 1, math.prod(chosen.shape[4:]))


def gather_columns(sequence: Sequence, index: int, rows: int = 1) -> Sequence | None:
    """Return a sequence whose operation `index` reads its windows' columns out of a new tensor.

    Operations before it write them, `rows` rows of the input as one. None where it is not a
    convolution of few 8-bit channels that are contiguous along a row, where rows are long, or its
    windows do not go down by so many rows.
    """
    taken = few_channels(sequence, index, WIDTH)
    if taken is None:
        return None
    operation, view = taken
    kernel = operation.kernel
    windows = _Windows(
        line=Line.of(operation, WIDTH), depth=view.shape[2], rows=rows, height=view.shape[HEIGHT]
    )
    if rows > 1 and not _goes_down(operation, view, rows):
        return None
    if operation.ifm.dtype.itemsize > 1 or windows.weight_count > MOST_GATHERING_WEIGHTS:
        return None
    tensor = Tensor("windows", windows.shape, operation.ifm.dtype)
    last = replace(
        operation,
        ifm=replace(operation.ifm, view=Box(len(sequence.tensors), windows.shape)),
        kernel=replace(kernel, **one_element(WIDTH)),
        weights=line_weights(operation.weights, WIDTH, 0, kernel.width),
        part_kernel=None,
    )
    if rows > 1:
        last = _with_rows(last, rows)
    first = _choosers(operation, view, windows, len(sequence.tensors))
    return replaced(sequence, {index: (*first, last)}, tensors=(*sequence.tensors, tensor))


def _goes_down(operation: Convolution, view: Bytes, rows: int) -> bool:
    """Whether windows begin with a pixel of so many rows, and rows follow each other."""
    kernel, dense = operation.kernel, is_dense(view, operation.ifm.dtype.itemsize)
    steps = kernel.stride_y == rows and kernel.pad_top % rows == 0 and kernel.dilation_y == 1
    return dense and steps and view.shape[HEIGHT] >= rows


def _choosers(
    operation: Convolution, view: Bytes, windows: _Windows, tensor: int
) -> Iterator[Convolution]:
    """Return the operations that write the map: of all whole pixels, and of rows left over."""
    tall, row_bytes = windows.rows, view.strides_bytes[HEIGHT]
    elements, chosen = windows.line.given * windows.depth, math.prod(windows.shape[1:])
    weights = windows.weights
    whole, over = divmod(windows.height, tall)
    for first, count, deep in ((0, whole, tall), (whole, int(over > 0), over)):
        if not count:
            continue
        given = replace(
            view,
            shape=(1, count, deep * elements),
            offset_bytes=view.offset_bytes + first * tall * row_bytes,
            strides_bytes=(count * tall * row_bytes, tall * row_bytes, 1),
        )
        written = Bytes(
            tensor=tensor,
            shape=(1, count, chosen),
            offset_bytes=first * chosen,
            strides_bytes=(count * chosen, chosen, 1),
        )
        yield Convolution(
            origin=operation.origin,
            ifm=replace(operation.ifm, view=given),
            ofm=replace(operation.ifm, view=written),
            kernel=Kernel(),
            weights=np.ascontiguousarray(weights[..., : deep * elements]),
            scales=identity_scales(chosen),
            activation=whole_range(operation.ifm.dtype),
        )


def _with_rows(operation: Convolution, tall: int) -> Convolution:
    """Return a convolution with `kh` x 1 windows as one over pixels of several rows."""
    outputs, high, _, depth = operation.weights.shape
    height = -(-high // tall)
    weights = np.pad(operation.weights, ((0, 0), (0, height * tall - high), (0, 0), (0, 0)))
    top = operation.kernel.pad_top // tall
    needed, given = operation.ofm.shape[HEIGHT] - 1 + height - top, operation.ifm.shape[HEIGHT]
    kernel = replace(
        operation.kernel,
        height=height,
        stride_y=1,
        pad_top=top,
        pad_bottom=max(0, needed - given),
    )
    return replace(
        operation, kernel=kernel, weights=weights.reshape(outputs, height, 1, tall * depth)
    )
