"""One replica of a network: tiles on seats, and what they send each other for an image.

A seat is an element that has not been chosen yet. All replicas are copies of one template; placing
gives its seats elements, once for each replica.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from mizzen.mesh.mapping.depths import Buffering, slots_between
from mizzen.mesh.mapping.mapping import Tile
from mizzen.mesh.mapping.memory import SUM_BYTES, inputs_of
from mizzen.mesh.mapping.options import Multicast
from mizzen.mesh.mapping.splits import Split, boxes_of, sums_of
from mizzen.mesh.mapping.stages import Stage, Stages
from mizzen.mesh.network.boxes import Box, elements_of, intersection
from mizzen.mesh.network.network import Network
from mizzen.mesh.network.regions import Span

Slots = dict[tuple[int, int | None], int]


@dataclass(frozen=True, slots=True)
class Flow:
    """A box of a tensor that a tile sends to others, as a message once it has a route.

    tensor  None for partial sums
    """

    source: int
    targets: tuple[int, ...]
    tensor: int | None
    box: Box
    size_bytes: int


@dataclass(frozen=True, eq=False)
class Template:
    """Tiles whose elements are seats; `kinds` has the kind of each seat."""

    network: Network
    tiles: tuple[Tile, ...]
    kinds: tuple[int, ...]
    flows: tuple[Flow, ...]
    slots: Slots

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """The first layer of each seat."""
        first = [len(self.network.layers)] * len(self.kinds)
        for tile in self.tiles:
            first[tile.element] = min(first[tile.element], tile.layer)
        return tuple(first)


def template_of(
    network: Network, stages: Stages, buffering: Buffering, multicast: Multicast
) -> Template:
    """Return the tiles of stages, what they send, and how many slots they keep."""
    tiles: list[Tile] = []
    kinds: list[int] = []
    for stage in stages.stages:
        _add_stage(network, stage, len(kinds), tiles)
        kinds += [stage.kind] * stage.elements
    flows = tuple(flows_of(network, tuple(tiles), multicast))
    depths = tile_depths(network, stages)
    slots = slots_of_tiles(network, depths, tuple(tiles), flows, buffering)
    return Template(network, tuple(tiles), tuple(kinds), flows, slots)


def _add_stage(network: Network, stage: Stage, seat: int, tiles: list[Tile]) -> None:
    for layer, split in zip(range(stage.first, stage.last), stage.splits, strict=True):
        tiles.extend(layer_tiles(network, layer, split, seat, stage.elements, len(tiles)))


def layer_tiles(
    network: Network, index: int, split: Split, seat: int, seats: int, first: int
) -> Iterator[Tile]:
    """Yield the tiles of a layer, those that give partial sums before those that take them.

    They lie on `seats` seats from `seat` on; the first has index `first`.
    """
    layer = network.layers[index]
    boxes = boxes_of(layer, network.tensors[layer.output].shape, split)
    sums = sums_of(layer, split)
    givers = len(boxes) * (len(sums) - 1)
    for place, (at, part) in enumerate(itertools.product(range(len(boxes)), range(1, len(sums)))):
        on = seat + (at * len(sums) + part) * seats // split.tiles
        assert place < givers
        yield Tile(index, 0, boxes[at], sums[part], on, first + givers + at)
    for at, box in enumerate(boxes):
        yield Tile(index, 0, box, sums[0], seat + at * len(sums) * seats // split.tiles)


class _Producers:
    """The tiles that give a tensor, in a grid, found by the box that is needed of it."""

    def __init__(self, boxes: dict[Box, int]) -> None:
        self.tiles = boxes
        self.spans = [sorted(set(spans)) for spans in zip(*boxes, strict=True)]
        self.found: dict[Box, list[tuple[int, Box]]] = {}

    def giving(self, box: Box) -> list[tuple[int, Box]]:
        """Return the tiles that give any of a box, and what each gives of it."""
        if box not in self.found:
            self.found[box] = list(self._search(box))
        return self.found[box]

    def _search(self, box: Box) -> Iterator[tuple[int, Box]]:
        ranges: list[list[Span]] = []
        for (start, stop), spans in zip(box, self.spans, strict=True):
            low = bisect_right([end for _, end in spans], start)
            ranges.append(spans[low : bisect_left([begin for begin, _ in spans], stop)])
        for own in itertools.product(*ranges):
            common = intersection(box, own)
            assert common is not None
            yield self.tiles[own], common


def flows_of(network: Network, tiles: tuple[Tile, ...], multicast: Multicast) -> Iterator[Flow]:
    """Yield what tiles of one replica send to other elements: tensors, then partial sums."""
    boxes: dict[int, dict[Box, int]] = {}
    for index, tile in enumerate(tiles):
        if tile.sums_into is None:
            boxes.setdefault(network.layers[tile.layer].output, {})[tile.box] = index
    producers = {tensor: _Producers(given) for tensor, given in boxes.items()}
    grouped = _needed(network, tiles, producers)
    for (source, tensor, box), targets in grouped.items():
        size = elements_of(box) * network.tensors[tensor].item_bytes
        for group in _addressed(targets, multicast):
            yield Flow(source, group, tensor, box, size)
    for index, tile in enumerate(tiles):
        if tile.sums_into is not None and tiles[tile.sums_into].element != tile.element:
            size = elements_of(tile.box) * SUM_BYTES
            yield Flow(index, (tile.sums_into,), None, tile.box, size)


def _needed(
    network: Network, tiles: tuple[Tile, ...], producers: dict[int, _Producers]
) -> dict[tuple[int, int, Box], list[int]]:
    """Return by giving tile, tensor and box the tiles of other elements that need it."""
    grouped: dict[tuple[int, int, Box], list[int]] = {}
    for index, tile in enumerate(tiles):
        for tensor, box in inputs_of(network, tile):
            giving = producers[tensor].giving(box) if tensor in producers else []
            for source, part in giving:
                if tiles[source].element != tile.element:
                    grouped.setdefault((source, tensor, part), []).append(index)
    return grouped


def _addressed(targets: list[int], multicast: Multicast) -> list[tuple[int, ...]]:
    if multicast is Multicast.TREE:
        return [tuple(targets)]
    return [(target,) for target in targets]


def tile_depths(network: Network, stages: Stages) -> tuple[list[int], list[int]]:
    """Return for each layer the stages before its first tiles, and before those that give it.

    They differ where sums are split: what adds partial sums works one image later.
    """
    begin = [0] * len(network.layers)
    end = [0] * len(network.layers)
    for stage in stages.stages:
        layers = range(stage.first, stage.last)
        depth = 0
        for layer in layers:
            for tensor in network.layers[layer].inputs:
                producer = network.producer.get(tensor)
                if producer is not None and producer < stage.first:
                    depth = max(depth, end[producer] + 1)
        for layer, split in zip(layers, stage.splits, strict=True):
            begin[layer] = depth
            end[layer] = depth + (split.sums > 1 and len(layers) == 1)
    return begin, end


def plain_depths(network: Network, tiles: tuple[Tile, ...]) -> tuple[list[int], list[int]]:
    """Return the depths as `tile_depths` has them where each layer is a stage of its own."""
    summed = {tile.layer for tile in tiles if tile.sums_into is not None}
    begin, end = [0] * len(network.layers), [0] * len(network.layers)
    for index, layer in enumerate(network.layers):
        above = [network.producer[tensor] for tensor in layer.inputs if tensor in network.producer]
        begin[index] = max((end[producer] + 1 for producer in above), default=0)
        end[index] = begin[index] + (index in summed)
    return begin, end


def slots_of_tiles(
    network: Network,
    depths: tuple[list[int], list[int]],
    tiles: tuple[Tile, ...],
    flows: tuple[Flow, ...],
    buffering: Buffering,
) -> Slots:
    """Return the slots of every input and sum of one replica's tiles, by what comes as messages."""
    begin, end = depths
    received = {(target, flow.tensor) for flow in flows for target in flow.targets}
    slots: Slots = {}
    for index, tile in enumerate(tiles):
        depth = (begin if tile.sums_into is not None else end)[tile.layer]
        for tensor, _ in inputs_of(network, tile):
            producer = network.producer.get(tensor)
            slots[index, tensor] = 1
            if producer is not None and (index, tensor) in received:
                slots[index, tensor] = slots_between(end[producer], depth, buffering)
    for tile in tiles:
        if tile.sums_into is not None:
            into = tile.sums_into
            slots[into, None] = int(buffering) if (into, None) in received else 1
    if buffering is Buffering.SINGLE:
        for flow in flows:
            slots[flow.source, network.layers[tiles[flow.source].layer].output] = 1
    return slots


def on_elements(template: Template, elements: list[int], replica: int, first: int) -> list[Tile]:
    """Return the tiles of one replica: seats become elements, indices begin with `first`."""
    return [
        replace(
            tile,
            replica=replica,
            element=elements[tile.element],
            sums_into=None if tile.sums_into is None else tile.sums_into + first,
        )
        for tile in template.tiles
    ]
