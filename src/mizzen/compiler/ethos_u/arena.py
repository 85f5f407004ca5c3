"""One arena for all of a network: where every tensor and every map of its NPU operators lies.

Each NPU operator was scheduled as if it had the memory for itself. Here its maps and staged
constants become blocks on one axis of time, beside the tensors that the CPU's operators take and
give, and all are placed at once (`targets.ethos_u.generator.placement`, which also says below which
size no plan goes). Then the streams are emitted again, at these addresses: nothing else of them
changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mizzen.targets.ethos_u.generator.operations import (
    Issue,
    Place,
    Schedule,
    tensor_written,
    tensors_read,
)
from mizzen.targets.ethos_u.generator.placement import Block, Partner, place
from mizzen.targets.ethos_u.machine.program import RegionIndex

SCRATCH = int(RegionIndex.SCRATCH)


@dataclass(frozen=True, slots=True)
class CpuWork:
    """An operator of the CPU: tensors of the network that it takes and gives."""

    takes: tuple[int, ...]
    gives: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class NpuWork:
    """An NPU operator: its schedule, and the tensors of the network that are its edges, in order.

    Its states, which come after its inputs, are tensors of its own.
    """

    schedule: Schedule
    takes: tuple[int, ...]
    gives: tuple[int, ...]


Work = CpuWork | NpuWork


@dataclass(frozen=True, slots=True, eq=False)
class ArenaPlan:
    """Where all lies.

    offsets_bytes  of tensors of the network
    states_bytes   of each NPU operator's states, in order
    schedules      of the NPU operators, at their addresses
    size_bytes     of the arena; `bound_bytes` is what no plan goes below
    """

    offsets_bytes: Mapping[int, int]
    states_bytes: tuple[tuple[int, ...], ...]
    schedules: tuple[Schedule, ...]
    size_bytes: int
    bound_bytes: int


def plan_arena(
    works: Sequence[Work],
    sizes_bytes: Mapping[int, int],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> ArenaPlan:
    """Place everything that a network writes to.

    works        in the order of execution
    sizes_bytes  of the tensors of the network that lie in the arena
    inputs, outputs  tensors that hold something before and after all
    """
    if len(works) == 1 and isinstance(works[0], NpuWork):
        return _as_scheduled(works[0])
    timeline = _Timeline(works, sizes_bytes, inputs, outputs)
    placed = place(timeline.blocks)
    offsets = placed.offsets_bytes
    schedules = tuple(_moved(part, offsets, placed.end_bytes) for part in timeline.parts)
    return ArenaPlan(
        {tensor: offsets[block] for tensor, block in timeline.tensors.items()},
        tuple(
            tuple(offsets[part.tensors[state]] for state in _states(part.work))
            for part in timeline.parts
        ),
        schedules,
        placed.end_bytes,
        placed.bound_bytes,
    )


def _as_scheduled(work: NpuWork) -> ArenaPlan:
    """Return the plan of an NPU operator that has the arena for itself."""
    schedule, sequence = work.schedule, work.schedule.sequence
    edges = dict(zip(sequence.inputs, work.takes, strict=False))
    edges |= dict(zip(sequence.outputs, work.gives, strict=True))
    size = schedule.region_bytes[SCRATCH]
    return ArenaPlan(
        {edge: _offset(schedule, tensor) for tensor, edge in edges.items()},
        (tuple(_offset(schedule, state) for state in _states(work)),),
        (schedule,),
        size,
        size,
    )


def _states(work: NpuWork) -> tuple[int, ...]:
    """Return the tensors of a sequence that are its states, which come after its inputs."""
    return work.schedule.sequence.inputs[len(work.takes) :]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """An NPU operator's blocks: of its tensors by index, and of its stagings."""

    work: NpuWork
    tensors: dict[int, int] = field(default_factory=dict[int, int])
    stagings: dict[int, int] = field(default_factory=dict[int, int])


