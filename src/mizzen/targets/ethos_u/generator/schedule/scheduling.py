"""The schedule with search: layouts, blocks, what is fetched when, and where everything lies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mizzen.targets.ethos_u.generator.operations import Schedule, Sequence
from mizzen.targets.ethos_u.generator.placement import Block, Placed, in_lines, place
from mizzen.targets.ethos_u.generator.schedule.assembly import assemble
from mizzen.targets.ethos_u.generator.schedule.divisions import Divider, Planned
from mizzen.targets.ethos_u.generator.schedule.fetching import Fetching, FetchPlan
from mizzen.targets.ethos_u.generator.schedule.layouts import choose_layouts
from mizzen.targets.ethos_u.generator.schedule.memory import taken_bytes
from mizzen.targets.ethos_u.generator.schedule.regions import in_cache, with_copies
from mizzen.targets.ethos_u.generator.schedule.stages import Ground, Stage
from mizzen.targets.ethos_u.generator.schedule.storage import Storage, first_storage
from mizzen.targets.ethos_u.generator.schedule.units import Costs
from mizzen.targets.ethos_u.generator.tuned import (
    ESTIMATED_EXCESS,
    FARTHEST,
    FAST,
    MANY_BLOCKS,
    NEGLIGIBLE_SLOWDOWN,
    QUICK,
    TENSOR_BYTE_CYCLES,
    TENSOR_PLACEMENT_STATES,
    THOROUGH,
    Work,
)
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.machine.program import RegionIndex

ENDLESS_BYTES = 1 << 40
"""For a memory without a limit."""


class Effort(Enum):
    """How long to look for a better schedule."""

    QUICK = "quick"
    """Enough to tell how much memory a sequence takes."""
    FAST = "fast"
    THOROUGH = "thorough"


EFFORTS = {Effort.QUICK: QUICK, Effort.FAST: FAST, Effort.THOROUGH: THOROUGH}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes that each memory may take in all, None for any number.

    fast_bytes  of the region SCRATCH_FAST, where the arena is not in the memory of the cache
    """

    scratch_bytes: int | None = None
    fast_bytes: int | None = None

    def in_lines(self) -> Limits:
        """Return limits in whole lines of memory, as blocks are placed."""
        scratch, fast = (
            None if limit is None else in_lines(limit)
            for limit in (self.scratch_bytes, self.fast_bytes)
        )
        return Limits(scratch, fast)


UNLIMITED = Limits()


def schedule(
    sequence: Sequence,
    configuration: EthosUConfiguration,
    limits: Limits = UNLIMITED,
    effort: Effort = Effort.FAST,
) -> Schedule:
    """Return a schedule of few cycles by both models, the same for the same arguments.

    Limits are kept as far as tensors by themselves do; what constants are staged in never goes
    beyond what is the more, the limit or tensors by themselves.
    """
    costs = Costs(sequence, configuration)
    limits = limits.in_lines()
    if configuration.mode.spills:
        cache = configuration.arena_cache_size_bytes
        limit = cache if limits.fast_bytes is None else min(cache, limits.fast_bytes)
        ground, peak = _spilled(costs, configuration, limit)
    else:
        limit = ENDLESS_BYTES if limits.scratch_bytes is None else limits.scratch_bytes
        laid = _laid_out(costs, limit)
        ground, peak = laid.ground, laid.peak_bytes
    return _staged(ground, max(limit, peak), EFFORTS[effort])


@dataclass(frozen=True, slots=True)
class _Laid:
    """Tensors with layouts, and what they take.

    cycles       of a first plan for constants within the limit
    free_cycles  of the same plan without a limit
    """

    ground: Ground
    peak_bytes: int
    cycles: float
    free_cycles: float


