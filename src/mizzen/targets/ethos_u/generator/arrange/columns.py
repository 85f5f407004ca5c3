"""Read the columns that a window covers as channels, where a map has few of them.

The array multiplies 8 input channels at once at the least. In NHWC the columns of one row that a
window covers are contiguous: `k` columns of `C` channels are one pixel of `k * C`. A kernel of
`kh` x `k` so becomes one of `kh` x 1, of more channels and with the same weights.

Neighbouring windows overlap if they are wider than they step. Every `ceil(k / stride)`-th output
column does not, so that as many operations, each with its own of these columns, read pixels that
lie apart. The columns at the border read fewer channels, with what they miss cut off the weights.
Where pixels so lie apart that bytes between them are left out, a row is read in many short runs;
pixels that also cover these bytes, with weights of zero for them, make it one run. All is alike for
rows, where these are what is contiguous.

One operation for all columns inside needs pixels that overlap: columns nearer to each other than
a pixel is long. The description of registers permits it, and no hardware has been seen to run it,
so that it is not what is made unless asked for.

Sums have the same terms: exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.arrange.strided import (
    WIDTH,
    freed,
    has_tiles,
    in_bytes,
    part,
)
from mizzen.targets.ethos_u.generator.operations import (
    Bytes,
    Convolution,
    Kernel,
    Sequence,
    replaced,
)
from mizzen.targets.ethos_u.generator.tuned import MOST_COLUMN_OPERATIONS
from mizzen.targets.ethos_u.machine.commands_values import UpscaleMode

FEW_CHANNELS = 8
"""Input channels that the array multiplies at once: of more, none is idle."""


class Pixels(Enum):
    """How the pixels that an operation reads lie: apart, one after the other, or overlapping."""

    APART = "apart"
    CONTIGUOUS = "contiguous"
    OVERLAPPING = "overlapping"


@dataclass(frozen=True, slots=True)
class _Columns:
    """Output columns `first`, `first + step`, ... that read the window's columns `low .. high`.

    Columns after the window's last have weights of zero.
    """

    first: int
    step: int
    count: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Line:
    """A kernel along one axis: its size, step and padding before, and the extents of maps."""

    size: int
    stride: int
    before: int
    given: int
    made: int

    def groups(self, pixels: Pixels) -> list[_Columns]:
        """Return the groups of output columns that one operation can make."""
        step = 1 if pixels is Pixels.OVERLAPPING else -(-self.size // self.stride)
        size = step * self.stride if pixels is Pixels.CONTIGUOUS else self.size
        first = -(-self.before // self.stride)
        last = min((self.given + self.before - size) // self.stride, self.made - 1)
        edges = [*range(min(first, self.made)), *range(max(last + 1, first), self.made)]
        groups = [self._edge(column) for column in edges]
        for column in range(first, min(first + step, last + 1)):
            count = (last - column) // step + 1
            groups.append(_Columns(first=column, step=step, count=count, low=0, high=size))
        return sorted(groups, key=lambda group: group.first)

    def _edge(self, column: int) -> _Columns:
        place = column * self.stride - self.before
        return _Columns(
            first=column,
            step=1,
            count=1,
            low=max(0, -place),
            high=min(self.size, self.given - place),
        )

    @staticmethod
    def of(operation: Convolution, axis: int) -> Line:
        """Return the kernel of an operation along its width (`axis` 1) or height (0)."""
        kernel = operation.kernel
        return Line(
            size=_side(kernel, "", axis),
            stride=_side(kernel, "stride_", axis),
            before=kernel.pads[axis],
            given=operation.ifm.shape[axis],
            made=operation.ofm.shape[axis],
        )


def columns_as_channels(
    sequence: Sequence, index: int, axis: int = WIDTH, pixels: Pixels = Pixels.APART
) -> Sequence | None:
    """Return a sequence whose operation `index` reads columns (`axis` 1) or rows (0) as channels.

    None where it is not a convolution of few channels that are contiguous along the axis.
    """
    taken = few_channels(sequence, index, axis)
    if taken is None:
        return None
    operation, view = taken
    line = Line.of(operation, axis)
    groups = line.groups(pixels)
    if len(groups) > MOST_COLUMN_OPERATIONS or any(group.low >= group.high for group in groups):
        return None
    weights: dict[tuple[int, int], npt.NDArray[np.int16]] = {}
    made: list[Convolution] = []
    for group in groups:
        taps = group.low, group.high
        if taps not in weights:
            weights[taps] = line_weights(operation.weights, axis, *taps)
        made.append(_made(operation, view, line, group, weights[taps], axis))
    return freed(replaced(sequence, {index: tuple(made)}))


def few_channels(sequence: Sequence, index: int, axis: int) -> tuple[Convolution, Bytes] | None:
    """Return a convolution of few channels that are contiguous along an axis, and its input."""
    operation = sequence.operations[index]
    if not isinstance(operation, Convolution) or operation.depthwise:
        return None
    view = in_bytes(operation.ifm, sequence.tensors)
    if view is None or has_tiles(operation.ofm) or not _fits(operation, view, axis):
        return None
    return operation, view


def _fits(operation: Convolution, view: Bytes, axis: int) -> bool:
    kernel, depth = operation.kernel, view.shape[2]
    size, dilation = _side(kernel, "", axis), _side(kernel, "dilation_", axis)
    contiguous = view.strides_bytes[axis] == depth * operation.ifm.dtype.itemsize
    plain = operation.upscale is UpscaleMode.NONE and dilation == 1
    return plain and contiguous and size > 1 and depth <= FEW_CHANNELS


def _side(kernel: Kernel, what: str, axis: int) -> int:
    """Return a size (`what` empty), ``stride_`` or ``dilation_`` of a kernel along an axis."""
    names = ("y", "x") if what else ("height", "width")
    return int(getattr(kernel, what + names[axis]))


def line_weights(
    weights: npt.NDArray[np.int16], axis: int, low: int, high: int
) -> npt.NDArray[np.int16]:
    """Return weights [O, kh, 1, kw * I] of some columns (`axis` 1) or rows of the window.

    Those after its last are zero.
    """
    more = high - weights.shape[1 + axis]
    if more > 0:
        ends = [(0, 0)] * 4
        ends[1 + axis] = (0, more)
        weights = np.pad(weights, ends)
    outputs, height, width, _ = weights.shape
    cut = weights[:, :, low:high] if axis == WIDTH else weights[:, low:high].swapaxes(1, 2)
    lines = np.ascontiguousarray(cut).reshape(outputs, height if axis == WIDTH else width, -1)
    return lines[:, :, None] if axis == WIDTH else lines[:, None]


def _made(
    operation: Convolution, view: Bytes, line: Line, group: _Columns,
    weights: npt.NDArray[np.int16], axis: int,
) -> Convolution:  # fmt: skip
    place = group.first * line.stride - line.before + group.low
    ifm = part(
        replace(operation.ifm, view=view), axis, place, group.step * line.stride, group.count
    )
    read = replace(ifm.view, shape=(*ifm.shape[:2], weights.shape[3]))
    return replace(
        operation,
        ifm=replace(ifm, view=read),
        ofm=part(operation.ofm, axis, group.first, group.step, group.count),
        kernel=replace(operation.kernel, **one_element(axis)),
        weights=weights,
        part_kernel=None,
    )


def one_element(axis: int) -> dict[str, Any]:
    """Return what a kernel of one element along an axis has there."""
    if axis == WIDTH:
        return {"width": 1, "stride_x": 1, "pad_left": 0, "pad_right": 0}
    return {"height": 1, "stride_y": 1, "pad_top": 0, "pad_bottom": 0}
