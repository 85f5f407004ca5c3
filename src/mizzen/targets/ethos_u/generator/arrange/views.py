"""See the maps of an operation in another shape that fills the array better.

What lies contiguous in NHWC is a map of any shape of as many elements:

- A pool over all positions of `H` x `W` x `C` is one over the rows of `H * W` x `k` x `C / k`: the
  array has work for its whole width, and a window of one column steps through 4 elements at once.
- A 1x1 convolution computes positions by themselves: `H` x `W` may be one row, or any other.
- An elementwise operation computes elements by themselves: all of its maps may be any shape, of a
  depth that fills blocks.

The same terms, the same divisor: exact. A padded average divides by what is there, and stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from mizzen.targets.ethos_u.generator.arrange.strided import in_bytes, is_dense, is_planes
from mizzen.targets.ethos_u.generator.operations import (
    BRICK,
    Bytes,
    ChannelScales,
    Computation,
    Convolution,
    Elementwise,
    Kernel,
    Map,
    Pooling,
    Sequence,
    Shape,
    maps_read,
    replaced,
)
from mizzen.targets.ethos_u.generator.shared_buffer import core_of
from mizzen.targets.ethos_u.generator.tuned import VIEW_WIDTHS
from mizzen.targets.ethos_u.machine.commands_values import PoolingMode, UpscaleMode
from mizzen.targets.ethos_u.machine.config import Accelerator

MOST_ROWS = 256
"""Height of a window of a pool. Ref: Vela 5.2, SUPPORTED_OPS.md, AVERAGE_POOL_2D."""
MOST_ROWS_WEIGHED = 64
"""The same of a kernel with weights. Ref: SUPPORTED_OPS.md, DEPTHWISE_CONV_2D."""
ROW_UNIT = (1, 4)
"""What 256 MACs work on where the output has one row, of even width, in the place of 2 x 2.