def _laid_out(costs: Costs, limit_bytes: int) -> _Laid:
    """Return the fastest units whose tensors fit a limit if layouts and blocks can do that."""
    tried: list[_Laid] = []
    for price in TENSOR_BYTE_CYCLES:
        first = first_storage(costs.sequence, costs.machine)
        storage = choose_layouts(first, costs, price)
        laid = _measured(storage, costs, limit_bytes)
        tried.append(laid)
        if _is_free(laid, limit_bytes):
            break
        if price:
            prices = dict.fromkeys(_crowded(laid.ground, limit_bytes), price)
            tried.append(_measured(storage, costs.priced(prices), limit_bytes))
    return min(tried, key=lambda laid: (max(laid.peak_bytes, limit_bytes), laid.cycles))


def _measured(storage: Storage, costs: Costs, limit_bytes: int) -> _Laid:
    ground = Ground(storage, costs)
    stage = ground.stage({})
    _, blocks = stage.blocks(costs.staging_region)
    # A peak that leaves room for all constants at once is low enough.
    goal = limit_bytes - sum(job.blob_bytes for job in stage.jobs)
    placed = place(blocks, limit_bytes=goal, states=TENSOR_PLACEMENT_STATES)
    # Where tensors do not come as close together as they might, constants have less room.
    lost = placed.peak_bytes - max(stage.live_bytes, default=0)
    reaches = {index: FARTHEST for index, job in enumerate(stage.jobs) if job.staged is not None}
    cycles = [
        Fetching(stage.jobs, [room - lost - live for live in stage.live_bytes], ground.loads)
        .plan(reaches)
        .cycles
        for room in (max(limit_bytes, placed.peak_bytes), ENDLESS_BYTES)
    ]
    return _Laid(ground, placed.peak_bytes, *cycles)


def _is_free(laid: _Laid, limit_bytes: int) -> bool:
    """Whether a limit keeps nothing out and costs next to nothing."""
    return laid.peak_bytes <= limit_bytes and laid.cycles <= laid.free_cycles * NEGLIGIBLE_SLOWDOWN


def _crowded(ground: Ground, limit_bytes: int) -> list[int]:
    """Return the operations beside which not all fits if nothing lies over another.

    What counts is what is alive there, and the constants of the operation and of the next one.
    """
    stage = ground.stage({})
    blobs = [job.blob_bytes for job in stage.jobs]
    return [
        unit.operation
        for unit, taken, own, following in zip(
            stage.units, ground.live_bytes[1], blobs, [*blobs[1:], 0], strict=True
        )
        if taken + own + following > limit_bytes
    ]


def _spilled(
    costs: Costs, configuration: EthosUConfiguration, limit_bytes: int
) -> tuple[Ground, int]:
    """Return a ground whose tensors lie in the cache as far as they fit, and their peak."""
    storage = in_cache(first_storage(costs.sequence, costs.machine), costs, limit_bytes)
    sequence = with_copies(costs.sequence, costs, storage, limit_bytes)
    if sequence is not costs.sequence:
        costs = Costs(sequence, configuration)
    storage = in_cache(first_storage(sequence, costs.machine), costs, ENDLESS_BYTES)
    storage = in_cache(choose_layouts(storage, costs), costs, limit_bytes)
    ground = Ground(storage, costs)
    _, blocks = ground.stage({}).blocks(costs.staging_region)
    return ground, place(blocks, limit_bytes=limit_bytes).peak_bytes


