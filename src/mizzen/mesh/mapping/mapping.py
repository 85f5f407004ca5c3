"""Tiles on elements, and the messages between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.network.boxes import Box
from mizzen.mesh.network.network import Network


@dataclass(frozen=True, slots=True)
class Tile:
    """A box of a layer's output, computed by one element for every image of its replica.

    channels   the input channels that it sums over; not all of them where the sum is split
    sums_into  the tile of the same box that adds this one's partial sums to its own; None for a
               tile that gives the output itself. That one has the first input channels, adds bias
               and everything after it
    """

    layer: int
    replica: int
    box: Box
    channels: tuple[int, int] | None
    element: int
    sums_into: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A box of a tensor that one tile sends, for every image, to all the tiles that need it.

    source   index of a tile
    targets  indices of tiles, each on an element other than the source's
    tensor   index of the tensor; None for partial sums, 32 bits an element
    box      in the tensor's coordinates
    links    links of the tree from the source's router to the targets', each once
    """

    source: int
    targets: tuple[int, ...]
    tensor: int | None
    box: Box
    size_bytes: int
    links: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Mapping:
    """A network on a machine: `replicas` copies of it, each taking every `replicas`-th image.

    slots[(tile, tensor)] is how many images' boxes of an input an element keeps at once: two where
    the producer may work on the next image while this one is used, more where another branch takes
    longer, one where the producer lies on the same element. Partial sums have the key None; the
    layer's own output tensor is the key of a tile's output. `memory` says what holds without a key.
    """

    machine: Machine
    network: Network
    replicas: int
    tiles: tuple[Tile, ...]
    messages: tuple[Message, ...]
    slots: dict[tuple[int, int | None], int]
    seed: int

    @cached_property
    def tiles_of_element(self) -> dict[int, tuple[int, ...]]:
        """Element to its tiles, in the order in which it computes them."""
        of_element: dict[int, list[int]] = {}
        for index, tile in enumerate(self.tiles):
            of_element.setdefault(tile.element, []).append(index)
        order = self.tiles
        return {
            element: tuple(sorted(tiles, key=lambda index: (order[index].layer, index)))
            for element, tiles in of_element.items()
        }

    @cached_property
    def givers(self) -> dict[int, tuple[int, ...]]:
        """Tile to the tiles that give partial sums to it, in rising order."""
        of_tile: dict[int, list[int]] = {}
        for index, tile in enumerate(self.tiles):
            if tile.sums_into is not None:
                of_tile.setdefault(tile.sums_into, []).append(index)
        return {tile: tuple(givers) for tile, givers in of_tile.items()}

    @cached_property
    def senders(self) -> frozenset[int]:
        """The tiles that send any message."""
        return frozenset(message.source for message in self.messages)

    @cached_property
    def received(self) -> frozenset[tuple[int, int | None]]:
        """Tiles and the tensors that come to them as messages; None for partial sums."""
        return frozenset(
            (target, message.tensor) for message in self.messages for target in message.targets
        )
