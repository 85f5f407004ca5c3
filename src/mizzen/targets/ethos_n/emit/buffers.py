"""The table of DRAM buffers of a compiled network, and where each lies in memory.

Buffer 0 is the command stream. Intermediate buffers share memory over time: each has the lowest
place that is free while it is in use. The others lie one behind another, each kind for itself.

Ref: Ethos-N driver stack 23.02, the Support Library's `BufferManager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mizzen.targets.ethos_n.container import BufferInfo, Buffers, Container, Version
from mizzen.targets.ethos_n.program import BufferKind
from mizzen.targets.ethos_n.schedule.plan import round_up

ALIGNMENT_BYTES = 64
"""Of every buffer; compressed feature maps need it."""
FIRST_SRAM_ID = 0x8000000
"""Feature maps in SRAM have numbers of their own, which mean nothing to whoever runs the stream."""


@dataclass(slots=True)
class Entry:
    """A buffer while commands are being made.

    source_operation_id, ..._output_index  of the network's input or output that it is
    first_command, last_command            the first and the last that uses it
    """

    kind: BufferKind
    size: int
    data: bytes = b""
    source_operation_id: int = 0
    source_output_index: int = 0
    first_command: int = -1
    last_command: int = -1


class BufferTable:
    """Buffers in the order of their ids, from 1 on until the command stream is there."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._sram_maps = 0

    def add(self, entry: Entry) -> int:
        """Take a DRAM buffer in; give its id."""
        number = len(self._entries) + 1
        self._entries[number] = entry
        return number

    def add_constant(self, kind: BufferKind, data: bytes) -> int:
        """Take constants in; give their buffer's id."""
        return self.add(Entry(kind, len(data), data))

    def add_intermediate(self, size: int) -> int:
        """Take a feature map between passes in; give its buffer's id."""
        return self.add(Entry(BufferKind.INTERMEDIATE, size))

    def add_sram_map(self) -> int:
        """Return a number to a feature map in SRAM."""
        self._sram_maps += 1
        return FIRST_SRAM_ID + self._sram_maps - 1

    def make_output(self, buffer_id: int, operation_id: int, output_index: int) -> None:
        """Make a feature map one that an inference gives."""
        entry = self._entries[buffer_id]
        entry.kind = BufferKind.OUTPUT
        entry.source_operation_id, entry.source_output_index = operation_id, output_index

    def widen(self, buffer_id: int, multiple: int) -> None:
        """Round a buffer's size up."""
        entry = self._entries[buffer_id]
        entry.size = round_up(entry.size, multiple)

    def use(self, buffer_ids: Iterable[int], command: int) -> None:
        """Note that a command uses buffers."""
        for buffer_id in buffer_ids:
            entry = self._entries[buffer_id]
            if entry.first_command < 0:
                entry.first_command = command
            entry.last_command = command

    def finish(self, stream: bytes) -> Container:
        """Return all buffers a place, and the command stream the first."""
        self._entries[0] = Entry(BufferKind.CONSTANT_CONTROL_UNIT, len(stream), stream)
        blocks: dict[BufferKind, bytes] = {}
        lists: dict[BufferKind, Buffers] = {}
        for kind in BufferKind:
            rows = sorted((n, entry) for n, entry in self._entries.items() if entry.kind is kind)
            entries = [entry for _, entry in rows]
            if kind is BufferKind.INTERMEDIATE:
                offsets = first_fit(entries)
            else:
                offsets = _one_behind_another(entries)
            blocks[kind] = _block(entries, offsets)
            lists[kind] = tuple(
                BufferInfo(n, offset, entry.size)
                for (n, entry), offset in zip(rows, offsets, strict=True)
            )
        return Container(
            Version.V1_0,
            blocks[BufferKind.CONSTANT_DMA],
            blocks[BufferKind.CONSTANT_CONTROL_UNIT],
            self._in_order_of_operations(lists[BufferKind.INPUT]),
            self._in_order_of_operations(lists[BufferKind.OUTPUT]),
            lists[BufferKind.CONSTANT_CONTROL_UNIT],
            lists[BufferKind.CONSTANT_DMA],
            lists[BufferKind.INTERMEDIATE],
        )

    def _in_order_of_operations(self, infos: Buffers) -> Buffers:
        """Sort what an inference takes or gives as the network's operations were added."""
        return tuple(sorted(infos, key=lambda info: self._entries[info.id].source_operation_id))

    def entry(self, buffer_id: int) -> Entry:
        """Return a DRAM buffer."""
        return self._entries[buffer_id]


def _one_behind_another(entries: Sequence[Entry]) -> list[int]:
    offsets: list[int] = []
    end = 0
    for entry in entries:
        offsets.append(round_up(end, ALIGNMENT_BYTES))
        end = offsets[-1] + entry.size
    return offsets


def _block(entries: Sequence[Entry], offsets: Sequence[int]) -> bytes:
    block = bytearray()
    for entry, offset in zip(entries, offsets, strict=True):
        if entry.data:
            block.extend(bytes(offset - len(block)))
            block.extend(entry.data)
    return bytes(block)


def first_fit(entries: Sequence[Entry]) -> list[int]:
    """Return offsets at which no two buffers that are in use together overlap.

    In the order of their first use, then of their ids, each has the lowest place that is free.
    """
    offsets = [0] * len(entries)
    placed: list[int] = []
    for index in sorted(range(len(entries)), key=lambda at: (entries[at].first_command, at)):
        entry = entries[index]
        placed = [at for at in placed if entries[at].last_command >= entry.first_command]
        taken = sorted((offsets[at], _aligned(entries[at])) for at in placed)
        offset = 0
        for start, size in taken:
            if offset + _aligned(entry) <= start:
                break
            offset = max(offset, start + size)
        offsets[index] = offset
        placed.append(index)
    return offsets


def _aligned(entry: Entry) -> int:
    return round_up(entry.size, ALIGNMENT_BYTES)