def _staged(ground: Ground, limit_bytes: int, work: Work) -> Schedule:
    """Return a schedule whose constants are staged within a limit."""
    fitted = _fitted(ground, limit_bytes, work)
    region = ground.costs.staging_region
    offsets = {region: fitted.offsets}
    region_bytes = {int(region): fitted.size_bytes}
    if region is not RegionIndex.SCRATCH:
        tensors, blocks = fitted.stage.blocks(RegionIndex.SCRATCH, fitted.plan.choices)
        slow = place(blocks)
        offsets[RegionIndex.SCRATCH] = dict(zip(tensors, slow.offsets_bytes, strict=True))
        region_bytes[int(RegionIndex.SCRATCH)] = taken_bytes(slow, ground.costs.sequence)
    return assemble(fitted.stage, fitted.plan, offsets, region_bytes)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A plan with addresses, and the bytes that all takes."""

    stage: Stage
    plan: FetchPlan
    offsets: dict[int, int]
    size_bytes: int


def _fitted(ground: Ground, limit_bytes: int, work: Work) -> _Fitted:
    """Return units and a plan for them that can be placed within a limit."""
    for share, price in work.rooms:
        room = int(limit_bytes * share)
        starts = Divider(ground=ground, room_bytes=room, steps=0, byte_cycles=price).starts()[
            : work.starts
        ]
        plans = [
            Divider(ground=ground, room_bytes=room, steps=work.steps, byte_cycles=price).refined(
                start
            )
            for start in starts
        ]
        plans.sort(key=lambda planned: planned.cycles)
        for planned in plans[: work.placements]:
            for less in work.shares if price else (1.0,):
                divider = Divider(
                    ground=ground, room_bytes=int(room * less), steps=work.steps, byte_cycles=price
                )
                plan = planned if less == 1 else divider.again(planned)
                joint = _jointly(divider, plan, limit_bytes, work)
                if joint is not None:
                    return joint
    return _bare(ground)


def _bare(ground: Ground) -> _Fitted:
    """Return a plan that stages nothing."""
    stage = ground.stage({})
    plan = Divider(ground, 0, 0).fetching(stage).plan({})
    tensors, blocks = stage.blocks(ground.costs.staging_region, plan.choices)
    placed = place(blocks)
    offsets = dict(zip(tensors, placed.offsets_bytes, strict=True))
    return _Fitted(
        stage=stage,
        plan=plan,
        offsets=offsets,
        size_bytes=taken_bytes(placed, ground.costs.sequence),
    )


def _jointly(divider: Divider, planned: Planned, limit_bytes: int, work: Work) -> _Fitted | None:
    """Return a plan with addresses, if all has a place within a limit.

    Constants are encoded only where their estimated sizes have a place, or nearly.
    """
    if (
        _placed(planned.stage, planned.plan, limit_bytes, work).peak_bytes
        > ESTIMATED_EXCESS * limit_bytes
    ):
        return None
    stage = planned.stage.with_real_sizes(planned.plan.reaches)
    plan = divider.fetching(stage).plan(planned.plan.reaches)
    # What is not fetched needs no room: memory is as small as maps can be placed.
    is_all_there = stage.ground.costs.machine.constants == stage.ground.costs.machine.cache
    placed = _placed(stage, plan, 0 if is_all_there else limit_bytes, work)
    if placed.peak_bytes > limit_bytes:
        return None
    tensors, _ = stage.blocks(stage.ground.costs.staging_region, plan.choices)
    units = sorted(plan.taken)
    offsets = dict(zip(tensors, placed.offsets_bytes, strict=False))
    plan.offsets = dict(zip(units, placed.offsets_bytes[len(tensors) :], strict=True))
    size_bytes = taken_bytes(placed, stage.ground.costs.sequence)
    return _Fitted(stage=stage, plan=plan, offsets=offsets, size_bytes=size_bytes)


def _placed(stage: Stage, plan: FetchPlan, limit_bytes: int, work: Work) -> Placed:
    """Return places of tensors, and after them of staged constants in the order of units."""
    _, blocks = stage.blocks(stage.ground.costs.staging_region, plan.choices)
    more = [
        Block(stage.jobs[unit].blob_bytes, plan.start(unit), unit) for unit in sorted(plan.taken)
    ]
    count = len(blocks) + len(more)
    states = (work.many_states if count > MANY_BLOCKS else work.states) // max(1, count)
    return place([*blocks, *more], limit_bytes=limit_bytes, states=states)
