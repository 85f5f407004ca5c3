"""Which tensors lie in the cache, where the arena is in a slower memory.

What the caller sees lies in the arena. All else would be faster in the cache; where it is too
small, tensors that gain least for their bytes leave it.
"""

from __future__ import annotations

from dataclasses import replace

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.operations import (
    Chain,
    Copy,
    Map,
    Operation,
    Role,
    Sequence,
    Tensor,
    links_of,
    tensors_read,
    with_maps,
)
from mizzen.targets.ethos_u.generator.placement import place
from mizzen.targets.ethos_u.generator.schedule.memory import live_bytes
from mizzen.targets.ethos_u.generator.schedule.stages import blocks_of_units
from mizzen.targets.ethos_u.generator.schedule.storage import Storage
from mizzen.targets.ethos_u.generator.schedule.units import Costs
from mizzen.targets.ethos_u.machine.commands_values import Layout
from mizzen.targets.ethos_u.machine.program import RegionIndex


def in_cache(storage: Storage, costs: Costs, limit_bytes: int) -> Storage:
    """Return a storage with tensors in the cache as far as they fit a limit."""
    fast = RegionIndex.SCRATCH_FAST
    for index, tensor in enumerate(storage.sequence.tensors):
        if tensor.role is Role.SCRATCH:
            storage = storage.with_region(index, fast)
    operations = range(len(storage.sequence.operations))
    room = limit_bytes
    while True:
        units = [costs.unit(storage, operation) for operation in operations]
        tensors, blocks = blocks_of_units(storage, units, fast)
        live = live_bytes(blocks, len(units))
        over = max(range(len(live)), key=live.__getitem__)
        if live[over] <= room:
            peak = place(blocks, limit_bytes=limit_bytes).peak_bytes
            if peak <= limit_bytes:
                return storage
            room = live[over] - 1
        there = [
            tensor
            for tensor, block in zip(tensors, blocks, strict=True)
            if block.first <= over <= block.last
        ]
        storage = min(
            (_moved_out(storage, costs, tensor) for tensor in there), key=lambda moved: moved[0]
        )[1]


def _moved_out(storage: Storage, costs: Costs, tensor: int) -> tuple[float, Storage]:
    """Return a storage with a tensor in the arena, and what each of its bytes costs there."""
    trial = storage.with_region(tensor, RegionIndex.SCRATCH)
    users = costs.users(tensor)
    lost = costs.staged_cycles(trial, users) - costs.staged_cycles(storage, users)
    return lost / storage.size_bytes(tensor), trial


def with_copies(sequence: Sequence, costs: Costs, storage: Storage, limit_bytes: int) -> Sequence:
    """Return a sequence that copies inputs to the cache before all, where that is faster."""
    for tensor in sequence.inputs:
        size = storage.size_bytes(tensor)
        users = costs.users(tensor)
        if not users or sequence.tensors[tensor].role is not Role.INPUT or size > limit_bytes // 2:
            continue
        bus = costs.machine.arena
        copy_cycles = bus.read_latency_cycles + size / bus.bytes_per_cycle
        near = storage.with_region(tensor, RegionIndex.SCRATCH_FAST)
        saved = costs.staged_cycles(storage, users) - costs.staged_cycles(near, users)
        if saved > 2 * copy_cycles:
            sequence = _with_copy(sequence, tensor, size)
    return sequence


def _with_copy(sequence: Sequence, tensor: int, size_bytes: int) -> Sequence:
    far = sequence.tensors[tensor]
    number = len(sequence.tensors)
    near = Tensor(f"{far.name} (copied)", far.shape, far.dtype, layout=Layout.NHWC)
    copy = Copy(
        origin=Origin(),
        source=tensor,
        source_offset_bytes=0,
        destination=number,
        destination_offset_bytes=0,
        length_bytes=size_bytes,
    )
    operations = [_reading(operation, tensor, number) for operation in sequence.operations]
    return replace(sequence, tensors=(*sequence.tensors, near), operations=(copy, *operations))


def _reading(operation: Operation, tensor: int, instead: int) -> Operation:
    """Return an operation that reads another tensor instead of one."""
    if tensor not in tensors_read(operation):
        return operation
    if isinstance(operation, Copy):
        lines = operation.lines
        if lines is not None and lines.indices == tensor:
            lines = replace(lines, indices=instead)
        source = instead if operation.source == tensor else operation.source
        return replace(operation, source=source, lines=lines)

    def moved(map_: Map) -> Map:
        if map_.tensor != tensor:
            return map_
        return replace(map_, view=replace(map_.view, tensor=instead))

    links = tuple(with_maps(link, moved) for link in links_of(operation))
    return Chain(links) if isinstance(operation, Chain) else links[0]
