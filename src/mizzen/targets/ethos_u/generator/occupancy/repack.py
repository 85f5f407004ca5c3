"""Tensors and staged constants of a schedule as blocks, and the schedule with new places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mizzen.targets.ethos_u.generator.occupancy.overlaps import overlap
from mizzen.targets.ethos_u.generator.operations import (
    Copy,
    Fetch,
    Issue,
    Place,
    Role,
    Schedule,
    Staging,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.generator.operations import Sequence as Operations
from mizzen.targets.ethos_u.generator.placement import Block, Partner, Placed, place
from mizzen.targets.ethos_u.generator.placement.place import STATES
from mizzen.targets.ethos_u.machine.commands_values import Layout

Items = Sequence[Issue | Fetch]


def repacked(schedule: Schedule, *, states: int = STATES) -> Schedule:
    """Return a schedule whose tensors and stagings lie anew, each in its region.

    states  of the exact search for each region, at most
    """
    tensors = tensor_blocks(schedule.sequence, schedule.layouts, schedule.items)
    stagings = staging_blocks(schedule.stagings, schedule.items)
    places = list(schedule.places)
    kept = list(schedule.stagings)
    sizes = dict(schedule.region_bytes)
    regions = {each.region for each in places if each} | {staging.place.region for staging in kept}
    for region in sorted(regions):
        indices = [
            index
            for index, each in enumerate(places)
            if each is not None and each.region == region and tensors[index] is not None
        ]
        staged = [index for index, staging in enumerate(kept) if staging.place.region == region]
        placed = place(
            _chosen(tensors, indices) + [stagings[index] for index in staged], states=states
        )
        for index, offset in zip(indices, placed.offsets_bytes, strict=False):
            places[index] = Place(region, offset)
        for index, offset in zip(staged, placed.offsets_bytes[len(indices) :], strict=True):
            kept[index] = replace(kept[index], place=Place(region, offset))
        sizes[region] = taken_bytes(placed, schedule.sequence)
    return replace(schedule, places=tuple(places), stagings=tuple(kept), region_bytes=sizes)


def taken_bytes(placed: Placed, sequence: Operations) -> int:
    """Return the bytes of a memory with tensors placed: transfers take whole lines of it."""
    copies = any(isinstance(operation, Copy) for operation in sequence.operations)
    return placed.peak_bytes if copies else placed.end_bytes


def peak_bytes(
    sequence: Operations, layouts: Sequence[Layout], items: Items, *, states: int = STATES
) -> int:
    """Return the bytes of tensors if all lie in one region, nothing staged."""
    blocks = tensor_blocks(sequence, layouts, items)
    indices = [index for index, block in enumerate(blocks) if block is not None]
    return place(_chosen(blocks, indices), states=states).peak_bytes


def tensor_blocks(
    sequence: Operations, layouts: Sequence[Layout], items: Items
) -> list[Block | None]:
    """Return the block of each tensor, its partners by index of tensor; None of what has none.

    Steps are indices of items. Constants have none, nor has what nothing reads or writes.
    """
    spans = _spans(sequence, items)
    blocks: list[Block | None] = []
    for index, (tensor, layout) in enumerate(zip(sequence.tensors, layouts, strict=True)):
        if tensor.role is Role.CONSTANT or spans[index][1] < 0:
            blocks.append(None)
        else:
            blocks.append(Block(tensor.size_bytes(layout), *spans[index]))
    counts = [0] * len(sequence.operations)
    for item in items:
        if isinstance(item, Issue):
            counts[item.operation] += 1
    for step, item in enumerate(items):
        if isinstance(item, Issue) and counts[item.operation] == 1:
            _join(sequence, layouts, step, item, blocks)
    return blocks


def staging_blocks(stagings: Sequence[Staging], items: Items) -> list[Block]:
    """Return the block of each staging: from its first transfer to the last item that reads it."""
    spans = [(len(items), 0)] * len(stagings)
    for step, item in enumerate(items):
        if item.staging is not None:
            first, _ = spans[item.staging]
            spans[item.staging] = min(first, step), step
    return [
        Block(staging.size_bytes, min(first, last), last)
        for staging, (first, last) in zip(stagings, spans, strict=True)
    ]


def _join(
    sequence: Operations,
    layouts: Sequence[Layout],
    step: int,
    item: Issue,
    blocks: list[Block | None],
) -> None:
    """Let an output that is written first by an item lie over inputs that it reads last."""
    operation = sequence.operations[item.operation]
    if isinstance(operation, Copy) or item.blocking is None:
        return
    output = operation.ofm.tensor
    block = blocks[output]
    if block is None or block.first != step:
        return
    partners: list[Partner] = []
    for tensor in dict.fromkeys(tensors_read(operation)):
        other = blocks[tensor]
        if other is None or other.last != step or tensor == output:
            continue
        allowed = overlap(operation, item.blocking.block, tensor, sequence.tensors, layouts)
        if allowed is not None:
            partners.append(Partner(tensor, allowed.reach_bytes, allowed.exact_bytes))
    blocks[output] = replace(block, partners=tuple(partners))


def _spans(sequence: Operations, items: Items) -> list[tuple[int, int]]:
    """Return the first and the last item at which each tensor holds something."""
    last = len(items) - 1
    spans = [(len(items), -1)] * len(sequence.tensors)
    for step, item in enumerate(items):
        if isinstance(item, Issue):
            operation = sequence.operations[item.operation]
            for tensor in (*tensors_read(operation), tensor_written(operation)):
                spans[tensor] = min(spans[tensor][0], step), step
    for tensor in sequence.inputs:
        spans[tensor] = 0, max(spans[tensor][1], 0)
    for tensor in sequence.outputs:
        spans[tensor] = min(spans[tensor][0], last), last
    for index, tensor in enumerate(sequence.tensors):
        if tensor.role is Role.STATE:
            spans[index] = 0, last
    return spans


def _chosen(blocks: Sequence[Block | None], indices: Sequence[int]) -> list[Block]:
    """Return some blocks, their partners by position among them."""
    position = {index: at for at, index in enumerate(indices)}
    chosen: list[Block] = []
    for tensor in indices:
        block = blocks[tensor]
        assert block is not None
        partners = tuple(
            replace(other, block=position[other.block])
            for other in block.partners
            if other.block in position
        )
        chosen.append(replace(block, partners=partners))
    return chosen
