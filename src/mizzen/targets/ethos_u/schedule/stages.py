"""A sequence as units in order, with what each may do and what lies in memory beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mizzen.targets.ethos_u.operations import Copy, Shape
from mizzen.targets.ethos_u.placement import Block
from mizzen.targets.ethos_u.program import RegionIndex
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

    tensors     those that lie in the memory that constants are staged in, and their blocks
    live_bytes  of them at each unit
    """

    storage: Storage
    units: tuple[Unit, ...]
    jobs: tuple[Job, ...]
    tensors: tuple[int, ...]
    blocks: tuple[Block, ...]
    live_bytes: tuple[int, ...]

    def of_operation(self, operation: int) -> list[int]:
        """Return the units of an operation."""
        return [index for index, unit in enumerate(self.units) if unit.operation == operation]


def stage_of(storage: Storage, costs: Costs, divisions: Divisions, region: RegionIndex) -> Stage:
    """Return the units of a sequence, some operations divided.

    region  that constants are staged in
    """
    units = tuple(
        costs.unit(storage, operation, channels)
        for operation in range(len(storage.sequence.operations))
        for channels in divisions.get(operation, (None,))
    )
    spans = tensor_spans(storage.sequence, [unit.operation for unit in units])
    tensors, blocks = tensor_blocks(storage, spans, region, _blocks_of(units))
    live = live_bytes(blocks, len(units))
    jobs = tuple(_job(unit, costs) for unit in units)
    return Stage(storage, units, jobs, tuple(tensors), tuple(blocks), tuple(live))


def _blocks_of(units: tuple[Unit, ...]) -> dict[int, tuple[Shape, ...]]:
    """Return the blocks that operations of one unit may have."""
    return {
        unit.operation: tuple(
            row.best.blocking.block for row in (unit.in_place, unit.staged) if row is not None
        )
        for unit in units
        if unit.channels is None and unit.in_place is not None
    }


def _job(unit: Unit, costs: Costs) -> Job:
    row = costs.sequence.operations[unit.operation]
    if isinstance(row, Copy):
        return Job(None, None, moved_cycles=row.length_bytes / costs.machine.arena.bytes_per_cycle)
    in_place = unit.in_place.best if unit.in_place else None
    if unit.staged is None:
        return Job(in_place, None)
    blob = costs.blob(unit.operation, unit.channels, unit.staged.best)
    return Job(in_place, unit.staged.best, len(blob.data))
