"""Ways to split a layer into tiles, with what the largest tile costs: Pareto lists.

A split says into how many parts each axis of the output is cut, and the input channels. Parts are
even, channels in groups. All ways of a layer are weighed at once with NumPy; layers of the same
shape share the result.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.mesh.machine.machine import ElementKind
from mizzen.mesh.machine.work import WorkKind
from mizzen.mesh.mapping.depths import Buffering
from mizzen.mesh.mapping.memory import ALIGNMENT_BYTES, SUM_BYTES, WITH_SCRATCH
from mizzen.mesh.mapping.options import SumSplit
from mizzen.mesh.mapping.sum_ranges import SumRange
from mizzen.mesh.network.boxes import Box, box_of, elements_of
from mizzen.mesh.network.network import (
    CHANNEL,
    HEIGHT,
    WIDTH,
    Layer,
    LayerKind,
    Network,
    held_bytes,
)
from mizzen.mesh.network.regions import Span, needed_boxes, work_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64] | npt.NDArray[np.floating[Any]]

GROUP = 16
"""Channels that are kept together where a layer has more, so that arrays are full."""
MOST_SUMS = 8
"""Parts that input channels are cut into at most: each more costs a box of 32-bit sums."""
CHIP_PARTS = (2, 3, 4, 7, 8)
"""Into how many parts chips cut an axis, but for products of these."""
MOST_PARTS = 64
"""Parts of an axis at most."""


@dataclass(frozen=True, slots=True)
class Split:
    """Into how many parts each axis of the output is cut, and the input channels."""

    parts: tuple[int, ...]
    sums: int = 1

    @property
    def tiles(self) -> int:
        """How many tiles that gives."""
        return math.prod(self.parts) * self.sums


@dataclass(frozen=True, slots=True)
class Limits:
    """What splits may be: tiles at most, whether sums are split; the rate that inputs come at."""

    tiles: int
    sums: SumSplit
    port_bytes_per_s: float


@dataclass(frozen=True, eq=False)
class Choices:
    """Splits of one layer, none worse than another in all of tiles, time, bytes and traffic.

    parts    ``[splits, axes]``: of each split
    tiles    of each split
    seconds  ``[kinds, splits]``: of the slowest tile, on each kind of element, and of its inputs'
             coming where there is one slot only
    held     bytes that the largest tile keeps when its inputs and output are messages
    alone    bytes that it keeps when they are not: one slot of each
    traffic  bytes that all tiles receive for an image
    """

    splits: tuple[Split, ...]
    parts: Ints
    tiles: Ints
    seconds: Floats
    held: Ints
    alone: Ints
    traffic: Ints


def fewer(choices: Choices, tiles: int) -> Choices:
    """Return the choices of at most so many tiles."""
    keep = np.flatnonzero(choices.tiles <= tiles)
    return Choices(
        tuple(choices.splits[at] for at in keep.tolist()),
        choices.parts[keep],
        choices.tiles[keep],
        choices.seconds[:, keep],
        choices.held[keep],
        choices.alone[keep],
        choices.traffic[keep],
    )


def spans_of(extent: int, parts: int, group: int) -> list[Span]:
    """Return the even parts of an axis, cut between groups."""
    groups = -(-extent // group)
    bounds = [min(extent, group * (index * groups // parts)) for index in range(parts + 1)]
    return list(itertools.pairwise(bounds))


def group_of(channels: int) -> int:
    """Return how many channels are kept together when so many are cut."""
    return GROUP if channels > GROUP else 1


def groups_of(layer: Layer, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return for each axis of a layer's output how many elements are kept together."""
    if not shape:
        return ()
    last = 1 if layer.kind is LayerKind.MOVEMENT else group_of(shape[-1])
    return (*(1 for _ in shape[:-1]), last)


