"""Which box of each input a box of output needs, and the work that it is."""

from __future__ import annotations

import math

from mizzen.mesh.machine.work import Work, WorkKind
from mizzen.mesh.network.boxes import Box, box_of, elements_of
from mizzen.mesh.network.network import CHANNEL, HEIGHT, WIDTH, WINDOWED, Layer, LayerKind, Network

Span = tuple[int, int]

_WORK = {
    LayerKind.CONVOLUTION: WorkKind.CONVOLUTION,
    LayerKind.DEPTHWISE: WorkKind.DEPTHWISE,
    LayerKind.POOLING: WorkKind.POOLING,
    LayerKind.POINTWISE: WorkKind.POINTWISE,
    LayerKind.MOVEMENT: WorkKind.MOVEMENT,
    LayerKind.MATMUL: WorkKind.CONVOLUTION,
    LayerKind.REDUCTION: WorkKind.GENERAL,
    LayerKind.GENERAL: WorkKind.GENERAL,
}

_OWN_OPERANDS = {LayerKind.GENERAL: 1 << 30, LayerKind.MOVEMENT: 1 << 30, LayerKind.MATMUL: 2}
"""Inputs that the work counts already; further ones are added position by position."""


def needed_boxes(
    network: Network, layer: Layer, box: Box, channels: Span | None = None
) -> tuple[Box | None, ...]:
    """Return the box of each input that a box of the output needs; None where it needs nothing.

    `channels` are the input channels that a partial sum of a convolution is over, all by default.
    Boxes are clipped to their tensor: padding is not part of them.
    """
    shapes = [network.tensors[index].shape for index in layer.inputs]
    match layer.kind:
        case LayerKind.CONVOLUTION | LayerKind.DEPTHWISE | LayerKind.POOLING:
            through = _through_window(layer, shapes[0], box, channels)
            added = None if is_partial(layer, channels) and channels and channels[0] else box
            return (through, *(added and _broadcast(shape, added) for shape in shapes[1:]))
        case LayerKind.POINTWISE:
            return tuple(_broadcast(shape, box) for shape in shapes)
        case LayerKind.MATMUL:
            (first, lines, columns), depth = box, shapes[0][2]
            added_boxes = (_broadcast(shape, box) for shape in shapes[2:])
            return ((first, lines, (0, depth)), (first, (0, depth), columns), *added_boxes)
        case LayerKind.MOVEMENT:
            placed = zip(shapes, layer.offsets, strict=True)
            return tuple(_moved(shape, offset, box) for shape, offset in placed)
        case LayerKind.REDUCTION:
            return tuple(_unreduced(layer, shape, box) for shape in shapes)
        case LayerKind.GENERAL:
            return tuple(box_of(shape) for shape in shapes)


def is_partial(layer: Layer, channels: Span | None) -> bool:
    """Whether a tile over these input channels gives a partial sum."""
    return channels is not None and channels != (0, layer.input_channels)


def work_of(
    network: Network, layer: Layer, box: Box, channels: Span | None = None, partials: int = 0
) -> Work:
    """Return the work of a tile for one image."""
    outputs = elements_of(box)
    across = box[-1][1] - box[-1][0] if box else 1
    summed = layer.input_channels if channels is None else channels[1] - channels[0]
    return Work(
        _WORK[layer.kind],
        outputs // max(across, 1),
        across,
        _taps(network, layer, summed, outputs),
        max(0, len(layer.inputs) - _OWN_OPERANDS.get(layer.kind, 1)),
        partials,
    )


def _taps(network: Network, layer: Layer, summed: int, outputs: int) -> int:
    if layer.kind in WINDOWED:
        assert layer.window is not None
        return math.prod(layer.window.kernel) * max(summed, 1)
    if layer.kind is LayerKind.MATMUL:
        return network.tensors[layer.inputs[0]].shape[2]
    if layer.kind is LayerKind.REDUCTION:
        taken, given = (network.tensors[index].shape for index in (layer.inputs[0], layer.output))
        return max(1, math.prod(taken[axis] // given[axis] for axis in layer.reduced_axes))
    if layer.kind is LayerKind.GENERAL:
        taken = sum(math.prod(network.tensors[index].shape) for index in layer.inputs)
        return max(1, -(-taken // max(outputs, 1)))
    return 1


def _through_window(layer: Layer, shape: tuple[int, ...], box: Box, channels: Span | None) -> Box:
    assert layer.window is not None
    window = layer.window
    spans = list(box)
    for place, axis in enumerate((HEIGHT, WIDTH)):
        stride, padding = window.stride[place], window.padding[place]
        reach = (window.kernel[place] - 1) * window.dilation[place] + 1
        start, stop = box[axis]
        first = max(0, start * stride - padding)
        last = min(shape[axis], (stop - 1) * stride - padding + reach)
        spans[axis] = (min(first, shape[axis] - 1), max(last, 1))
    if layer.kind is LayerKind.CONVOLUTION:
        spans[CHANNEL] = channels or (0, shape[CHANNEL])
    return tuple(spans)


def _broadcast(shape: tuple[int, ...], box: Box) -> Box:
    spans = box[len(box) - len(shape) :]
    return tuple((0, 1) if extent == 1 else span for extent, span in zip(shape, spans, strict=True))


def _moved(shape: tuple[int, ...], offset: tuple[int, ...], box: Box) -> Box | None:
    moved = tuple(
        (max(0, start - first), min(extent, stop - first))
        for extent, first, (start, stop) in zip(shape, offset, box, strict=True)
    )
    return moved if all(start < stop for start, stop in moved) else None


def _unreduced(layer: Layer, shape: tuple[int, ...], box: Box) -> Box:
    return tuple(
        (0, extent) if axis in layer.reduced_axes or extent == 1 else span
        for axis, (extent, span) in enumerate(zip(shape, box, strict=True))
    )
