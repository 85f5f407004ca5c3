"""What tiles keep in an element's data memory: the one rule that mapper and emission share.

A tile keeps, in this order, each part at a multiple of 16 bytes:

    constants  weights, bias, scaling and tables (`held_bytes` of its channels), if it has any
    inputs     for each distinct input that it needs anything of, the needed box, `slots` times
    sums       for each tile that gives partial sums to it, the int32 box, `slots` times
    output     its box (int32 where it gives partial sums), twice where any message of it is sent,
               since sending overlaps the next computing, else once
    scratch    for REDUCTION and GENERAL, 4 bytes an element of the needed inputs and the output

`Mapping.slots[(tile, tensor)]` says how many slots an input has, with None for partial sums and the
layer's output tensor where an output has other than these; `default_slots` is the rule where it
says nothing. Elements keep what their tiles keep, one tile after the other in
`Mapping.tiles_of_element`'s order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mizzen.mesh.mapping.mapping import Mapping, Tile
from mizzen.mesh.network.boxes import Box, elements_of
from mizzen.mesh.network.network import Layer, LayerKind, Network, held_bytes
from mizzen.mesh.network.regions import is_partial, needed_boxes

ALIGNMENT_BYTES = 16
SUM_BYTES = 4
WITH_SCRATCH = frozenset({LayerKind.REDUCTION, LayerKind.GENERAL})


class Part(Enum):
    """What a part of a tile's memory is for."""

    CONSTANTS = "constants"
    INPUT = "input"
    SUMS = "sums"
    OUTPUT = "output"
    SCRATCH = "scratch"


@dataclass(frozen=True, slots=True)
class Holding:
    """A part of a tile's memory: `slots` times `slot_bytes`, one after the other.

    tensor  of an input or output; None for constants, scratch and 32-bit partial sums
    giver   tile that gives the partial sums
    """

    part: Part
    tile: int
    slot_bytes: int
    slots: int
    tensor: int | None = None
    box: Box | None = None
    giver: int | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes up to where the next part may begin."""
        return aligned(self.slot_bytes * self.slots)


def aligned(size_bytes: int) -> int:
    """Return the next multiple of the alignment."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def holdings_of(mapping: Mapping, tile: int) -> tuple[Holding, ...]:
    """Return the holdings of a tile in its element's memory, in order."""
    network, own = mapping.network, mapping.tiles[tile]
    layer = network.layers[own.layer]
    parts = [*_constants(network, layer, own, tile)]
    needed = inputs_of(network, own)
    for tensor, box in needed:
        size = elements_of(box) * network.tensors[tensor].item_bytes
        slots = slots_of(mapping, tile, tensor)
        parts.append(Holding(Part.INPUT, tile, size, slots, tensor, box))
    sum_bytes = elements_of(own.box) * SUM_BYTES
    for giver in mapping.givers.get(tile, ()):
        slots = slots_of(mapping, tile, None)
        parts.append(Holding(Part.SUMS, tile, sum_bytes, slots, None, own.box, giver))
    parts.append(_output(mapping, layer, own, tile))
    if layer.kind in WITH_SCRATCH:
        elements = elements_of(own.box) + sum(elements_of(box) for _, box in needed)
        parts.append(Holding(Part.SCRATCH, tile, elements * SUM_BYTES, 1))
    return tuple(parts)


def inputs_of(network: Network, tile: Tile) -> tuple[tuple[int, Box], ...]:
    """Return each distinct tensor that a tile needs anything of, with the box, in order.

    A tensor that a layer takes twice is kept once, in the smallest box that holds both.
    """
    layer = network.layers[tile.layer]
    needed: dict[int, Box] = {}
    boxes = needed_boxes(network, layer, tile.box, tile.channels)
    for tensor, box in zip(layer.inputs, boxes, strict=True):
        if box is not None:
            needed[tensor] = _hull(needed[tensor], box) if tensor in needed else box
    return tuple(needed.items())


def slots_of(mapping: Mapping, tile: int, tensor: int | None) -> int:
    """Return how many images' boxes of an input or an output a tile keeps."""
    said = mapping.slots.get((tile, tensor))
    return default_slots(mapping, tile, tensor) if said is None else said


def default_slots(mapping: Mapping, tile: int, tensor: int | None) -> int:
    """Return the slots where a mapping says nothing.

    One for what comes from outside or from tiles of the same element, two for what comes as
    messages and for outputs that are sent as messages.
    """
    own = mapping.tiles[tile]
    if tensor is not None and tensor == mapping.network.layers[own.layer].output:
        return 2 if tile in mapping.senders else 1
    return 2 if (tile, tensor) in mapping.received else 1


def element_bytes(mapping: Mapping, element: int) -> int:
    """Return the bytes of data memory that an element's tiles need together."""
    tiles = mapping.tiles_of_element.get(element, ())
    return sum(holding.size_bytes for tile in tiles for holding in holdings_of(mapping, tile))


def _constants(network: Network, layer: Layer, own: Tile, tile: int) -> list[Holding]:
    size = constant_bytes(network, layer, own.box, own.channels)
    return [Holding(Part.CONSTANTS, tile, size, 1)] if size else []


def constant_bytes(
    network: Network, layer: Layer, box: Box, channels: tuple[int, int] | None
) -> int:
    """Return the bytes of weights and other constants of a tile."""
    summed = layer.input_channels if channels is None else channels[1] - channels[0]
    across = box[-1][1] - box[-1][0] if box else 1
    return held_bytes(layer, across, summed)


def _output(mapping: Mapping, layer: Layer, own: Tile, tile: int) -> Holding:
    partial = own.sums_into is not None and is_partial(layer, own.channels)
    item = SUM_BYTES if partial else mapping.network.tensors[layer.output].item_bytes
    slots = slots_of(mapping, tile, layer.output)
    tensor = None if partial else layer.output
    return Holding(Part.OUTPUT, tile, elements_of(own.box) * item, slots, tensor, own.box)


def _hull(one: Box, other: Box) -> Box:
    pairs = zip(one, other, strict=True)
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in pairs)
