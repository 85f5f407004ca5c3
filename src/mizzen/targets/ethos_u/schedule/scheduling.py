"""The schedule with search: layouts, blocks, what is fetched when, and where everything lies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from mizzen.targets.ethos_u.config import EthosUConfiguration
from mizzen.targets.ethos_u.operations import Schedule, Sequence
from mizzen.targets.ethos_u.placement import Block, Placed, place
from mizzen.targets.ethos_u.program import RegionIndex
from mizzen.targets.ethos_u.schedule.assembly import assemble
from mizzen.targets.ethos_u.schedule.divisions import divided
from mizzen.targets.ethos_u.schedule.fetching import FARTHEST, Fetching, Plan
from mizzen.targets.ethos_u.schedule.layouts import choose_layouts
from mizzen.targets.ethos_u.schedule.memory import live_bytes
from mizzen.targets.ethos_u.schedule.regions import in_cache, with_copies
from mizzen.targets.ethos_u.schedule.stages import Stage, blocks_with, stage_of
from mizzen.targets.ethos_u.schedule.storage import Storage, first_storage
from mizzen.targets.ethos_u.schedule.units import Costs

TRIES = 8
"""Plans with less and less memory to stage in, until what is staged finds a place."""
BYTE_PRICES_CYCLES = (0.0, 0.1, 1.0, 100.0)
"""What a byte of a tensor is worth, tried in turn until all of them fit."""
STATES = 600
"""Of the search for places of tensors alone, which is done often."""
FREE = 1.002
"""Cycles under a limit over those without, up to which nothing is done for it."""
ENDLESS_BYTES = 1 << 40
"""For a memory without a limit."""


class Effort(Enum):
    """How long to look for a better schedule."""

    FAST = "fast"
    THOROUGH = "thorough"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes that each memory may take in all; None for any number.

    fast_bytes  of the region SCRATCH_FAST, where the arena is not in the memory of the cache
    """

    scratch_bytes: int | None = None
    fast_bytes: int | None = None


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
    if configuration.mode.spills:
        cache = configuration.arena_cache_size_bytes
        limit = min(cache, limits.fast_bytes or cache)
        stage, peak = _spilled(costs, configuration, limit)
    else:
        limit = limits.scratch_bytes or ENDLESS_BYTES
        laid = _laid_out(costs, limit)
        stage, peak = laid.stage, laid.peak_bytes
    return _staged(stage, max(limit, peak))


@dataclass(frozen=True, slots=True)
class _Laid:
    """Undivided units, and what their tensors take.

    cycles       of a first plan for their constants within the limit
    free_cycles  of the same plan without a limit
    """

    stage: Stage
    peak_bytes: int
    cycles: float
    free_cycles: float


def _laid_out(costs: Costs, limit_bytes: int) -> _Laid:
    """Return the fastest units whose tensors fit a limit if layouts and blocks can do that."""
    tried: list[_Laid] = []
    for price in BYTE_PRICES_CYCLES:
        storage = choose_layouts(first_storage(costs.sequence, costs.machine), costs, price)
        found = _measured(storage, costs, limit_bytes)
        tried.append(found)
        if _is_free(found, limit_bytes):
            break
        if price:
            prices = dict.fromkeys(_crowded(found.stage, limit_bytes), price)
            tried.append(_measured(storage, costs.priced(prices), limit_bytes))
    return min(tried, key=lambda row: (max(row.peak_bytes, limit_bytes), row.cycles))


def _measured(storage: Storage, costs: Costs, limit_bytes: int) -> _Laid:
    stage = stage_of(storage, costs, {})
    placed = place(stage.blocks, limit_bytes=_goal(stage, limit_bytes), states=STATES)
    # Where tensors do not come as close together as they might, constants have less room.
    lost = placed.peak_bytes - max(stage.live_bytes, default=0)
    reaches = {index: FARTHEST for index, job in enumerate(stage.jobs) if job.staged is not None}
    cycles = [
        Fetching(stage.jobs, [room - lost - row for row in stage.live_bytes], costs.machine)
        .plan(reaches)
        .cycles
        for room in (max(limit_bytes, placed.peak_bytes), ENDLESS_BYTES)
    ]
    return _Laid(stage, placed.peak_bytes, *cycles)