def boxes_of(layer: Layer, shape: tuple[int, ...], split: Split) -> list[Box]:
    """Return the boxes of a split, the last axis fastest."""
    boxes: list[Box] = [()]
    for extent, parts, group in zip(shape, split.parts, groups_of(layer, shape), strict=True):
        spans = spans_of(extent, parts, group)
        boxes = [(*box, span) for box in boxes for span in spans]
    return boxes


def sums_of(layer: Layer, split: Split) -> list[Span | None]:
    """Return the ranges of input channels of a split; None for a layer without."""
    if layer.kind is not LayerKind.CONVOLUTION:
        return [None]
    channels = layer.input_channels
    return list(spans_of(channels, split.sums, group_of(channels)))


def _part_counts(extent: int, group: int, most: int = MOST_PARTS) -> list[int]:
    """Return the counts that give parts of different sizes, and multiples of what chips cut into.

    More parts of the same size are no use but for cutting between chips.
    """
    groups = -(-extent // group)
    fewest = {-(-groups // -(-groups // parts)) for parts in range(1, min(groups, most) + 1)}
    multiples = {-(-count // parts) * parts for count in fewest for parts in CHIP_PARTS}
    return sorted(count for count in fewest | multiples if count <= groups)


def _splittable(layer: Layer, shape: tuple[int, ...]) -> list[bool]:
    match layer.kind:
        case LayerKind.GENERAL:
            return [False for _ in shape]
        case LayerKind.REDUCTION:
            return [axis not in layer.reduced_axes for axis in range(len(shape))]
        case _:
            return [True for _ in shape]


def choices_of(
    network: Network,
    layer: Layer,
    kinds: tuple[ElementKind, ...],
    slots: tuple[int, ...],
    buffering: Buffering,
    limits: Limits,
) -> Choices:
    """Return the choices of a layer; `slots` are those of each of its distinct inputs."""
    shape = network.tensors[layer.output].shape
    parts, summed = _grid(layer, shape, kinds, limits.sums)
    few = parts.prod(axis=1) * summed <= limits.tiles
    ways = _Ways(network, layer, parts[few], summed[few])
    held, alone = ways.held(slots, buffering), ways.alone()
    fits = np.flatnonzero(np.minimum(held, alone) <= max(kind.data_bytes for kind in kinds))
    if not len(fits):
        fits = np.array([int(np.argmin(held))])
    tiles, traffic = ways.tiles[fits], ways.traffic()[fits]
    waits = ways.received()[fits] / limits.port_bytes_per_s
    seconds = np.array([ways.seconds(kind)[fits] for kind in kinds])
    if buffering is Buffering.SINGLE:
        seconds = seconds + waits
    columns = np.column_stack([tiles, seconds.T, held[fits], traffic])
    keep = _pareto(columns.astype(np.float64))
    chosen = [ways.split(int(at)) for at in fits[keep]]
    held, alone = held[fits][keep], alone[fits][keep]
    cut = ways.parts[fits[keep]]
    return Choices(tuple(chosen), cut, tiles[keep], seconds[:, keep], held, alone, traffic[keep])


def _grid(
    layer: Layer, shape: tuple[int, ...], kinds: tuple[ElementKind, ...], sums: SumSplit
) -> tuple[Ints, Ints]:
    splittable = _splittable(layer, shape)
    axes = [
        _part_counts(extent, group) if free else [1]
        for extent, group, free in zip(shape, groups_of(layer, shape), splittable, strict=True)
    ]
    if len(shape) > WIDTH + 1:
        axes[WIDTH] = [count for count in axes[WIDTH] if shape[WIDTH] % count == 0]
    counts = _sum_counts(layer, kinds, sums)
    mesh = np.meshgrid(*[np.array(axis, np.int64) for axis in (*axes, counts)], indexing="ij")
    flat = np.stack([axis.reshape(-1) for axis in mesh], axis=1)
    return flat[:, :-1], flat[:, -1]


def _sum_counts(layer: Layer, kinds: tuple[ElementKind, ...], sums: SumSplit) -> list[int]:
    """Return into how many parts input channels may be cut: the fewest in range, and more."""
    if layer.kind is not LayerKind.CONVOLUTION:
        return [1]
    channels, limits = layer.input_channels, SumRange(layer, kinds)
    group = group_of(channels)
    every = range(1, -(-channels // group) + 1)
    in_range = (parts for parts in every if limits.holds(spans_of(channels, parts, group)))
    fewest = next(in_range, every[-1])
    if sums is SumSplit.NONE or not limits.may_be_cut:
        return [fewest]
    more = [parts for parts in _part_counts(channels, group, MOST_SUMS) if parts > fewest]
    return [fewest, *(at for at in more if limits.holds(spans_of(channels, at, group)))]


class _Ways:
    """All ways to split a layer, one a row: the largest tile of each."""

    def __init__(self, network: Network, layer: Layer, parts: Ints, summed: Ints) -> None:
        self.layer, self.parts, self.summed = layer, parts, summed
        shape = network.tensors[layer.output].shape
        self.work = work_of(network, layer, box_of(shape))
        self.item = network.tensors[layer.output].item_bytes
        self.extents = _largest(np.array(shape), parts, np.array(groups_of(layer, shape)))
        self.depth = _largest_sum(layer, summed)
        self.inputs = _input_bytes(network, layer, self.extents, self.depth)
        self.outputs: Ints = self.extents.prod(axis=1)
        self.tiles: Ints = parts.prod(axis=1) * summed
        self.across: Ints = self.extents[:, -1] if shape else np.ones_like(summed)

    def split(self, at: int) -> Split:
        return Split(tuple(map(int, self.parts[at])), int(self.summed[at]))

    def seconds(self, kind: ElementKind) -> Floats:
        """Return the time of a tile: what `cycles` says, of all ways at once."""
        core, work = kind.core, self.work
        partials = core.partial_sum * (self.summed - 1)
        added = self.outputs * (core.pointwise * work.operands + partials)
        return np.ceil(core.task + added + self._own_cycles(kind)) / kind.clock_hz

    def _own_cycles(self, kind: ElementKind) -> Numbers:
        core = kind.core
        match self.work.kind:
            case WorkKind.CONVOLUTION | WorkKind.DEPTHWISE:
                return self._array_cycles(kind)
            case WorkKind.POOLING:
                return self.outputs * self.work.taps * core.pooling
            case WorkKind.POINTWISE:
                return self.outputs * core.pointwise
            case WorkKind.MOVEMENT:
                return self.outputs * core.movement
            case WorkKind.GENERAL:
                return self.outputs * self.work.taps * core.general

    def _array_cycles(self, kind: ElementKind) -> Numbers:
        depth = np.maximum(self.depth, 1)
        taps = self.work.taps // max(self.layer.input_channels, 1) * depth
        array = kind.array
        if array is None:
            return self.outputs * taps * kind.core.multiply
        depthwise = self.work.kind is WorkKind.DEPTHWISE
        columns = array.depthwise_columns if depthwise else array.columns
        pixels = self.outputs // self.across
        return -(-self.across // columns) * -(-pixels // array.rows) * taps

    def held(self, slots: tuple[int, ...], buffering: Buffering) -> Ints:
        """Return the bytes of a tile when everything comes and goes as messages."""
        more = (self.summed > 1).astype(np.int64)
        held = self._constants() + self._scratch()
        for size, count in zip(self.inputs, slots, strict=True):
            held = held + _align(size * (count + more))
        item = np.where(self.summed > 1, SUM_BYTES, self.item)
        sums = (self.summed - 1) * _align(self.outputs * SUM_BYTES * int(buffering))
        return held + _align(self.outputs * item * int(buffering)) + sums

    def alone(self) -> Ints:
        """Return the bytes of a tile when nothing comes or goes as a message."""
        alone = self._constants() + self._scratch() + _align(self.outputs * self.item)
        for size in self.inputs:
            alone = alone + _align(size)
        return alone + (self.summed - 1) * _align(self.outputs * SUM_BYTES * 2)

    def received(self) -> Ints:
        """Return the bytes that the largest tile receives for an image."""
        sums = (self.summed - 1) * self.outputs * SUM_BYTES
        return sum(self.inputs, np.zeros_like(self.tiles)) + sums

    def traffic(self) -> Ints:
        """Return the bytes that all tiles receive for an image."""
        sums = (self.tiles - self.tiles // self.summed) * self.outputs * SUM_BYTES
        return self.tiles * sum(self.inputs, np.zeros_like(self.tiles)) + sums

    def _constants(self) -> Ints:
        layer = self.layer
        bare = held_bytes(layer, 1, 0) - layer.constant_bytes
        weights = held_bytes(layer, 1, 1) - held_bytes(layer, 1, 0)
        each = bare + (weights * self.depth if layer.input_channels else 0)
        return _align(self.across * each + layer.constant_bytes)

    def _scratch(self) -> Ints:
        if self.layer.kind not in WITH_SCRATCH:
            return np.zeros_like(self.tiles)
        return _align((self.outputs + sum(self.inputs)) * SUM_BYTES)


def _align(size: Ints) -> Ints:
    return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def _largest(shape: Ints, parts: Ints, groups: Ints) -> Ints:
    counts = -(-shape // groups)
    return np.minimum(shape, -(-counts // parts) * groups)


def _largest_sum(layer: Layer, summed: Ints) -> Ints:
    if layer.kind is not LayerKind.CONVOLUTION:
        return np.full(len(summed), layer.input_channels, np.int64)
    channels = layer.input_channels
    return _largest(np.array([channels]), summed[:, None], np.array([group_of(channels)]))[:, 0]


def _input_bytes(network: Network, layer: Layer, extents: Ints, depth: Ints) -> list[Ints]:
    """Return for each distinct input the bytes that the largest tile needs of it."""
    needed: dict[int, Ints] = {}
    for place, tensor in enumerate(layer.inputs):
        item = network.tensors[tensor].item_bytes
        size = _through(network, layer, place, extents, depth) * item
        needed[tensor] = np.maximum(needed[tensor], size) if tensor in needed else size
    return list(needed.values())


def _through(network: Network, layer: Layer, place: int, extents: Ints, depth: Ints) -> Ints:
    shape = network.tensors[layer.inputs[place]].shape
    if layer.window is None or place:
        return _by_boxes(network, layer, place, extents)
    window, product = layer.window, extents[:, 0].copy()
    for at, axis in enumerate((HEIGHT, WIDTH)):
        reach = (window.kernel[at] - 1) * window.dilation[at] + 1
        product *= np.minimum(shape[axis], (extents[:, axis] - 1) * window.stride[at] + reach)
    return product * (depth if layer.kind is LayerKind.CONVOLUTION else extents[:, CHANNEL])


def _by_boxes(network: Network, layer: Layer, place: int, extents: Ints) -> Ints:
    unique, inverse = np.unique(extents, axis=0, return_inverse=True)
    shape = network.tensors[layer.inputs[place]].shape
    sizes: list[int] = []
    for each in unique.tolist():
        box = tuple((0, extent) for extent in each)
        needed = needed_boxes(network, layer, box)[place]
        most = elements_of(box_of(shape))
        if layer.kind is LayerKind.MOVEMENT:
            needed = box if elements_of(box) < most else box_of(shape)
        sizes.append(elements_of(needed) if needed else 0)
    return np.array(sizes, np.int64)[inverse.reshape(-1)]


def _pareto(costs: npt.NDArray[np.float64]) -> list[int]:
    """Return the rows that no other row is as good as in every column, in rising order."""
    order = np.lexsort(costs.T[::-1])
    kept: list[int] = []
    front = np.empty((0, costs.shape[1]))
    for at in order.tolist():
        if not len(front) or not (front <= costs[at]).all(axis=1).any():
            kept.append(at)
            front = np.vstack([front, costs[at]])
    return kept
