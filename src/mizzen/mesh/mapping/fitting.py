"""Slots that fit: fewer where an element's memory is too small, more where it has room."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mizzen.mesh.mapping.mapping import Tile
from mizzen.mesh.mapping.memory import SUM_BYTES, WITH_SCRATCH, aligned, constant_bytes, inputs_of
from mizzen.mesh.mapping.template import Slots, Template
from mizzen.mesh.network.boxes import elements_of
from mizzen.mesh.network.network import Network
from mizzen.mesh.network.regions import is_partial

Key = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A part of a tile's memory that has slots: `count` boxes of `slot_bytes` at the same time.

    copies  of it that are kept: one for each tile that gives partial sums
    """

    key: Key
    slot_bytes: int
    copies: int = 1

    def size_bytes(self, slots: int) -> int:
        """Return the bytes with so many slots."""
        return aligned(self.slot_bytes * slots) * self.copies


def fixed_bytes(network: Network, tile: Tile) -> int:
    """Return the bytes of a tile that have no slots: constants and scratch."""
    layer = network.layers[tile.layer]
    fixed = aligned(constant_bytes(network, layer, tile.box, tile.channels))
    if layer.kind in WITH_SCRATCH:
        boxes = [tile.box, *(box for _, box in inputs_of(network, tile))]
        fixed += aligned(sum(elements_of(box) for box in boxes) * SUM_BYTES)
    return fixed


def buffers_of(network: Network, index: int, tile: Tile, givers: int) -> list[Buffer]:
    """Return the buffers that a tile keeps in slots: inputs, partial sums, its output."""
    layer = network.layers[tile.layer]
    buffers = [
        Buffer((index, tensor), elements_of(box) * network.tensors[tensor].item_bytes)
        for tensor, box in inputs_of(network, tile)
    ]
    outputs = elements_of(tile.box)
    if givers:
        buffers.append(Buffer((index, None), outputs * SUM_BYTES, givers))
    partial = tile.sums_into is not None and is_partial(layer, tile.channels)
    item = SUM_BYTES if partial else network.tensors[layer.output].item_bytes
    buffers.append(Buffer((index, layer.output), outputs * item))
    return buffers


class Fitting:
    """The memory of each seat of a template, with the slots that it has."""

    def __init__(self, template: Template, capacities: list[int]) -> None:
        self.template, self.slots = template, dict(template.slots)
        self.room = list(capacities)
        self.buffers: list[list[Buffer]] = [[] for _ in capacities]
        givers: dict[int, int] = {}
        for tile in template.tiles:
            if tile.sums_into is not None:
                givers[tile.sums_into] = givers.get(tile.sums_into, 0) + 1
        sending = {flow.source for flow in template.flows}
        for index, tile in enumerate(template.tiles):
            buffers = buffers_of(template.network, index, tile, givers.get(index, 0))
            self.slots.setdefault(buffers[-1].key, 2 if index in sending else 1)
            taken = sum(buffer.size_bytes(self.slots[buffer.key]) for buffer in buffers)
            self.room[tile.element] -= taken + fixed_bytes(template.network, tile)
            self.buffers[tile.element] += buffers

    def shrink(self) -> None:
        """Take slots away, where there are most, from seats whose memory is too small."""
        for seat in range(len(self.room)):
            while self.room[seat] < 0:
                often = max(self.buffers[seat], key=lambda buffer: self.slots[buffer.key])
                if self.slots[often.key] == 1:
                    break
                self._change(seat, often, -1)

    def grow(self, wanted: Iterable[Key]) -> None:
        """Add a slot to each of these, in this order, where there is room."""
        by_key = {
            buffer.key: (seat, buffer)
            for seat, buffers in enumerate(self.buffers)
            for buffer in buffers
        }
        for key in wanted:
            seat, buffer = by_key[key]
            count = self.slots[key]
            if buffer.size_bytes(count + 1) - buffer.size_bytes(count) <= self.room[seat]:
                self._change(seat, buffer, 1)

    def _change(self, seat: int, buffer: Buffer, more: int) -> None:
        count = self.slots[buffer.key]
        self.room[seat] -= buffer.size_bytes(count + more) - buffer.size_bytes(count)
        self.slots[buffer.key] = count + more


def fitted(template: Template, capacities: list[int], parts: list[int]) -> Slots:
    """Return slots that fit the memories of a template's seats, with room used up.

    Single slots are doubled where boxes come from or go to another chip first, then elsewhere.
    """
    fitting = Fitting(template, capacities)
    fitting.shrink()
    crossing: dict[Key, None] = {}
    others: dict[Key, None] = {}
    tiles, layers = template.tiles, template.network.layers
    for flow in template.flows:
        own = parts[tiles[flow.source].element]
        keys: list[Key] = [(flow.source, layers[tiles[flow.source].layer].output)]
        keys += [(target, flow.tensor) for target in flow.targets]
        far = [parts[tiles[target].element] != own for target in flow.targets]
        for key, is_far in zip(keys, [any(far), *far], strict=True):
            (crossing if is_far else others)[key] = None
    missing = [key for key in [*crossing, *others] if fitting.slots[key] == 1]
    fitting.grow(dict.fromkeys(missing))
    return fitting.slots