def _goal(stage: Stage, limit_bytes: int) -> int:
    """Return a peak of tensors that leaves room for all constants at once."""
    return limit_bytes - sum(job.blob_bytes for job in stage.jobs)


def _is_free(laid: _Laid, limit_bytes: int) -> bool:
    """Whether a limit keeps nothing out and costs next to nothing."""
    return laid.peak_bytes <= limit_bytes and laid.cycles <= laid.free_cycles * FREE


def _crowded(stage: Stage, limit_bytes: int) -> list[int]:
    """Return the operations beside which not all fits if nothing lies over another.

    What counts is what is alive there, and the constants of the operation and of the next one.
    """
    live = live_bytes([replace(row, partners=()) for row in stage.blocks], len(stage.units))
    blobs = [job.blob_bytes for job in stage.jobs]
    return [
        unit.operation
        for unit, taken, own, following in zip(
            stage.units, live, blobs, [*blobs[1:], 0], strict=True
        )
        if taken + own + following > limit_bytes
    ]


def _spilled(
    costs: Costs, configuration: EthosUConfiguration, limit_bytes: int
) -> tuple[Stage, int]:
    """Return undivided units whose tensors lie in the cache as far as they fit, and their peak."""
    storage = in_cache(first_storage(costs.sequence, costs.machine), costs, limit_bytes)
    sequence = with_copies(costs.sequence, costs, storage, limit_bytes)
    if sequence is not costs.sequence:
        costs = Costs(sequence, configuration)
    storage = in_cache(first_storage(sequence, costs.machine), costs, ENDLESS_BYTES)
    storage = in_cache(choose_layouts(storage, costs), costs, limit_bytes)
    stage = stage_of(storage, costs, {})
    return stage, place(stage.blocks, limit_bytes=limit_bytes).peak_bytes


def _staged(stage: Stage, limit_bytes: int) -> Schedule:
    """Return a schedule whose constants are staged within a limit."""
    stage, plan, placed = _fitted(stage, limit_bytes)
    count = len(stage.tensors)
    region = stage.costs.staging_region
    offsets = {region: dict(zip(stage.tensors, placed.offsets_bytes[:count], strict=True))}
    region_bytes = {int(region): placed.peak_bytes}
    if region is not RegionIndex.SCRATCH:
        slow = place(stage.slow_blocks)
        offsets[RegionIndex.SCRATCH] = dict(
            zip(stage.slow_tensors, slow.offsets_bytes, strict=True)
        )
        region_bytes[int(RegionIndex.SCRATCH)] = slow.peak_bytes
    staged = dict(zip(sorted(plan.starts), placed.offsets_bytes[count:], strict=True))
    return assemble(stage, plan, offsets, staged, region_bytes)


def _fitted(whole: Stage, limit_bytes: int) -> tuple[Stage, Plan, Placed]:
    """Return units and a plan for them that can be placed within a limit."""
    room = limit_bytes
    for _ in range(TRIES):
        free = [room - row for row in whole.live_bytes]
        plan = Fetching(whole.jobs, free, whole.costs.machine).best()
        stage, plan = divided(whole, plan, room)
        placed = _placed(stage, plan, limit_bytes)
        if placed.peak_bytes <= limit_bytes:
            return stage, plan, placed
        room -= placed.peak_bytes - limit_bytes
    plan = Fetching(whole.jobs, whole.live_bytes, whole.costs.machine).plan({})
    return whole, plan, _placed(whole, plan, limit_bytes)


def _placed(stage: Stage, plan: Plan, limit_bytes: int) -> Placed:
    """Return where tensors lie, and behind them what constants are fetched to."""
    more = [
        Block(stage.jobs[unit].blob_bytes, max(0, plan.starts[unit]), unit)
        for unit in sorted(plan.starts)
    ]
    return place([*blocks_with(stage, plan.choices), *more], limit_bytes=limit_bytes)
