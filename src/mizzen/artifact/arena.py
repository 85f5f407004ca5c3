"""The arena: the one memory of an inference in which the tensors of a network lie.

Where a compiler plans the memory of a whole network, each of its NPU operators works in the same
arena. It may read what an earlier one left there without naming that as an input, and its output
may be complete only when a later one has written the rest. So all steps of an inference share one
arena, from which the CPU takes its inputs when it needs them.

Ref: TFLite Micro, micro_allocator.cc, offline memory plan; ethosu.cc, base addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from mizzen.artifact.interface import Array, Shape
from mizzen.frontends.tflite import Model

BYTE = np.dtype(np.uint8)
ROW_BYTES = 64
"""Arenas of a batch start aligned, like those of a device."""

BATCH_BYTES = 1 << 28
"""A batch whose arenas would be larger is inferred in several parts."""


class Block(Enum):
    """The memories that the steps of an inference share."""

    ARENA = auto()
    """Holds the tensors."""
    FAST = auto()
    """What an NPU stages its data in, where that is memory of its own."""


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a block."""

    block: Block
    offset_bytes: int
    size_bytes: int

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.offset_bytes + self.size_bytes


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies in the arena, densely packed."""

    offset_bytes: int
    shape: Shape
    dtype: np.dtype[np.generic]

    @property
    def span(self) -> Span:
        """The tensor's bytes."""
        size = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        return Span(Block.ARENA, self.offset_bytes, size)


@dataclass(frozen=True, slots=True, eq=False)
class Arena:
    """The plan of the memory of one inference: the size of its blocks, and where tensors lie."""

    block_bytes: Mapping[Block, int]
    places: Mapping[int, Place]

    @property
    def largest_batch(self) -> int:
        """How many inferences to hold in memory at once, at least 1."""
        return max(1, BATCH_BYTES // max(1, sum(self.block_bytes.values())))


def places_of(model: Model, offsets: Mapping[int, int], indices: Iterable[int]) -> dict[int, Place]:
    """Return where tensors lie; constants, and those without an offset, lie elsewhere."""
    tensors = model.main.tensors
    return {
        index: Place(offsets[index], tensors[index].shape, tensors[index].dtype or BYTE)
        for index in indices
        if index in offsets and tensors[index].data is None
    }


def arena_of(spans: Sequence[Span], places: Mapping[int, Place]) -> Arena:
    """Return the arena that holds all regions of NPU operators, and all tensors."""
    every = (*spans, *(place.span for place in places.values()))
    sizes = {
        block: max((span.end for span in every if span.block is block), default=0)
        for block in Block
    }
    return Arena(sizes, places)


class ArenaValues(MutableMapping[int, Array]):
    """The tensors of a batch of inferences, by index: those in the arena, and those that are not.

    The arena holds zeros at first. A tensor in it reads as what its bytes are then, whatever wrote
    them; only those that were written as tensors are counted as present.
    """

    def __init__(self, arena: Arena, batch: int) -> None:
        self._places = arena.places
        self._batch = batch
        self._elsewhere: dict[int, Array] = {}
        self._written: set[int] = set()
        self._blocks = {
            block: np.zeros((batch, -(-size // ROW_BYTES) * ROW_BYTES), np.uint8)
            for block, size in arena.block_bytes.items()
        }

    def bytes(self, span: Span) -> npt.NDArray[np.uint8]:
        """Return bytes of a block, `[batch, bytes]`, to read and write."""
        return self._blocks[span.block][:, span.offset_bytes : span.end]

    def note(self, indices: Sequence[int]) -> None:
        """Say that tensors have been written where they lie."""
        self._written.update(indices)

    def __getitem__(self, index: int) -> Array:
        place = self._places.get(index)
        if place is None:
            return self._elsewhere[index]
        return self.bytes(place.span).view(place.dtype).reshape(self._batch, *place.shape)

    def __setitem__(self, index: int, value: Array) -> None:
        place = self._places.get(index)
        if place is None:
            self._elsewhere[index] = value
            return
        self._written.add(index)
        held = np.ascontiguousarray(value, place.dtype).reshape(self._batch, *place.shape)
        target = self.bytes(place.span).view(place.dtype).reshape(self._batch, *place.shape)
        target[...] = held

    def __delitem__(self, index: int) -> None:
        del self._elsewhere[index]

    def __contains__(self, index: object) -> bool:
        return index in self._written or index in self._elsewhere

    def __iter__(self) -> Iterator[int]:
        yield from self._written
        yield from self._elsewhere

    def __len__(self) -> int:
        return len(self._written) + len(self._elsewhere)
