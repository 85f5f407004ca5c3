"""Memory for a batch: DRAM buffers as the binding table has them, and tensors in SRAM.

Buffers of inputs and of outputs are apart; intermediates share one block, as the allocator places
them, so that two that overlap overwrite each other. Constants are shared by the whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.commands_values import Location, TensorRecord
from mizzen.targets.ethos_n.program import Buffer, BufferKind, Program
from mizzen.targets.ethos_n.sim import formats

Array = npt.NDArray[Any]

INTERMEDIATES = -1
"""The block that all intermediates lie in, among the blocks that else have their buffer's id."""
CONSTANT_KINDS = (BufferKind.CONSTANT_DMA, BufferKind.CONSTANT_CONTROL_UNIT)


@dataclass(frozen=True, slots=True)
class BlockSlice:
    """Where a buffer lies: its block, and the bytes in it."""

    block: int
    offset: int
    size: int


def place_of(buffer: Buffer) -> BlockSlice:
    """Return where a buffer lies; offsets of inputs and outputs are the caller's affair."""
    if buffer.kind is BufferKind.INTERMEDIATE:
        return BlockSlice(INTERMEDIATES, buffer.offset, buffer.size)
    return BlockSlice(buffer.id, 0, buffer.size)


def block_sizes(program: Program) -> dict[int, int]:
    """Return the bytes of each block that is not constant."""
    sizes: dict[int, int] = {}
    for buffer in program.buffers.values():
        if buffer.kind not in CONSTANT_KINDS:
            place = place_of(buffer)
            sizes[place.block] = max(sizes.get(place.block, 0), place.offset + place.size)
    return sizes


class Memory:
    """The memory of `batch` images; every access was checked when the program was planned."""

    def __init__(self, batch: int, program: Program) -> None:
        self.batch = batch
        self._program = program
        self._blocks = {
            block: np.zeros((batch, size), np.uint8) for block, size in block_sizes(program).items()
        }
        self._sram: dict[int, Array] = {}

    def bytes(self, buffer_id: int) -> npt.NDArray[np.uint8]:
        """Return a buffer as `[batch, size]`, a view."""
        buffer = self._program.buffers[buffer_id]
        if buffer.kind in CONSTANT_KINDS:
            contents = np.frombuffer(self._program.constant(buffer_id), np.uint8)
            return np.broadcast_to(contents, (self.batch, len(contents)))
        place = place_of(buffer)
        return self._blocks[place.block][:, place.offset : place.offset + place.size]

    def load(self, record: TensorRecord) -> Array:
        """Return a tensor as `[batch, H, W, C]`; it may be a view of memory, so do not write."""
        if record.location is Location.SRAM:
            return self._sram[record.sram_offset_bytes]
        return formats.read(self.bytes(record.dram_buffer_id), record)

    def store(self, record: TensorRecord, values: Array) -> None:
        """Put a tensor, `[batch, H, W, C]`, where its record says."""
        if record.location is Location.SRAM:
            self._sram[record.sram_offset_bytes] = values
        else:
            formats.write(self.bytes(record.dram_buffer_id), record, values)
