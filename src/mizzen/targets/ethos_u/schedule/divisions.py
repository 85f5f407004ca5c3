"""Operations whose constants are waited for, and the channels that they might be divided by.

Parts of a blob need less memory than all of it, come beside more units, and one part can be fetched
while another is used; each part fills and drains by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from mizzen.targets.ethos_u.operations import Convolution
from mizzen.targets.ethos_u.schedule.blocks import DEPTH_STEP, up
from mizzen.targets.ethos_u.schedule.fetching import Fetching, Plan
from mizzen.targets.ethos_u.schedule.stages import Divisions, Ranges, Stage, stage_of
from mizzen.targets.ethos_u.schedule.units import Costs, Unit

PARTS = (2, 3, 4)
LEAST_LOSS_CYCLES = 100.0
"""What an operation must lose by its constants to be looked at, by both models together."""


def divided(stage: Stage, plan: Plan, room_bytes: int) -> tuple[Stage, Plan]:
    """Return units and a plan for them in which operations are divided where that gains."""
    ranges: Divisions = {}
    costs = stage.costs
    for operation in range(len(costs.sequence.operations)):
        for trial in _ways(stage, plan, operation, costs):
            tried = stage_of(stage.storage, costs, {**ranges, operation: trial})
            fetching = Fetching(tried.jobs, [room_bytes - row for row in tried.live_bytes],
                                costs.machine)  # fmt: skip
            found = fetching.plan(_carried(stage, plan, tried))
            for unit in tried.of_operation(operation):
                found = fetching.improved(found, unit)
            if found.cycles < plan.cycles:
                plan, stage, ranges = found, tried, {**ranges, operation: trial}
    return stage, plan


def _ways(stage: Stage, plan: Plan, operation: int, costs: Costs) -> Iterator[Ranges]:
    """Yield ways to divide an operation, none of one that loses little."""
    row = costs.sequence.operations[operation]
    index, *_ = stage.of_operation(operation)
    unit = stage.units[index]
    if not isinstance(row, Convolution) or row.depthwise or unit.staged is None:
        return
    if row.written is not None:  # its streams are of all channels
        return
    if _loss(plan, index, unit) < LEAST_LOSS_CYCLES:
        return
    seen: set[Ranges] = set()
    channels = len(row.weights)
    depth = unit.staged.best.blocking.block[2]
    for step in (DEPTH_STEP, depth):
        count = up(channels, step)
        for parts in PARTS:
            if step % DEPTH_STEP == 0 and count >= parts:
                edges = [min(channels, step * (count * part // parts)) for part in range(parts + 1)]
                found = tuple(pairwise(edges))
                if found not in seen:
                    yield found
                seen.add(found)


def _loss(plan: Plan, index: int, unit: Unit) -> float:
    """Return the cycles by which an operation's constants make it longer, nearly."""
    assert unit.staged is not None
    choice = plan.choices[index]
    assert choice is not None
    exposed = sum(piece.stop - piece.start for piece in plan.gaps[index] if piece.unit == index)
    before = plan.choices[index - 1] if index else None
    hidden = min(exposed, before.own) if before else 0.0
    return choice.cycles - unit.staged.best.cycles + exposed - hidden


def _carried(stage: Stage, plan: Plan, tried: Stage) -> dict[int, int]:
    """Return the reaches of units that are in both stages; those of others are the least."""
    known = {
        (unit.operation, unit.channels): plan.reaches.get(index, 0)
        for index, unit in enumerate(stage.units)
    }
    return {
        index: known.get((unit.operation, unit.channels), 1)
        for index, unit in enumerate(tried.units)
        if unit.staged is not None
    }
