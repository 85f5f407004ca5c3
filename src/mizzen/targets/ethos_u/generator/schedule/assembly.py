"""From what a search has found to a `Schedule`."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.targets.ethos_u.generator.operations import (
    Blob,
    Fetch,
    Issue,
    Place,
    Schedule,
    Staging,
    convolution_of,
)
from mizzen.targets.ethos_u.generator.schedule.fetching import FetchPlan
from mizzen.targets.ethos_u.generator.schedule.stages import Stage
from mizzen.targets.ethos_u.machine.program import RegionIndex

Offsets = dict[RegionIndex, dict[int, int]]
"""Of each region, where its tensors lie."""


def assemble(
    stage: Stage,
    plan: FetchPlan,
    offsets: Offsets,
    region_bytes: dict[int, int],
) -> Schedule:
    """Return the schedule of units, of which the constants are fetched as planned."""
    blobs, blob_of = _blobs(stage, plan)
    staged = plan.offsets
    number = {unit: index for index, unit in enumerate(sorted(staged))}
    stagings = tuple(
        Staging(
            Place(int(stage.ground.costs.staging_region), staged[unit]),
            len(blobs[blob_of[unit]].data),
        )
        for unit in sorted(staged)
    )
    return Schedule(
        sequence=stage.ground.storage.sequence,
        layouts=stage.ground.storage.layouts,
        places=_places(len(stage.ground.storage.sequence.tensors), offsets),
        stagings=stagings,
        blobs=tuple(blobs),
        items=tuple(_items(stage, plan, blob_of, number)),
        region_bytes=region_bytes,
    )


def _blobs(stage: Stage, plan: FetchPlan) -> tuple[list[Blob], dict[int, int]]:
    """Return the constants of all units, equal ones once, and which each unit has."""
    blobs: list[Blob] = []
    known: dict[bytes, int] = {}
    blob_of: dict[int, int] = {}
    for index, (unit, choice) in enumerate(zip(stage.units, plan.choices, strict=True)):
        operation = stage.ground.storage.sequence.operations[unit.operation]
        if choice is None or convolution_of(operation) is None:
            continue
        blob = stage.ground.costs.blob(unit.operation, unit.channels, choice)
        if blob.data not in known:
            known[blob.data] = len(blobs)
            blobs.append(blob)
        blob_of[index] = known[blob.data]
    return blobs, blob_of


def _places(tensors: int, offsets: Offsets) -> tuple[Place | None, ...]:
    places: list[Place | None] = [None] * tensors
    for region, there in offsets.items():
        for tensor, offset in there.items():
            places[tensor] = Place(int(region), offset)
    return tuple(places)


def _items(
    stage: Stage, plan: FetchPlan, blob_of: dict[int, int], number: dict[int, int]
) -> Iterator[Issue | Fetch]:
    for gap, pieces in enumerate(plan.gaps()):
        if gap:
            unit, choice = stage.units[gap - 1], plan.choices[gap - 1]
            blocking = choice.blocking if choice else None
            blob, staging = blob_of.get(gap - 1), number.get(gap - 1)
            yield Issue(
                operation=unit.operation,
                blocking=blocking,
                channels=unit.channels,
                blob=blob,
                staging=staging,
            )
        for piece in pieces:
            yield Fetch(
                blob=blob_of[piece.unit],
                start=piece.start,
                stop=piece.stop,
                staging=number[piece.unit],
            )
