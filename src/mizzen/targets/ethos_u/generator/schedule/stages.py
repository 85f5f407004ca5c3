"""A sequence as units in order, with what each may do and what lies in memory beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mizzen.targets.ethos_u.generator.operations import Copy, convolution_of
from mizzen.targets.ethos_u.generator.placement import Block
from mizzen.targets.ethos_u.generator.schedule.choices import Choice
from mizzen.targets.ethos_u.generator.schedule.fetching import Job, Loads
from mizzen.targets.ethos_u.generator.schedule.memory import live_bytes, tensor_blocks, tensor_spans
from mizzen.targets.ethos_u.generator.schedule.storage import Storage
from mizzen.targets.ethos_u.generator.schedule.units import Channels, Costs, Unit
from mizzen.targets.ethos_u.machine.program import RegionIndex

Ranges = tuple[Channels, ...]
Divisions = Mapping[int, Ranges]
"""Of operations that are done in several units, the channels of each."""
TensorBlocks = tuple[list[int], list[Block]]
"""Tensors that lie in a memory, and a block for each."""


class Ground:
    """A sequence whose tensors have layouts and memories."""

    def __init__(self, storage: Storage, costs: Costs) -> None:
        self.storage = storage
        self.costs = costs
        self.loads = Loads(costs.machine)
        self._units: dict[tuple[int, Channels | None], tuple[Unit, Job]] = {}

    @cached_property
    def live_bytes(self) -> tuple[list[int], list[int]]:
        """What tensors take at each operation that is done at once, and at one that is divided."""
        region, count = self.costs.staging_region, len(self.storage.sequence.operations)
        units = [self.unit(operation, None)[0] for operation in range(count)]
        together = blocks_of_units(self.storage, units, region)[1]
        apart = [replace(block, partners=()) for block in together]
        return live_bytes(together, count), live_bytes(apart, count)

    def unit(self, operation: int, channels: Channels | None) -> tuple[Unit, Job]:
        """Return an operation or a part of one."""
        key = operation, channels
        if key not in self._units:
            unit = self.costs.unit(self.storage, operation, channels)
            self._units[key] = unit, _job(unit, self.costs)
        return self._units[key]

    def stage(self, divisions: Divisions) -> Stage:
        """Return the units of the sequence, some operations divided."""
        units: list[Unit] = []
        jobs: list[Job] = []
        live: list[int] = []
        together, apart = self.live_bytes
        for operation in range(len(self.storage.sequence.operations)):
            ranges = divisions.get(operation)
            for channels in ranges or (None,):
                unit, job = self.unit(operation, channels)
                units.append(unit)
                jobs.append(job)
                live.append(apart[operation] if ranges else together[operation])
        return Stage(ground=self, units=tuple(units), jobs=tuple(jobs), live_bytes=tuple(live))


@dataclass(frozen=True, slots=True)
class Stage:
    """Units, and what the fetching of their constants is planned with.

    live_bytes  of tensors at each unit, in the memory that constants are staged in
    """

    ground: Ground
    units: tuple[Unit, ...]
    jobs: tuple[Job, ...]
    live_bytes: tuple[int, ...]

    def of_operation(self, operation: int) -> list[int]:
        """Return the units of an operation."""
        return [index for index, unit in enumerate(self.units) if unit.operation == operation]

    def blocks(
        self, region: RegionIndex, choices: Sequence[Choice | None] | None = None
    ) -> TensorBlocks:
        """Return the tensors that lie in a region, and a block for each of them."""
        return blocks_of_units(self.ground.storage, self.units, region, choices)

    def with_real_sizes(self, reaches: Mapping[int, int]) -> Stage:
        """Return a stage in which constants that are to be staged have their own size."""
        jobs, costs = list(self.jobs), self.ground.costs
        for index, reach in reaches.items():
            unit = self.units[index]
            if reach and unit.staged is not None:
                blob = costs.blob(unit.operation, unit.channels, unit.staged.best)
                jobs[index] = replace(jobs[index], blob_bytes=len(blob.data))
        return replace(self, jobs=tuple(jobs))


def blocks_of_units(
    storage: Storage,
    units: Sequence[Unit],
    region: RegionIndex,
    choices: Sequence[Choice | None] | None = None,
) -> TensorBlocks:
    """Return the tensors that lie in a region, and a block for each of them, in units.

    choices  of units; None for the best ones, constants being staged where that gains
    """
    spans = tensor_spans(storage.sequence, [unit.operation for unit in units])
    chosen = {
        unit.operation: choice.blocking.block
        for unit, choice in zip(units, choices or map(_best, units), strict=True)
        if unit.channels is None and choice is not None
    }
    return tensor_blocks(storage, spans, region, chosen)


def _best(unit: Unit) -> Choice | None:
    ranked = unit.staged or unit.in_place
    return ranked.best if ranked else None


def _job(unit: Unit, costs: Costs) -> Job:
    operation = costs.sequence.operations[unit.operation]
    if isinstance(operation, Copy):
        bus = costs.machine.arena
        cycles = bus.read_latency_cycles + operation.moved_bytes / bus.bytes_per_cycle
        return Job(None, None, moved_cycles=cycles)
    in_place = unit.in_place.best if unit.in_place else None
    if unit.staged is None or convolution_of(operation) is None:
        return Job(in_place, None)
    return Job(in_place, unit.staged.best, costs.blob_bytes(unit, unit.staged.best))
