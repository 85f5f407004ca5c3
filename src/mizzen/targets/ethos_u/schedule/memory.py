"""What takes memory when: tensors and staged constants, as blocks to be placed."""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass

from mizzen.targets.ethos_u.operations import (
    Box,
    Elementwise,
    Map,
    Role,
    Sequence,
    maps_read,
)
from mizzen.targets.ethos_u.placement import Block, Partner
from mizzen.targets.ethos_u.program import RegionIndex
from mizzen.targets.ethos_u.schedule.storage import Storage


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
    storage: Storage, spans: Rows[Span | None], region: RegionIndex
) -> tuple[list[int], list[Block]]:
    """Return the tensors that lie in a region, and a block for each of them."""
    rows = [
        tensor
        for tensor, span in enumerate(spans)
        if span is not None and storage.regions[tensor] is region
    ]
    position = {tensor: index for index, tensor in enumerate(rows)}
    partners = _partners(storage, spans)
    blocks: list[Block] = []
    for tensor in rows:
        span = spans[tensor]
        assert span is not None
        others = tuple(
            Partner(position[other]) for other in partners.get(tensor, ()) if other in position
        )
        blocks.append(Block(storage.size_bytes(tensor), span.first, span.last, partners=others))
    return rows, blocks


def _partners(storage: Storage, spans: Rows[Span | None]) -> dict[int, tuple[int, ...]]:
    """Return for outputs of elementwise operations the inputs in whose place they may be."""
    found: dict[int, tuple[int, ...]] = {}
    for operation in storage.sequence.operations:
        if not isinstance(operation, Elementwise):
            continue
        target = operation.ofm.tensor
        rows = [
            row.tensor
            for row in maps_read(operation)
            if _is_whole(storage, row)
            and _is_whole(storage, operation.ofm)
            and row.shape == operation.ofm.shape
            and row.dtype.itemsize == operation.ofm.dtype.itemsize
            and storage.layouts[row.tensor] is storage.layouts[target]
            and _meet(spans[row.tensor], spans[target])
        ]
        if rows:
            found[target] = tuple(dict.fromkeys(rows))
    return found


def _is_whole(storage: Storage, row: Map) -> bool:
    shape = storage.sequence.tensors[row.tensor].shape
    return isinstance(row.view, Box) and row.view.shape == shape and row.view.steps == (1, 1)


def _meet(before: Span | None, after: Span | None) -> bool:
    return before is not None and after is not None and before.last == after.first


def live_bytes(blocks: Rows[Block], units: int) -> list[int]:
    """Return the bytes that blocks take at each unit, those of partners once."""
    found = [0] * units
    for block in blocks:
        shared = any(blocks[row.block].last == block.first for row in block.partners)
        for unit in range(block.first + shared, block.last + 1):
            found[unit] += block.size_bytes
    return found
