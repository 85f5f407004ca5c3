"""Operations whose constants are waited for, and the channels that they might be divided by.

Parts of a blob need less memory than all of it, come beside more units, and one part can be fetched
while another is used; each part fills and drains by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from mizzen.targets.ethos_u.generator.operations import AS_COMPUTED, convolution_of
from mizzen.targets.ethos_u.generator.schedule.blocks import DEPTH_STEP, up
from mizzen.targets.ethos_u.generator.schedule.fetching import Fetching, FetchPlan
from mizzen.targets.ethos_u.generator.schedule.stages import Divisions, Ground, Ranges, Stage
from mizzen.targets.ethos_u.generator.tuned import (
    CHANNEL_PARTS,
    LEAST_LOSS_CYCLES,
    SLICE_BYTES,
)


@dataclass(frozen=True, slots=True)
class Planned:
    """Units of divided operations, and when their constants are fetched."""

    divisions: Divisions
    stage: Stage
    plan: FetchPlan

    @property
    def cycles(self) -> float:
        """What is to be as small as can be."""
        return self.plan.cycles


class Divider:
    """Divides operations within some memory for tensors and staged constants.

    steps        units of all plans that may be made
    byte_cycles  for a byte of a blob that is in memory a unit longer
    """

    def __init__(
        self, ground: Ground, room_bytes: int, steps: int, byte_cycles: float = 0.0
    ) -> None:
        self._ground = ground
        self._room = room_bytes
        self._steps = steps
        self._byte_cycles = byte_cycles
        self._sequence = ground.storage.sequence

    def starts(self) -> list[Planned]:
        """Return plans to begin with, the best first."""
        ways: list[Divisions] = [{}, *(self._sliced(size) for size in SLICE_BYTES)]
        plans: list[Planned] = []
        for divisions in ways:
            if all(divisions != plan.divisions for plan in plans):
                stage = self._ground.stage(divisions)
                plans.append(Planned(divisions, stage, self.fetching(stage).whole()))
        return sorted(plans, key=lambda plan: plan.cycles)

    def fetching(self, stage: Stage) -> Fetching:
        """Return what plans the fetching of a stage's constants."""
        free = [self._room - live for live in stage.live_bytes]
        return Fetching(
            jobs=stage.jobs,
            free_bytes=free,
            loads=self._ground.loads,
            byte_cycles=self._byte_cycles,
        )

    def refined(self, plan: Planned) -> Planned:
        """Return a plan that no other division or reach makes better, as far as steps go."""
        while True:
            before = plan.cycles
            for operation in self._losers(plan):
                if self._steps <= 0:
                    return plan
                plan = self._reached(plan, operation)
                for ranges in self._ways(plan, operation):
                    trial = self._tried(plan, operation, ranges)
                    plan = min(plan, trial, key=lambda planned: planned.cycles)
            if plan.cycles >= before:
                return plan

    def again(self, planned: Planned) -> Planned:
        """Return a plan of another divider, refined for the memory that there is here."""
        plan = self.fetching(planned.stage).plan(planned.plan.reaches)
        return self.refined(Planned(planned.divisions, planned.stage, plan))

    def _losers(self, planned: Planned) -> list[int]:
        """Return the operations that their constants make longer, that by most first."""
        lost = {
            operation: self._lost_cycles(planned, operation)
            for operation in range(len(self._sequence.operations))
        }
        losers = [operation for operation, cycles in lost.items() if cycles > LEAST_LOSS_CYCLES]
        return sorted(losers, key=lambda operation: -lost[operation])

    def _lost_cycles(self, planned: Planned, operation: int) -> float:
        """Return by how much an operation is longer than whole and with constants at hand."""
        unit, _ = self._ground.unit(operation, None)
        if unit.staged is None:
            return 0.0
        plan, units = planned.plan, planned.stage.of_operation(operation)
        cycles = sum(choice.cycles for unit_ in units if (choice := plan.choices[unit_]))
        exposed = sum(plan.exposed.get(unit_, 0) for unit_ in units)
        return cycles + exposed - unit.staged.best.cycles

    def _reached(self, planned: Planned, operation: int) -> Planned:
        """Return a plan with the best reaches of an operation's units."""
        fetching = self.fetching(planned.stage)
        plan = fetching.improved(planned.plan, planned.stage.of_operation(operation))
        self._steps -= fetching.plans * len(planned.stage.units)
        return Planned(planned.divisions, planned.stage, plan)

    def _sliced(self, size_bytes: int) -> Divisions:
        """Return divisions by which no blob is much longer."""
        divisions: dict[int, Ranges] = {}
        for operation in range(len(self._sequence.operations)):
            _, job = self._ground.unit(operation, None)
            parts = up(job.blob_bytes, size_bytes)
            if parts > 1 and self._is_divisible(operation):
                ranges = self._ranges(operation, DEPTH_STEP, parts)
                if ranges is not None:
                    divisions[operation] = ranges
        return divisions

    def _is_divisible(self, operation: int) -> bool:
        divided = convolution_of(self._sequence.operations[operation])
        if divided is None or divided.depthwise or divided.order != AS_COMPUTED:
            return False
        # Streams that operations write are of all channels.
        return divided.written is None

    def _ranges(self, operation: int, step: int, parts: int) -> Ranges | None:
        """Return channels in so many parts, or in fewer; None for one."""
        divided = convolution_of(self._sequence.operations[operation])
        assert divided is not None, "it has weights"
        channels = len(divided.weights)
        count = up(channels, step)
        parts = min(parts, count)
        if parts < 2 or step % DEPTH_STEP:
            return None
        edges = [min(channels, step * (count * part // parts)) for part in range(parts + 1)]
        return tuple(pairwise(edges))

    def _ways(self, planned: Planned, operation: int) -> Iterator[Ranges | None]:
        """Yield other ways to divide an operation."""
        if not self._is_divisible(operation):
            return
        unit, _ = self._ground.unit(operation, None)
        assert unit.staged is not None
        seen: set[Ranges | None] = {planned.divisions.get(operation)}
        for step in (DEPTH_STEP, unit.staged.best.blocking.block[2]):
            for parts in CHANNEL_PARTS:
                ranges = self._ranges(operation, step, parts)
                if ranges not in seen:
                    yield ranges
                seen.add(ranges)

    def _tried(self, planned: Planned, operation: int, ranges: Ranges | None) -> Planned:
        divisions = {
            other: parts for other, parts in planned.divisions.items() if other != operation
        }
        if ranges is not None:
            divisions[operation] = ranges
        stage = self._ground.stage(divisions)
        fetching = self.fetching(stage)
        plan = fetching.plan(_carried(planned, stage, 1))
        plan = fetching.improved(plan, stage.of_operation(operation))
        self._steps -= fetching.plans * len(stage.units)
        return Planned(divisions, stage, plan)


def _carried(planned: Planned, stage: Stage, reach: int) -> dict[int, int]:
    """Return the reaches of units that were there before; those of others are `reach`."""
    known = {
        (unit.operation, unit.channels): planned.plan.reaches.get(index, 0)
        for index, unit in enumerate(planned.stage.units)
    }
    return {
        index: known.get((unit.operation, unit.channels), reach)
        for index, unit in enumerate(stage.units)
        if unit.staged is not None
    }
