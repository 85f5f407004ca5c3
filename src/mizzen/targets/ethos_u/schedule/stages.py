"""A sequence as units in order, with what each may do and what lies in memory beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mizzen.targets.ethos_u.operations import Copy, Shape
from mizzen.targets.ethos_u.placement import Block
from mizzen.targets.ethos_u.program import RegionIndex
from mizzen.targets.ethos_u.schedule.choices import Choice
from mizzen.targets.ethos_u.schedule.fetching import Job
from mizzen.targets.ethos_u.schedule.memory import live_bytes, tensor_blocks, tensor_spans
from mizzen.targets.ethos_u.schedule.storage import Storage
from mizzen.targets.ethos_u.schedule.units import Channels, Costs, Unit

Ranges = tuple[Channels, ...]
Divisions = Mapping[int, Ranges]
"""Of operations that are done in several units, the channels of each."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Units, and what the fetching of their constants is planned with.

    tensors     those that lie in the memory that constants are staged in, and their blocks;
                slow ones lie in the arena if that is another memory
    live_bytes  of them at each unit
    """

    costs: Costs
    storage: Storage
    units: tuple[Unit, ...]
    jobs: tuple[Job, ...]
    tensors: tuple[int, ...]
    blocks: tuple[Block, ...]
    live_bytes: tuple[int, ...]
    slow_tensors: tuple[int, ...]
    slow_blocks: tuple[Block, ...]

    def of_operation(self, operation: int) -> list[int]:
        """Return the units of an operation."""
        return [index for index, unit in enumerate(self.units) if unit.operation == operation]


def stage_of(storage: Storage, costs: Costs, divisions: Divisions) -> Stage:
    """Return the units of a sequence, some operations divided."""
    units = tuple(
        costs.unit(storage, operation, channels)
        for operation in range(len(storage.sequence.operations))
        for channels in divisions.get(operation, (None,))
    )
    spans = tensor_spans(storage.sequence, [unit.operation for unit in units])
    tensors, blocks = tensor_blocks(storage, spans, costs.staging_region, best_blocks(units))
    slow: tuple[list[int], list[Block]] = [], []
    if costs.staging_region is not RegionIndex.SCRATCH:
        slow = tensor_blocks(storage, spans, RegionIndex.SCRATCH, best_blocks(units))
    return Stage(
        costs=costs,
        storage=storage,
        units=units,
        jobs=tuple(_job(unit, costs) for unit in units),
        tensors=tuple(tensors),
        blocks=tuple(blocks),
        live_bytes=tuple(live_bytes(blocks, len(units))),
        slow_tensors=tuple(slow[0]),
        slow_blocks=tuple(slow[1]),
    )


def blocks_with(stage: Stage, choices: Sequence[Choice | None]) -> list[Block]:
    """Return the blocks of a stage's tensors where units have some choices."""
    operations = [unit.operation for unit in stage.units]
    spans = tensor_spans(stage.storage.sequence, operations)
    chosen = _block_of(stage.units, choices)
    return tensor_blocks(stage.storage, spans, stage.costs.staging_region, chosen)[1]


def best_blocks(units: Sequence[Unit]) -> dict[int, Shape]:
    """Return the blocks of operations of one unit, constants being staged where that gains."""
    return _block_of(units, map(_best, units))


def _block_of(units: Sequence[Unit], choices: Iterable[Choice | None]) -> dict[int, Shape]:
    return {
        unit.operation: choice.blocking.block
        for unit, choice in zip(units, choices, strict=True)
        if unit.channels is None and choice is not None
    }


def _best(unit: Unit) -> Choice | None:
    found = unit.staged or unit.in_place
    return found.best if found else None


def _job(unit: Unit, costs: Costs) -> Job:
    row = costs.sequence.operations[unit.operation]
    if isinstance(row, Copy):
        bus = costs.machine.arena
        cycles = bus.read_latency_cycles + row.length_bytes / bus.bytes_per_cycle
        return Job(None, None, moved_cycles=cycles)
    in_place = unit.in_place.best if unit.in_place else None
    if unit.staged is None:
        return Job(in_place, None)
    blob = costs.blob(unit.operation, unit.channels, unit.staged.best)
    return Job(in_place, unit.staged.best, len(blob.data))
