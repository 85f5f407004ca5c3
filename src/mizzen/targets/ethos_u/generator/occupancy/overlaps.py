"""How far the writing of an operation's output falls behind the reading of its input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    BRICK,
    Blockwise,
    Box,
    Computation,
    Convolution,
    Elementwise,
    Map,
    MatrixProduct,
    Pooling,
    Resize,
    Shape,
    Tensor,
    links_of,
    views_read,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout, PoolingMode, UpscaleMode


@dataclass(frozen=True, slots=True)
class Overlap:
    """Where an output may begin while an input is read.

    reach_bytes  from the start of the input's tensor to that of the output's, at most
    exact_bytes  a place after the start of the input's at which it may begin whatever the reach;
                 None if there is none
    """

    reach_bytes: int
    exact_bytes: int | None


@dataclass(frozen=True, slots=True)
class _Lines:
    """Rows of a map in its tensor: where the first begins, from one to the next, how long each."""

    start_bytes: int
    step_bytes: int
    length_bytes: int


def overlap(
    operation: Blockwise,
    block: Shape,
    tensor: int,
    tensors: Sequence[Tensor],
    layouts: Sequence[Layout],
) -> Overlap | None:
    """Return how the output's tensor may lie over an input's, if it may at all.

    It holds for an operation that is done at once, blocks of whose output follow each other along
    depth, then width, then height; `tensor` is one that it reads. Links of a chain read a block
    before the last one writes it.
    """
    views = [(link, view) for link, view in views_read(operation) if view.tensor == tensor]
    ofm, written = operation.ofm, _lines(operation.ofm, tensors, layouts)
    straight = all(link.order == AS_COMPUTED for link in links_of(operation))
    if written is None or ofm.tensor == tensor or not straight:
        return None
    reaches: list[int] = []
    exact: set[int | None] = set()
    for link, view in views:
        read = _lines(view, tensors, layouts)
        if read is None:
            return None
        reaches.append(_reach(link, block, view, read, written))
        alike = _strides(view, tensors, layouts) == _strides(ofm, tensors, layouts)
        late = _rows_late(link, ofm, block, view) if alike else None
        at = read.start_bytes - written.start_bytes
        if late and read.step_bytes < read.length_bytes:
            late = None  # Rows lie between one another: a row before the first is one of another.
        exact.add(None if late is None else at - late * read.step_bytes)
    if not reaches:
        return None
    return Overlap(min(reaches), exact.pop() if len(exact) == 1 else None)


def _reach(operation: Computation, block: Shape, view: Map, read: _Lines, written: _Lines) -> int:
    """Return the least distance from the end of what is written to what is read afterwards."""
    height, width, depth = operation.ofm.shape
    tall, wide, deep = block
    # Sums are complete when all of a block's input is read; what has no sums may write before.
    sums = not isinstance(operation, Elementwise)
    at_once = sums and wide >= width and deep >= depth
    steps = read.step_bytes, written.step_bytes
    least = _least(height, tall, at_once, _rows_read(operation, view), *steps)
    if least is None:
        # One block reads all before it writes anything: only the end of the input is a limit.
        return read.start_bytes + (view.shape[0] - 1) * read.step_bytes + read.length_bytes
    return read.start_bytes - written.start_bytes - written.length_bytes + least


@dataclass(frozen=True, slots=True)
class _RowsRead:
    """The first row of an input that a row of the output, and all below it, need.

    last  the input's; it counts where more are asked for
    """

    stride: int
    above: int
    factor: int
    last: int

    def first(self, row: int) -> int:
        """Return it of a row."""
        return min(max(0, row * self.stride - self.above) // self.factor, self.last)


def _rows_read(operation: Computation, view: Map) -> _RowsRead:
    match operation:
        case Elementwise():
            stride = 1 if view.shape[0] > 1 else 0
            return _RowsRead(stride, 0, 1, operation.ofm.shape[0])
        case MatrixProduct(ifm2=second):
            return _RowsRead(0 if view == second else 1, 0, 1, view.shape[0] - 1)
        case Resize():
            return _RowsRead(0, 0, 1, 0)
        case Convolution(kernel=kernel, upscale=upscale) | Pooling(kernel=kernel, upscale=upscale):
            factor = 1 if upscale is UpscaleMode.NONE else 2
            return _RowsRead(kernel.stride_y, kernel.pad_top, factor, view.shape[0] - 1)


@lru_cache(maxsize=1 << 12)
def _least(
    height: int, tall: int, at_once: bool, reads: _RowsRead, read_bytes: int, written_bytes: int
) -> int | None:
    """Return by how much what is read lies at the least after the last row that is written.

    read_bytes, written_bytes  from one row to the next; both begin at 0

    None where one block is all.
    """
    distances: list[int] = []
    for y in range(0, height, tall):
        stop = min(y + tall, height)
        # Blocks beside each other read the same rows: the last of them reads what the first wrote.
        following = stop if at_once else y
        if following >= height:
            break
        distances.append(reads.first(following) * read_bytes - (stop - 1) * written_bytes)
    return min(distances, default=None)


def _lines(view: Map, tensors: Sequence[Tensor], layouts: Sequence[Layout]) -> _Lines | None:
    """Return the rows of a map; None where tiles break them or they are read backwards."""
    size = view.dtype.itemsize
    _, width, depth = view.shape
    if isinstance(view.view, Box):
        layout = layouts[view.tensor]
        row_bytes, column, brick = tensors[view.tensor].strides_bytes(layout)
        (top, left, low), steps = view.view.start, view.view.steps
        inner = low // BRICK * brick if layout is Layout.NHCWB16 else low * size
        start, step = top * row_bytes + left * column + inner, steps[0] * row_bytes
        column *= steps[1]
    else:
        layout = view.view.layout
        step, column, brick = view.view.strides_bytes
        start = view.view.offset_bytes
        if view.view.tiles is not None or min(view.view.strides_bytes) < 0:
            return None
    if layout is Layout.NHCWB16:
        length = (-(-depth // BRICK) - 1) * brick + (width - 1) * column + BRICK * size
    else:
        length = (width - 1) * column + depth * size
    return _Lines(start, step, length)


def _rows_late(operation: Computation, ofm: Map, block: Shape, view: Map) -> int | None:
    """Return how many rows later an element is written than one at its place may be read last.

    None unless each column and channel is read by itself, so that others do not matter.
    """
    match operation:
        case Elementwise():
            return 0 if view.shape == ofm.shape else None
        case Convolution(depthwise=True) | Pooling(mode=PoolingMode.MAX | PoolingMode.AVERAGE):
            kernel = operation.kernel
        case _:
            return None
    straight = operation.upscale is UpscaleMode.NONE and kernel.stride_y == kernel.stride_x == 1
    alone = block[1] >= ofm.shape[1] or kernel.width == 1
    same = view.dtype.itemsize == ofm.dtype.itemsize and view.shape[1:] == ofm.shape[1:]
    return kernel.pad_top if straight and alone and same else None


def _strides(
    view: Map, tensors: Sequence[Tensor], layouts: Sequence[Layout]
) -> tuple[Layout, tuple[int, int, int]]:
    if not isinstance(view.view, Box):
        return view.view.layout, view.view.strides_bytes
    layout = layouts[view.tensor]
    row_bytes, column, brick = tensors[view.tensor].strides_bytes(layout)
    return layout, (view.view.steps[0] * row_bytes, view.view.steps[1] * column, brick)
