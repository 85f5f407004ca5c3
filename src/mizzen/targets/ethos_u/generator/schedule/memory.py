"""What takes memory when: tensors and staged constants, as blocks to be placed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Rows
from dataclasses import dataclass, replace

from mizzen.targets.ethos_u.generator.occupancy import overlap
from mizzen.targets.ethos_u.generator.operations import (
    Blockwise,
    Copy,
    Role,
    Sequence,
    Shape,
    tensors_read,
)
from mizzen.targets.ethos_u.generator.placement import Block, Partner, Placed, saved_bytes
from mizzen.targets.ethos_u.generator.schedule.storage import Storage
from mizzen.targets.ethos_u.machine.program import RegionIndex

OUTLIVING = (Role.OUTPUT, Role.STATE)
"""What the caller reads afterwards, also where the last operation has read it."""
BlockOf = Mapping[int, Shape]


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The units from the first to the last that something is needed at."""

    first: int
    last: int


def tensor_spans(sequence: Sequence, operations: Rows[int]) -> list[Lifetime | None]:
    """Return when each tensor holds something, in units; None of those that need no place.

    operations  of each unit
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for unit, operation in enumerate(operations):
        first.setdefault(operation, unit)
        last[operation] = unit
    spans: list[Lifetime | None] = []
    for tensor, (start, stop) in zip(sequence.tensors, sequence.lifetimes(), strict=True):
        if tensor.role is Role.CONSTANT or stop < start:
            spans.append(None)
        else:
            begins = 0 if tensor.role in (Role.INPUT, Role.STATE) else first[start]
            spans.append(Lifetime(begins, last[stop]))
    return spans


def tensor_blocks(
    storage: Storage, spans: Rows[Lifetime | None], region: RegionIndex, block_of: BlockOf
) -> tuple[list[int], list[Block]]:
    """Return the tensors that lie in a region, and a block for each of them.

    block_of  of operations that are done at once, the block of their output
    """
    tensors = [
        tensor
        for tensor, span in enumerate(spans)
        if span is not None and storage.regions[tensor] is region
    ]
    position = {tensor: index for index, tensor in enumerate(tensors)}
    partners = _partners(storage, spans, block_of)
    blocks: list[Block] = []
    for tensor in tensors:
        span = spans[tensor]
        assert span is not None
        others = tuple(
            replace(other, block=position[other.block])
            for other in partners.get(tensor, ())
            if other.block in position
        )
        blocks.append(Block(storage.size_bytes(tensor), span.first, span.last, partners=others))
    return tensors, blocks


def _partners(
    storage: Storage, spans: Rows[Lifetime | None], block_of: BlockOf
) -> dict[int, tuple[Partner, ...]]:
    """Return for outputs of operations the inputs over which they may lie, by tensor."""
    partners: dict[int, tuple[Partner, ...]] = {}
    for index, block in block_of.items():
        operation = storage.sequence.operations[index]
        assert not isinstance(operation, Copy)
        target = operation.ofm.tensor
        inputs: list[Partner] = []
        for tensor in dict.fromkeys(tensors_read(operation)):
            outlives = storage.sequence.tensors[tensor].role in OUTLIVING
            if not outlives and _meet(spans[tensor], spans[target]):
                inputs += _partner(storage, operation, tensor, block)
        if inputs:
            partners[target] = tuple(inputs)
    return partners


def _partner(
    storage: Storage, operation: Blockwise, tensor: int, block: Shape
) -> Iterator[Partner]:
    """Yield how the output may lie over an input."""
    shared = overlap(operation, block, tensor, storage.sequence.tensors, storage.layouts)
    if shared is not None:
        yield Partner(tensor, shared.reach_bytes, shared.exact_bytes)


def _meet(before: Lifetime | None, after: Lifetime | None) -> bool:
    return before is not None and after is not None and before.last == after.first


def live_bytes(blocks: Rows[Block], units: int) -> list[int]:
    """Return the bytes that blocks take at each unit, those of partners as they gain most."""
    live = [0] * units
    for block in blocks:
        for unit in range(block.first, block.last + 1):
            live[unit] += block.size_bytes
        shared = sum(
            saved_bytes(block.size_bytes, blocks[partner.block].size_bytes, partner)
            for partner in block.partners
            if blocks[partner.block].last == block.first
        )
        live[block.first] -= min(shared, block.size_bytes)
    return live


def taken_bytes(placed: Placed, sequence: Sequence) -> int:
    """Return the bytes of a memory with tensors placed: transfers take whole lines of it."""
    copies = any(isinstance(operation, Copy) for operation in sequence.operations)
    return placed.peak_bytes if copies else placed.end_bytes
