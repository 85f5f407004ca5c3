"""The instructions of each element, in an order that cannot wait for itself.

Tiles are computed in the order of layers; of one layer those first that give partial sums to
others. So whatever a tile waits for lies before it in one order of all tiles of a replica.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.mesh.emission.layout import Layout, TileRegions
from mizzen.mesh.machine import cycles
from mizzen.mesh.mapping.mapping import Mapping, Message
from mizzen.mesh.network.boxes import intersection
from mizzen.mesh.network.network import LayerKind
from mizzen.mesh.network.regions import needed_boxes, work_of
from mizzen.mesh.program import (
    Compute,
    Copy,
    ElementProgram,
    Fetch,
    Give,
    Instruction,
    Kernel,
    MeshProgram,
    Receive,
    Route,
    Send,
)


def emit(mapping: Mapping) -> MeshProgram:
    """Return the program of every element that has a tile, in the order of elements.

    E530 for an element that has tiles of several replicas.
    """
    around = _surroundings(mapping)
    elements = tuple(
        _element(mapping, element, tiles, around)
        for element, tiles in sorted(mapping.tiles_of_element.items())
    )
    routes = tuple(_route(mapping, message) for message in mapping.messages)
    return MeshProgram(mapping.machine, mapping.network, mapping.replicas, elements, routes)


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What a tile has to do with others; None stands for partial sums.

    received  messages of each tensor that it needs
    local     tiles of its own element that give a tensor
    sent      messages of its output
    givers    tiles that give it partial sums
    """

    received: dict[int | None, list[int]]
    local: dict[int | None, list[int]]
    sent: list[int]
    givers: list[int]


def _surroundings(mapping: Mapping) -> list[_Surroundings]:
    surroundings = [_Surroundings({}, {}, [], []) for _ in mapping.tiles]
    for index, message in enumerate(mapping.messages):
        surroundings[message.source].sent.append(index)
        for target in message.targets:
            surroundings[target].received.setdefault(message.tensor, []).append(index)
    for index, tile in enumerate(mapping.tiles):
        if tile.sums_into is not None:
            surroundings[tile.sums_into].givers.append(index)
            if mapping.tiles[tile.sums_into].element == tile.element:
                surroundings[tile.sums_into].local.setdefault(None, []).append(index)
    for tiles in mapping.tiles_of_element.values():
        _find_local(mapping, tiles, surroundings)
    return surroundings


def _find_local(
    mapping: Mapping, tiles: tuple[int, ...], surroundings: list[_Surroundings]
) -> None:
    """Add the tiles of one element whose output others of it take."""
    layers = mapping.network.layers
    givers: dict[int, list[int]] = {}
    for index in tiles:
        tile = mapping.tiles[index]
        if tile.sums_into is None:
            givers.setdefault(layers[tile.layer].output, []).append(index)
    for index in tiles if len(tiles) > 1 else ():
        for tensor in dict.fromkeys(layers[mapping.tiles[index].layer].inputs):
            if tensor in givers:
                surroundings[index].local[tensor] = givers[tensor]


def _element(
    mapping: Mapping, element: int, tiles: tuple[int, ...], around: list[_Surroundings]
) -> ElementProgram:
    of_mapping = mapping.tiles
    replicas = sorted({of_mapping[tile].replica for tile in tiles})
    if len(replicas) > 1:
        shown = ", ".join(map(str, replicas))
        raise fail(
            "E530",
            f"{mapping.machine.element_name(element)} must have tiles of one replica, not of "
            f"replicas {shown}",
        )
    order = sorted(
        tiles, key=lambda tile: (of_mapping[tile].layer, of_mapping[tile].sums_into is None, tile)
    )
    layout = Layout(mapping)
    placed = {tile: layout.add(tile) for tile in order}
    instructions = tuple(
        instruction
        for tile in order
        for instruction in _Tile(mapping, tile, around[tile], placed, layout).instructions()
    )
    return ElementProgram(element, replicas[0], tuple(layout.regions), instructions)


class _Tile:
    def __init__(
        self,
        mapping: Mapping,
        index: int,
        around: _Surroundings,
        placed: dict[int, TileRegions],
        layout: Layout,
    ) -> None:
        self.mapping = mapping
        self.tile = mapping.tiles[index]
        self.layer = mapping.network.layers[self.tile.layer]
        self.around = around
        self.placed = placed
        self.here = placed[index]
        self.layout = layout

    def instructions(self) -> Iterator[Instruction]:
        for tensor, region in self.here.inputs.items():
            if tensor in self.mapping.network.inputs:
                yield Fetch(tensor, region)
            yield from self._copies(tensor, region)
            for index in self.around.received.get(tensor, ()):
                yield Receive(index, region, self.mapping.messages[index].box)
        yield from self._sums()
        yield self._compute()
        if self.tile.sums_into is None and self.layer.output in self.mapping.network.outputs:
            yield Give(self.layer.output, self.here.output, self.tile.box)
        for index in self.around.sent:
            yield Send(index, self.here.output, self.mapping.messages[index].box)

    def _copies(self, tensor: int, region: int) -> Iterator[Copy]:
        needed = self.layout.regions[region].box
        assert needed is not None
        for giver in self.around.local.get(tensor, ()):
            box = intersection(self.mapping.tiles[giver].box, needed)
            if box is not None:
                yield Copy(self.placed[giver].output, region, box)

    def _sums(self) -> Iterator[Instruction]:
        local = self.around.local.get(None, ())
        messages = self.around.received.get(None, ())
        by_giver = {self.mapping.messages[index].source: index for index in messages}
        for giver, region in self.here.sums.items():
            box = self.mapping.tiles[giver].box
            if giver in local:
                yield Copy(self.placed[giver].output, region, box)
            elif giver in by_giver:
                yield Receive(by_giver[giver], region, box)

    def _compute(self) -> Compute:
        tile, here, network = self.tile, self.here, self.mapping.network
        givers = len(self.around.givers)
        is_summed = self.layer.kind is LayerKind.CONVOLUTION
        channels = tile.channels if is_summed else None
        needed = needed_boxes(network, self.layer, tile.box, tile.channels)
        operands = tuple(
            None if box is None else here.inputs[tensor]
            for tensor, box in zip(self.layer.inputs, needed, strict=True)
        )
        work = work_of(network, self.layer, tile.box, tile.channels, givers)
        return Compute(
            Kernel(tile.layer, tile.box, channels, givers, tile.sums_into is not None),
            operands,
            tuple(here.sums.values()),
            here.constants,
            here.output,
            work,
            cycles(self.mapping.machine.kind_of(tile.element), work),
        )


def _route(mapping: Mapping, message: Message) -> Route:
    source = mapping.tiles[message.source].element
    targets = sorted({mapping.tiles[target].element for target in message.targets})
    return Route(source, tuple(targets), message.links, message.size_bytes)