Ref: Vela 5.2, npu_performance.py: what its estimate takes.
"""


def pool_view(sequence: Sequence, index: int, columns: int) -> Sequence | None:
    """Return a sequence whose operation `index` pools the rows of `columns` columns.

    None where it is not an unpadded pool (or depthwise convolution with the same weights in each
    of these columns) over all positions of a dense map, of channels that divide.
    """
    operation = sequence.operations[index]
    if not _pools_all(operation, columns):
        return None
    assert isinstance(operation, Pooling | Convolution), "it pools"
    height, width, channels = operation.ifm.shape
    ifm = _dense(operation.ifm, sequence, (height * width, columns, channels // columns))
    ofm = _dense(operation.ofm, sequence, (1, columns, channels // columns))
    if ifm is None or ofm is None:
        return None
    kernel = Kernel(height=height * width)
    changed = replace(operation, ifm=ifm, ofm=ofm, kernel=kernel)
    if isinstance(changed, Convolution):
        each = channels // columns
        weights = changed.weights[:each].reshape(each, height * width, 1, 1)
        changed = replace(changed, weights=weights, scales=_first(changed.scales, each))
    return replaced(sequence, {index: (changed,)})


def _pools_all(operation: object, columns: int) -> bool:
    if not isinstance(operation, Pooling | Convolution):
        return False
    kernel, (height, width, channels) = operation.kernel, operation.ifm.shape
    whole = (kernel.height, kernel.width) == (height, width) and not any(kernel.pads)
    plain = operation.upscale is UpscaleMode.NONE and (kernel.dilation_y, kernel.dilation_x) == (
        1, 1,
    )  # fmt: skip
    if not whole or not plain or operation.ofm.shape[:2] != (1, 1) or channels % columns:
        return False
    match operation:
        case Pooling(mode=mode):
            return mode is not PoolingMode.REDUCE_SUM and 1 < height * width <= MOST_ROWS
        case Convolution():
            return 1 < height * width <= MOST_ROWS_WEIGHED and _repeats(operation, columns)


def _repeats(operation: Convolution, columns: int) -> bool:
    """Whether a depthwise convolution does the same to each of `columns` groups of channels."""
    if not operation.depthwise:
        return False
    scales = operation.scales
    parts = (operation.weights, scales.biases, scales.multipliers, scales.shifts)
    grouped = (part.reshape(columns, part.shape[0] // columns, *part.shape[1:]) for part in parts)
    return all((group == group[:1]).all() for group in grouped)


def _first(scales: ChannelScales, count: int) -> ChannelScales:
    return ChannelScales(scales.biases[:count], scales.multipliers[:count], scales.shifts[:count])


def positions_view(sequence: Sequence, index: int, shape: tuple[int, int]) -> Sequence | None:
    """Return a sequence whose 1x1 convolution (or pool) `index` sees so many rows and columns.

    None where it is not one, or its rows do not follow each other.
    """
    operation = sequence.operations[index]
    if isinstance(operation, Elementwise) or not _is_point(operation):
        return None
    assert isinstance(operation, Pooling | Convolution), "it has a window"
    if math.prod(shape) != math.prod(operation.ofm.shape[:2]) or shape == operation.ofm.shape[:2]:
        return None
    ifm = _rows(operation.ifm, sequence, shape)
    ofm = _rows(operation.ofm, sequence, shape)
    if ifm is None or ofm is None:
        return None
    return replaced(sequence, {index: (replace(operation, ifm=ifm, ofm=ofm),)})


def _is_point(operation: object) -> bool:
    if not isinstance(operation, Pooling | Convolution):
        return False
    kernel = operation.kernel
    if isinstance(operation, Convolution) and operation.depthwise:
        return False
    alone = (kernel.height, kernel.width, kernel.stride_y, kernel.stride_x) == (1, 1, 1, 1)
    return alone and not any(kernel.pads) and operation.upscale is UpscaleMode.NONE


def elements_view(sequence: Sequence, index: int, shape: Shape) -> Sequence | None:
    """Return a sequence whose elementwise operation `index` sees all its maps in a shape.

    None where it is not one, or one of its maps is broadcast or not dense.
    """
    operation = sequence.operations[index]
    if not isinstance(operation, Elementwise) or shape == operation.ofm.shape:
        return None
    maps = [operation.ifm, operation.ofm]
    maps += [operation.ifm2] if isinstance(operation.ifm2, Map) else []
    seen = [_dense(map_, sequence, shape) for map_ in maps]
    if any(map_ is None for map_ in seen):
        return None
    changed = replace(operation, ifm=seen[0], ofm=seen[1], ifm2=(*seen, operation.ifm2)[2])
    return replaced(sequence, {index: (changed,)})


def elements_seen(
    operation: Elementwise, sequence: Sequence, shape: Shape, steps: tuple[int, int]
) -> Elementwise | None:
    """Return an elementwise operation that sees its output, and its inputs with it, in a shape.

    steps  of its positions, row by row as it sees them now, from one row to the next of the shape,
           and from one column to the next

    None where one of its maps cannot be seen so.
    """
    whole = operation.ofm.shape

    def seen(map_: Map) -> Map | None:
        if map_.shape == (1, 1, 1) or (map_.shape[:2] == (1, 1) and shape[2] == whole[2]):
            return map_
        if map_.shape[:2] == whole[:2] and shape[2] == whole[2]:
            return _stepped(map_, sequence, shape[:2], steps)
        return _dense(map_, sequence, shape) if map_.shape == whole else None

    maps = [seen(map_) for map_ in (*maps_read(operation), operation.ofm)]
    if any(map_ is None for map_ in maps):
        return None
    others = iter(map_ for map_ in maps if map_ is not None)
    ifm = next(others)
    ifm2 = next(others) if isinstance(operation.ifm2, Map) else operation.ifm2
    return replace(operation, ifm=ifm, ifm2=ifm2, ofm=next(others))


def _stepped(
    map_: Map, sequence: Sequence, shape: tuple[int, int], steps: tuple[int, int]
) -> Map | None:
    """Return a map whose rows follow each other in others, so many positions apart."""
    line = in_one_row(map_, sequence)
    if line is None:
        return None
    _, stride_x, stride_c = line.strides_bytes
    strides = steps[0] * stride_x, steps[1] * stride_x, stride_c
    return replace(map_, view=replace(line, shape=(*shape, line.shape[2]), strides_bytes=strides))


def in_one_row(map_: Map, sequence: Sequence) -> Bytes | None:
    """Return a map as one row of all its positions; None where they are no row."""
    seen = _rows(map_, sequence, (1, map_.shape[0] * map_.shape[1]))
    return seen.view if seen is not None and isinstance(seen.view, Bytes) else None


def view_shapes(operation: Computation, accelerator: Accelerator) -> Iterator[Shape]:
    """Return shapes of an output that leave less of the array or of bricks idle than it does."""
    height, width, depth = operation.ofm.shape
    positions = height * width
    if isinstance(operation, Elementwise):
        if depth % BRICK:
            yield from _element_shapes(positions * depth)
        return
    if not _is_point(operation):
        return
    filled = min(_idle(height, width, accelerator), _idle(width, height, accelerator))
    for columns in (positions, *VIEW_WIDTHS):
        height_seen = positions // columns
        if not positions % columns and _idle(height_seen, columns, accelerator) < filled:
            yield height_seen, columns, depth


def _idle(height: int, width: int, accelerator: Accelerator) -> float:
    """Return how many times as many positions the array works on as there are."""
    high, wide = core_of(accelerator).microblock[:2]
    if height == 1 and high == 2 and width % 2 == 0:
        high, wide = ROW_UNIT
    return (high * -(-height // high) / height) * (wide * -(-width // wide) / width)


def _element_shapes(elements: int) -> Iterator[Shape]:
    for depth in (2 * BRICK, BRICK):
        if elements % depth:
            continue
        rest = elements // depth
        columns = max(count for count in range(1, max(VIEW_WIDTHS) + 1) if not rest % count)
        yield rest // columns, columns, depth


def _dense(map_: Map, sequence: Sequence, shape: Shape) -> Map | None:
    """Return a map of contiguous elements in another shape of as many."""
    view, size = in_bytes(map_, sequence.tensors), map_.dtype.itemsize
    if view is None or not is_dense(view, size) or math.prod(shape) != math.prod(view.shape):
        return None
    _, width, depth = shape
    strides = width * depth * size, depth * size, size
    return replace(
        map_,
        view=Bytes(
            tensor=view.tensor, shape=shape, offset_bytes=view.offset_bytes, strides_bytes=strides
        ),
    )


def _rows(map_: Map, sequence: Sequence, shape: tuple[int, int]) -> Map | None:
    """Return a map whose rows follow each other in others of as many positions."""
    view = map_.view if is_planes(map_.view) else in_bytes(map_, sequence.tensors)
    if not isinstance(view, Bytes):
        return None
    height, width, depth = view.shape
    stride_y, stride_x, size = view.strides_bytes
    if width == 1:
        stride_x = stride_y
    elif height > 1 and stride_y != width * stride_x:
        return None
    strides = stride_x * shape[1], stride_x, size
    return replace(map_, view=replace(view, shape=(*shape, depth), strides_bytes=strides))
