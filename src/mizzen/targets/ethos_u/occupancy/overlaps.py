"""How far the writing of an operation's output falls behind the reading of its input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.targets.ethos_u.commands_values import Layout, PoolingMode, UpscaleMode
from mizzen.targets.ethos_u.operations import (
    BRICK,
    Box,
    Computation,
    Convolution,
    Elementwise,
    Kernel,
    Map,
    Pooling,
    Shape,
    Tensor,
    maps_read,
)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Where an output may begin while an input is read.

    reach_bytes  from the start of the input's tensor to that of the output's, at most
    in_place     whether both may begin at one place, whatever the reach
    """

    reach_bytes: int
    in_place: bool


@dataclass(frozen=True, slots=True)
class _Lines:
    """Rows of a map in its tensor: where the first begins, from one to the next, how long each."""

    start_bytes: int
    step_bytes: int
    length_bytes: int


def overlap(
    operation: Computation,
    block: Shape,
    tensor: int,
    tensors: Sequence[Tensor],
    layouts: Sequence[Layout],
) -> Overlap | None:
    """Return how the output's tensor may lie over an input's, if it may at all.

    It holds for an operation that is done at once, blocks of whose output follow each other along
    depth, then width, then height; `tensor` is one that it reads.
    """
    views = [row for row in maps_read(operation) if row.tensor == tensor]
    written = _lines(operation.ofm, tensors, layouts)
    if written is None or operation.ofm.tensor == tensor:
        return None
    reach: int | None = None
    in_place = True
    for view in views:
        read = _lines(view, tensors, layouts)
        if read is None:
            return None
        found = _reach(operation, block, view, read, written)
        reach = found if reach is None else min(reach, found)
        in_place &= _is_element_by_element(operation, view) and _alike(
            operation.ofm, view, read == written, tensors, layouts
        )
    return None if reach is None else Overlap(reach, in_place)


def _reach(operation: Computation, block: Shape, view: Map, read: _Lines, written: _Lines) -> int:
    """Return the least distance from the end of what is written to what is read afterwards."""
    height, width, depth = operation.ofm.shape
    tall, wide, deep = block
    # Sums are complete when all of a block's input is read; what has no sums may write before.
    sums = not isinstance(operation, Elementwise)
    at_once = sums and wide >= width and deep >= depth
    most: int | None = None
    for row in range(0, height, tall):
        stop = min(row + tall, height)
        behind = written.start_bytes + (stop - 1) * written.step_bytes + written.length_bytes
        # Blocks beside each other read the same rows: the last of them reads what the first wrote.
        following = stop if at_once else row
        if following >= height:
            break
        ahead = read.start_bytes + first_row_read(operation, view, following) * read.step_bytes
        most = ahead - behind if most is None else min(most, ahead - behind)
    if most is None:
        # One block reads all before it writes anything: only the end of the input is a limit.
        return read.start_bytes + (view.shape[0] - 1) * read.step_bytes + read.length_bytes
    return most


def first_row_read(operation: Computation, view: Map, row: int) -> int:
    """Return the first row of an input that a row of the output, and all below it, need."""
    match operation:
        case Elementwise():
            return row if view.shape[0] > 1 else 0
        case Convolution(kernel=kernel, upscale=upscale) | Pooling(kernel=kernel, upscale=upscale):
            factor = 1 if upscale is UpscaleMode.NONE else 2
            first = max(0, row * kernel.stride_y - kernel.pad_top) // factor
            return min(first, view.shape[0] - 1)


def _lines(view: Map, tensors: Sequence[Tensor], layouts: Sequence[Layout]) -> _Lines | None:
    size = view.dtype.itemsize
    _, width, depth = view.shape
    if isinstance(view.view, Box):
        layout = layouts[view.tensor]
        row, column, brick = tensors[view.tensor].strides_bytes(layout)
        (top, left, low), steps = view.view.start, view.view.steps
        inner = low // BRICK * brick if layout is Layout.NHCWB16 else low * size
        start, step = top * row + left * column + inner, steps[0] * row
        column *= steps[1]
    else:
        layout = view.view.layout
        step, column, brick = view.view.strides_bytes
        start = view.view.offset_bytes
        if view.view.tiles is not None:
            return None
    if layout is Layout.NHCWB16:
        length = (-(-depth // BRICK) - 1) * brick + (width - 1) * column + BRICK * size
    else:
        length = (width - 1) * column + depth * size
    return _Lines(start, step, length)


def _is_element_by_element(operation: Computation, view: Map) -> bool:
    match operation:
        case Elementwise():
            return view.shape == operation.ofm.shape
        case Convolution(depthwise=True, kernel=kernel, upscale=UpscaleMode.NONE):
            return kernel == Kernel()
        case Pooling(mode=PoolingMode.MAX | PoolingMode.AVERAGE, upscale=UpscaleMode.NONE):
            return operation.kernel == Kernel()
        case _:
            return False


def _alike(
    ofm: Map, ifm: Map, lines: bool, tensors: Sequence[Tensor], layouts: Sequence[Layout]
) -> bool:
    """Return whether two maps lie in their tensors in the same way."""
    return (
        lines
        and ofm.dtype.itemsize == ifm.dtype.itemsize
        and _strides(ofm, tensors, layouts) == _strides(ifm, tensors, layouts)
    )


def _strides(
    view: Map, tensors: Sequence[Tensor], layouts: Sequence[Layout]
) -> tuple[Layout, tuple[int, int, int]]:
    if not isinstance(view.view, Box):
        return view.view.layout, view.view.strides_bytes
    layout = layouts[view.tensor]
    row, column, brick = tensors[view.tensor].strides_bytes(layout)
    return layout, (view.view.steps[0] * row, view.view.steps[1] * column, brick)
