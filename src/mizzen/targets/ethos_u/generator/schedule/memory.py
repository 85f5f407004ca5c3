"""What takes memory when: tensors and staged constants, as blocks to be placed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Rows
from dataclasses import dataclass, replace

from mizzen.targets.ethos_u.generator.occupancy import overlap
from mizzen.targets.ethos_u.generator.operations import (
    Computation,
    Copy,
    Role,
    Sequence,
    Shape,
    tensors_read,
)
from mizzen.targets.ethos_u.generator.placement import Block, Partner, saved_bytes
from mizzen.targets.ethos_u.generator.schedule.storage import Storage
from mizzen.targets.ethos_u.machine.program import RegionIndex

OUTLIVING = (Role.OUTPUT, Role.STATE)
"""What the caller reads afterwards, also where the last operation has read it."""
BlockOf = Mapping[int, Shape]


@dataclass(frozen=True, slots=True)
class Span:
    """The units from the first to the last that something is needed at."""

    first: int
    last: int


def tensor_spans(sequence: Sequence, operations: Rows[int]) -> list[Span | None]:
    """Return when each tensor holds something, in units; None of those that need no place.

    operations  of each unit
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for unit, operation in enumerate(operations):
        first.setdefault(operation, unit)
        last[operation] = unit
    found: list[Span | None] = []
    for tensor, (start, stop) in zip(sequence.tensors, sequence.lifetimes(), strict=True):
        if tensor.role is Role.CONSTANT or stop < start:
            found.append(None)
        else:
            begins = 0 if tensor.role in (Role.INPUT, Role.STATE) else first[start]
            found.append(Span(begins, last[stop]))
    return found


def tensor_blocks(
    storage: Storage, spans: Rows[Span | None], region: RegionIndex, block_of: BlockOf
) -> tuple[list[int], list[Block]]:
    """Return the tensors that lie in a region, and a block for each of them.

    block_of  of operations that are done at once, the block of their output
    """
    rows = [
        tensor
        for tensor, span in enumerate(spans)
        if span is not None and storage.regions[tensor] is region
    ]
    position = {tensor: index for index, tensor in enumerate(rows)}
    partners = _partners(storage, spans, block_of)
    blocks: list[Block] = []
    for tensor in rows:
        span = spans[tensor]
        assert span is not None
        others = tuple(
            replace(other, block=position[other.block])
            for other in partners.get(tensor, ())
            if other.block in position
        )
        pin = storage.pins.get(tensor)
        block = Block(storage.size_bytes(tensor), span.first, span.last, partners=others)
        if pin is not None:
            block = replace(block, alignment=1, offset_bytes=pin.offset_bytes)
        blocks.append(block)
    return rows, blocks


def _partners(
    storage: Storage, spans: Rows[Span | None], block_of: BlockOf
) -> dict[int, tuple[Partner, ...]]:
    """Return for outputs of operations the inputs over which they may lie, by tensor."""
    found: dict[int, tuple[Partner, ...]] = {}
    for index, block in block_of.items():
        operation = storage.sequence.operations[index]
        assert not isinstance(operation, Copy)
        target = operation.ofm.tensor
        rows: list[Partner] = []
        for tensor in dict.fromkeys(tensors_read(operation)):
            outlives = storage.sequence.tensors[tensor].role in OUTLIVING
            if not outlives and _meet(spans[tensor], spans[target]):
                rows += _partner(storage, operation, tensor, block)
        if rows:
            found[target] = tuple(rows)
    return found


def _partner(
    storage: Storage, operation: Computation, tensor: int, block: Shape
) -> Iterator[Partner]:
    """Yield how the output may lie over an input."""
    found = overlap(operation, block, tensor, storage.sequence.tensors, storage.layouts)
    if found is not None:
        yield Partner(tensor, found.reach_bytes, found.exact_bytes)


def _meet(before: Span | None, after: Span | None) -> bool:
    return before is not None and after is not None and before.last == after.first


def live_bytes(blocks: Rows[Block], units: int) -> list[int]:
    """Return the bytes that blocks take at each unit, those of partners as they gain most."""
    found = [0] * units
    for block in blocks:
        for unit in range(block.first, block.last + 1):
            found[unit] += block.size_bytes
        shared = sum(
            saved_bytes(block.size_bytes, blocks[row.block].size_bytes, row)
            for row in block.partners
            if blocks[row.block].last == block.first
        )
        found[block.first] -= min(shared, block.size_bytes)
    return found
