"""Schedules by chance: any legal block, any layout, some fetches, tensors apart or packed."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np

from mizzen.targets.ethos_u.generator.operations import (
    AS_COMPUTED,
    Blob,
    Blocking,
    Box,
    Bytes,
    Chain,
    Computation,
    Convolution,
    Copy,
    Fetch,
    Issue,
    Map,
    Place,
    Role,
    Schedule,
    Sequence,
    Staging,
    links_of,
    maps_read,
)
from mizzen.targets.ethos_u.generator.shared_buffer import demand_on, fitting, sides_of
from mizzen.targets.ethos_u.generator.weights import encode
from mizzen.targets.ethos_u.machine.commands_values import Layout
from mizzen.targets.ethos_u.machine.config import Accelerator

ALIGNMENT = 16
SCRATCH = 1


def by_chance(sequence: Sequence, accelerator: Accelerator, seed: int) -> Schedule:
    """Return a schedule that is right, and otherwise whatever chance gives."""
    return _Scheduler(sequence, accelerator, random.Random(seed)).schedule()


class _Scheduler:
    def __init__(self, sequence: Sequence, accelerator: Accelerator, rng: random.Random) -> None:
        self._sequence, self._accelerator, self._rng = sequence, accelerator, rng
        self._blobs: list[Blob] = []
        self._stagings: list[Staging] = []
        self._end = 0

    def schedule(self) -> Schedule:
        layouts = self._layouts()
        places = self._places(layouts)
        items: list[Issue | Fetch] = []
        for index, operation in enumerate(self._sequence.operations):
            if isinstance(operation, Copy):
                items.append(Issue(index, None))
            else:
                items += self._issues(index, operation)
        return Schedule(
            self._sequence, layouts, places, tuple(self._stagings), tuple(self._blobs),
            tuple(items), {SCRATCH: self._end},
        )  # fmt: skip

    def _layouts(self) -> tuple[Layout, ...]:
        rows = self._sequence.tensors
        fixed = {index for index, row in enumerate(rows) if row.role is not Role.SCRATCH}
        for operation in self._sequence.operations:
            if isinstance(operation, Copy):
                fixed |= {operation.source, operation.destination}
                continue
            for map_ in (*maps_read(operation), operation.ofm):
                if not _fits_bricks(map_):
                    fixed.add(map_.tensor)
        return tuple(
            row.layout
            if row.layout is not None
            else Layout.NHWC
            if index in fixed
            else self._rng.choice((Layout.NHWC, Layout.NHCWB16))
            for index, row in enumerate(rows)
        )

    def _places(self, layouts: tuple[Layout, ...]) -> tuple[Place | None, ...]:
        """Put tensors at the lowest place that is free, or behind all others."""
        sequence, packed = self._sequence, self._rng.random() < 0.7
        lifetimes, found = sequence.lifetimes(), dict[int, tuple[int, int]]()
        for index, row in enumerate(sequence.tensors):
            size = ALIGNMENT * -(-row.size_bytes(layouts[index]) // ALIGNMENT)
            first, last = lifetimes[index]
            if row.role is Role.CONSTANT or last < first:
                continue
            taken = sorted(
                place
                for other, place in found.items()
                if not packed or (lifetimes[other][0] <= last and first <= lifetimes[other][1])
            )
            at = 0
            for low, high in taken:
                if at + size <= low:
                    break
                at = max(at, high)
            found[index] = at, at + size
        self._end = max((high for _, high in found.values()), default=0)
        return tuple(
            Place(SCRATCH, found[index][0]) if index in found else None
            for index in range(len(sequence.tensors))
        )

    def _issues(self, index: int, operation: Computation | Chain) -> list[Issue | Fetch]:
        operation = links_of(operation)[0]
        blocking = self._blocking(operation)
        if not isinstance(operation, Convolution):
            return [Issue(index, blocking)]
        depth = operation.order.computed(operation.ofm.shape)[2]
        cuts = [0, depth]
        as_computed = operation.order == AS_COMPUTED
        if as_computed and depth > 16 and self._rng.random() < 0.4:
            cuts.insert(1, 16 * self._rng.randint(1, (depth - 1) // 16))
        fetches = self._rng.random() < 0.6
        found: list[Issue | Fetch] = []
        for first, stop in pairwise(cuts):
            channels = (first, stop) if len(cuts) > 2 else None
            part = blocking.part_kernel
            blob = encode(operation, (first, stop), blocking.block[2], part, self._accelerator)
            self._blobs.append(blob)
            issue = Issue(index, blocking, channels, len(self._blobs) - 1)
            found += self._fetched(issue, blob) if fetches else [issue]
        return found

    def _fetched(self, issue: Issue, blob: Blob) -> list[Issue | Fetch]:
        """Fetch a blob to one of two memories, in one piece or two."""
        assert issue.blob is not None
        while len(self._stagings) < 2:
            self._stagings.append(Staging(Place(SCRATCH, self._end), 1 << 16))
            self._end += 1 << 16
        staging = self._rng.randrange(2)
        offset = ALIGNMENT * self._rng.randint(0, 20)
        half = ALIGNMENT * (len(blob.data) // 2 // ALIGNMENT)
        cuts = [0, len(blob.data)]
        if half and self._rng.random() < 0.5:
            cuts.insert(1, half)
        fetches = [
            Fetch(issue.blob, first, stop, staging, offset) for first, stop in pairwise(cuts)
        ]
        return [*fetches, replace(issue, staging=staging, offset_bytes=offset)]

    def _blocking(self, operation: Computation) -> Blocking:
        demand = demand_on(operation, self._accelerator)
        steps, most = sides_of(demand, self._accelerator)
        shape = operation.order.computed(operation.ofm.shape)
        part = False
        if isinstance(operation, Convolution) and not operation.depthwise:
            part = operation.ifm.shape[2] <= 8 or self._rng.random() < 0.5
        while True:
            block = tuple(
                least * self._rng.randint(1, -(-min(limit, extent) // least))
                for least, limit, extent in zip(steps, most, shape, strict=True)
            )
            height, width, depth = block
            whole = -(-shape[2] // steps[2]) * steps[2]
            if depth != whole:
                depth = min(128, max(16, depth // 16 * 16))
            blocks = np.array([(height, width, depth)])
            if fitting(demand, blocks, part, self._accelerator)[0]:
                return Blocking((height, width, depth), part)


def _fits_bricks(map_: Map) -> bool:
    match map_.view:
        case Box(start=start, steps=steps):
            return start[2] % 16 == 0 and steps[1] == 1
        case Bytes():
            return False