class _Timeline:
    """Blocks on one axis of time."""

    def __init__(
        self,
        works: Sequence[Work],
        sizes_bytes: Mapping[int, int],
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> None:
        self.blocks: list[Block] = []
        self.tensors: dict[int, int] = {}
        self.parts: list[_Part] = []
        self._sizes = sizes_bytes
        starts = list(_starts(works))
        self._end = starts[-1]
        for tensor in inputs:
            self._tensor(tensor, 0, 0)
        for work, start in zip(works, starts, strict=False):
            match work:
                case CpuWork():
                    for tensor in (*work.takes, *work.gives):
                        self._tensor(tensor, start, start)
                case NpuWork():
                    self._add_part(work, start)
        for tensor in outputs:
            self._tensor(tensor, self._end, self._end)
        for part in self.parts:
            self._let_overlap(part)

    def _tensor(self, tensor: int, first: int, last: int, size_bytes: int = 0) -> int | None:
        """Let a tensor of the network hold something; return its block, if it lies in the arena."""
        if tensor not in self._sizes:
            return None
        size = max(self._sizes[tensor], size_bytes)
        if tensor not in self.tensors:
            self.tensors[tensor] = self._block(size, first, last)
        index = self.tensors[tensor]
        block = self.blocks[index]
        self.blocks[index] = replace(
            block,
            size_bytes=max(block.size_bytes, size),
            first=min(block.first, first),
            last=max(block.last, last),
        )
        return index

    def _block(self, size_bytes: int, first: int, last: int) -> int:
        self.blocks.append(Block(size_bytes, first, last))
        return len(self.blocks) - 1

    def _add_part(self, work: NpuWork, start: int) -> None:
        part = _Part(work)
        schedule, sequence = work.schedule, work.schedule.sequence
        edges = dict(zip(sequence.inputs, work.takes, strict=False))
        edges |= dict(zip(sequence.outputs, work.gives, strict=True))
        for tensor, span in _spans(schedule).items():
            first, last = (start + at for at in span)
            size = sequence.tensors[tensor].size_bytes(schedule.layouts[tensor])
            if tensor in edges:
                block = self._tensor(edges[tensor], first, last, size)
                assert block is not None, "what an NPU operator takes lies in the arena"
            elif tensor in sequence.inputs:  # a state, which nothing else may overwrite ever
                block = self._block(size, 0, self._end)
            else:
                block = self._block(size, first, last)
            part.tensors[tensor] = block
        for staging, (first, last) in _staged(schedule).items():
            size = schedule.stagings[staging].size_bytes
            part.stagings[staging] = self._block(size, start + first, start + last)
        self.parts.append(part)

    def _let_overlap(self, part: _Part) -> None:
        """Let outputs lie over inputs just as far from them as the schedule has them."""
        schedule, given = part.work.schedule, part.work.schedule.sequence.inputs
        for tensor, block in part.tensors.items():
            if tensor in given:
                continue
            first = self.blocks[block].first
            partners = tuple(
                Partner(other, exact_bytes=_offset(schedule, tensor) - _offset(schedule, source))
                for source, other in part.tensors.items()
                if self.blocks[other].last == first
                and (source in given or self.blocks[other].first < first)
                and _meets(schedule, source, tensor)
            )
            if partners:
                self.blocks[block] = replace(self.blocks[block], partners=partners)


def _starts(works: Sequence[Work]) -> Iterator[int]:
    """Yield when each begins, in steps, and the end."""
    start = 0
    for work in works:
        yield start
        start += len(work.schedule.items) if isinstance(work, NpuWork) else 1
    yield start


def _spans(schedule: Schedule) -> dict[int, tuple[int, int]]:
    """Return when each tensor in scratch memory holds something, in items of the schedule."""
    spans: dict[int, tuple[int, int]] = {}
    sequence, end = schedule.sequence, len(schedule.items) - 1

    def extend(tensor: int, at: int) -> None:
        place = schedule.places[tensor]
        if place is not None and place.region == SCRATCH:
            first, last = spans.get(tensor, (at, at))
            spans[tensor] = min(first, at), max(last, at)

    for at, item in enumerate(schedule.items):
        if isinstance(item, Issue):
            operation = sequence.operations[item.operation]
            for tensor in (*tensors_read(operation), tensor_written(operation)):
                extend(tensor, at)
    for tensor in sequence.inputs:
        extend(tensor, 0)
    for tensor in (*sequence.outputs, *sequence.states):
        extend(tensor, end)
    return spans


def _staged(schedule: Schedule) -> dict[int, tuple[int, int]]:
    """Return when each staging in scratch memory holds something, in items of the schedule."""
    spans: dict[int, tuple[int, int]] = {}
    for at, item in enumerate(schedule.items):
        staging = item.staging
        if staging is None or schedule.stagings[staging].place.region != SCRATCH:
            continue
        first, _ = spans.get(staging, (at, at))
        spans[staging] = first, at
    return spans


def _offset(schedule: Schedule, tensor: int) -> int:
    place = schedule.places[tensor]
    assert place is not None, "it lies in scratch memory"
    return place.offset_bytes


def _meets(schedule: Schedule, one: int, other: int) -> bool:
    """Whether two tensors share bytes in a schedule."""
    sizes = [
        schedule.sequence.tensors[tensor].size_bytes(schedule.layouts[tensor])
        for tensor in (one, other)
    ]
    first, second = _offset(schedule, one), _offset(schedule, other)
    return first < second + sizes[1] and second < first + sizes[0]


def _moved(part: _Part, offsets: Sequence[int], size_bytes: int) -> Schedule:
    """Return a schedule at the addresses of its blocks."""
    schedule = part.work.schedule
    places = list(schedule.places)
    for tensor, block in part.tensors.items():
        places[tensor] = Place(SCRATCH, offsets[block])
    stagings = list(schedule.stagings)
    for staging, block in part.stagings.items():
        stagings[staging] = replace(stagings[staging], place=Place(SCRATCH, offsets[block]))
    return replace(
        schedule,
        places=tuple(places),
        stagings=tuple(stagings),
        region_bytes={**schedule.region_bytes, SCRATCH: size_bytes},
    )
