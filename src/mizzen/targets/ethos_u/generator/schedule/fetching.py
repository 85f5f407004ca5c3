"""When constants are fetched: which units have theirs staged, and after which units they come.

A transfer is free if the unit that runs beside it hides it: by Vela's formula within that unit's
cycles, by events within what the bus of its constants has to spare. A blob comes in pieces, each
beside one unit, as late as can be, because until it is read it takes memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mizzen.targets.ethos_u.generator.schedule.choices import Choice
from mizzen.targets.ethos_u.generator.schedule.units import GRANULE_BYTES
from mizzen.targets.ethos_u.generator.tuned import (
    EXPOSED_FILLING,
    FARTHEST,
    LEAST_PIECE_BYTES,
    REACHES,
)
from mizzen.targets.ethos_u.judge.timing.machine import Machine

Reaches = dict[int, int]
"""Of each unit whose constants are staged; 0 as if it were not there."""


@dataclass(frozen=True, slots=True)
class Job:
    """A unit as the timeline sees it.

    in_place, staged  its best block for either; in place is None of a copy, staged where there is
                      nothing to be fetched
    blob_bytes        of its constants if they are staged
    moved_cycles      of a copy, or of a table that is loaded before: by Vela's formula
    """

    in_place: Choice | None
    staged: Choice | None
    blob_bytes: int = 0
    moved_cycles: float = 0.0

    @property
    def gain(self) -> float:
        """Return the cycles that staging saves if nothing of it is waited for."""
        if self.staged is None or self.in_place is None:
            return 0.0
        return self.in_place.cycles - self.staged.cycles


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes `start .. stop` of a unit's blob."""

    unit: int
    start: int
    stop: int


@dataclass(slots=True)
class FetchPlan:
    """What is fetched when.

    reaches  that were asked for
    choices  of each unit
    taken    of each staged unit, gaps and the bytes that come in them, the last bytes first; gap 0
             is before all, and each other one after a unit
    exposed  of each staged unit, the bytes that are waited for
    limited  staged units of which more would come earlier if their reach were longer
    offsets  of staged blobs in memory, once there are addresses
    area     bytes of blobs, each times the units that it is in memory before its own, and what
             one of them is worth
    course   how it came to be, for plans that differ a little
    """

    reaches: Reaches
    choices: list[Choice | None]
    taken: dict[int, list[tuple[int, int]]]
    exposed: dict[int, int]
    limited: set[int]
    offsets: dict[int, int]
    by_formula: float = 0.0
    by_events: float = 0.0
    area: int = 0
    byte_cycles: float = 0.0
    course: Course | None = None

    @property
    def cycles(self) -> float:
        """What is to be as small as can be."""
        return self.by_formula + self.by_events + self.byte_cycles * self.area

    def start(self, unit: int) -> int:
        """Return the unit beside which a staged blob begins to come."""
        return max(0, self.taken[unit][-1][0] - 1)

    def gaps(self) -> list[list[Piece]]:
        """Return what comes in each gap, what is needed first first."""
        gaps: list[list[Piece]] = [[] for _ in range(len(self.choices) + 1)]
        for unit in sorted(self.taken):
            at = sum(length for _, length in self.taken[unit])
            for gap, length in self.taken[unit]:
                gaps[gap].append(Piece(unit, at - length, at))
                at -= length
        return gaps


@dataclass(frozen=True, slots=True)
class _Load:
    """A choice as numbers: cycles by the formula, and by events of units and of both buses.

    alone  by events in all, nothing being fetched beside it
    """

    own: float
    memory: float
    units: float
    constants: float
    cache: float
    filling: float
    spare: float
    alone: float


class Loads:
    """Choices as numbers to a machine's timeline, each computed once."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._known: dict[int, tuple[Choice, _Load]] = {}

    def of(self, choice: Choice | None) -> _Load | None:
        """Return what a choice has on the timeline."""
        if choice is None:
            return None
        known = self._known.get(id(choice))
        if known is None:
            known = self._known[id(choice)] = choice, self._load(choice)
        return known[1]

    def _load(self, choice: Choice) -> _Load:
        machine = self.machine
        constants, cache = choice.port(machine.constants.port), choice.port(machine.cache.port)
        main = max(choice.units, constants, cache)
        filling = EXPOSED_FILLING * (choice.fetch + choice.drain)
        spare, alone = main - constants, filling + main
        return _Load(
            own=choice.own,
            memory=choice.memory,
            units=choice.units,
            constants=constants,
            cache=cache,
            filling=filling,
            spare=spare,
            alone=alone,
        )


@dataclass(frozen=True, slots=True)
class _Basis:
    """What follows from which units are staged, before anything is fetched.

    jobs    of all units
    staged  those that got memory, the last first
    free    bytes beside each unit, less what blobs need at the least
    spare   cycles of each unit that hide a transfer
    skips   of each gap, itself or a lower one, between which no transfer is worth its latency
    """

    jobs: tuple[Job, ...]
    staged: tuple[int, ...]
    loads: list[_Load | None]
    choices: list[Choice | None]
    free: list[int]
    spare: list[float]
    skips: list[int]


@dataclass(slots=True)
class _Filling:
    """A timeline on which some blobs come, those of the last units first."""

    free: list[int]
    spare: list[float]
    skips: list[int]
    beside: list[float]
    waits: list[float]
    taken: dict[int, list[tuple[int, int]]]
    exposed: dict[int, int]
    limited: set[int]
    area: int = 0

    def copied(self) -> _Filling:
        """Return the same, to go on with in another way."""
        return _Filling(
            free=self.free.copy(),
            spare=self.spare.copy(),
            skips=self.skips.copy(),
            beside=self.beside.copy(),
            waits=self.waits.copy(),
            taken=self.taken.copy(),
            exposed=self.exposed.copy(),
            limited=self.limited.copy(),
            area=self.area,
        )

    def next_gap(self, gap: int) -> int:
        """Return the next gap, from one on downwards, that a transfer may be worth its latency in.

        It is 0 where there is none.
        """
        skips, lower = self.skips, gap
        while skips[lower] != lower:
            lower = skips[lower]
        while skips[gap] != lower:
            skips[gap], gap = lower, skips[gap]
        return lower


_Sums = tuple[float, float, float, float]
"""By the formula, by events, transfers not yet waited for, and what hides them."""


@dataclass(frozen=True, slots=True)
class Course:
    """How a plan came to be: what was given, the timeline, and before each unit the sums so far."""

    basis: _Basis
    filling: _Filling
    sums: list[_Sums]


class Fetching:
    """Plans the fetching of units' constants within the memory that is free beside each.

    byte_cycles  for a byte of a blob that is in memory a unit longer: what crosses much may find no
                 place
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        free_bytes: Sequence[int],
        loads: Loads,
        byte_cycles: float = 0.0,
    ) -> None:
        self._jobs = tuple(jobs)
        self._byte_cycles = byte_cycles
        self._free = free_bytes
        self._bus = loads.machine.constants
        self._to = loads.machine.cache
        self.plans = 0
        self._near = [loads.of(job.in_place) for job in jobs]
        self._fast = [loads.of(job.staged) for job in jobs]
        ranked = sorted(range(len(jobs)), key=lambda unit: (-jobs[unit].gain, unit))
        self._order = {unit: place for place, unit in enumerate(ranked)}
        shortest = min((job.blob_bytes for job in jobs if job.blob_bytes), default=1)
        self._least = self._least_cycles(shortest)
        self._sizes = [job.blob_bytes for job in jobs]
        self._leasts = [self._least_cycles(size) for size in self._sizes]
        self._bases: dict[frozenset[int], _Basis] = {}

    def whole(self) -> FetchPlan:
        """Return a plan that stages whatever is slower where it lies."""
        return self.plan({unit: FARTHEST for unit, job in enumerate(self._jobs) if job.gain > 0})

    def improved(self, plan: FetchPlan, units: Iterable[int]) -> FetchPlan:
        """Return the best plan with other reaches of some units, one after the other."""
        for unit in units:
            plan = min((plan, *self._others(plan, unit)), key=lambda plan_: plan_.cycles)
        return plan

    def _others(self, plan: FetchPlan, unit: int) -> Iterator[FetchPlan]:
        """Yield plans with other reaches of a unit; what comes after it is fetched alike."""
        now = plan.reaches.get(unit, 0)
        after: _Filling | None = None
        like = plan
        wider = True
        for reach in (0, *REACHES):
            if reach == now:
                wider = not reach or unit in plan.limited
                continue
            # Counted even if it is known: what is left of a budget must not hang on what is alike.
            self.plans += 1
            if not wider:
                continue
            reaches = {**plan.reaches, unit: reach}
            if not reach:
                yield self._whole(reaches)
                continue
            basis = self._basis(reaches)
            if after is None:
                after = self._begun(basis)
                self._fill(after, reaches, [later for later in basis.staged if later > unit])
            if not now and like is plan:
                other = like = self._filled(reaches, basis, after.copied(), _to(basis, unit))
            else:
                other = self._changed(like, reaches, basis, after.copied(), unit)
            wider = unit in other.limited
            yield other

    def _changed(
        self, like: FetchPlan, reaches: Reaches, basis: _Basis, filling: _Filling, unit: int
    ) -> FetchPlan:
        """Return a plan that has other pieces than a like one for a unit, and what that changes.

        As soon as nothing that a change has touched is left to the units before, they are alike.
        """
        course = like.course
        assert course is not None
        if course.basis is not basis and course.basis != basis:
            return self._filled(reaches, basis, filling, _to(basis, unit))
        touched = unit
        for earlier in _to(basis, unit):
            if earlier <= touched and earlier != unit:
                return self._joined(like, course, reaches, filling, earlier)
            self._fill(filling, reaches, (earlier,))
            alike = filling.taken[earlier] == like.taken[earlier]
            if (
                earlier == unit
                or not alike
                or filling.exposed.get(earlier) != like.exposed.get(earlier)
            ):
                touched = min(
                    touched, filling.taken[earlier][-1][0] - 1, like.taken[earlier][-1][0] - 1
                )
        return self._filled(reaches, basis, filling, ())

    def _joined(
        self, like: FetchPlan, course: Course, reaches: Reaches, filling: _Filling, unit: int
    ) -> FetchPlan:
        """Return a plan whose units up to one are fetched as those of a like one."""
        before = course.filling
        for earlier in _to(course.basis, unit):
            pieces = filling.taken[earlier] = like.taken[earlier]
            filling.area += self._sizes[earlier] * (earlier - max(pieces[-1][0] - 1, 0))
            if earlier in like.exposed:
                filling.exposed[earlier] = like.exposed[earlier]
            if earlier in like.limited:
                filling.limited.add(earlier)
        filling.beside[: unit + 1] = before.beside[: unit + 1]
        filling.waits[: unit + 1] = before.waits[: unit + 1]
        return self._planned(reaches, course.basis, filling, course.sums[: unit + 1])

    def plan(self, reaches: Reaches) -> FetchPlan:
        """Return when constants are fetched, and what all takes."""
        self.plans += 1
        return self._whole(reaches)

    def _whole(self, reaches: Reaches) -> FetchPlan:
        basis = self._basis(reaches)
        return self._filled(reaches, basis, self._begun(basis), basis.staged)

    def _basis(self, reaches: Reaches) -> _Basis:
        asked = frozenset(unit for unit, reach in reaches.items() if reach)
        if asked not in self._bases:
            self._bases[asked] = self._based(asked)
        return self._bases[asked]

    def _based(self, asked: frozenset[int]) -> _Basis:
        free = list(self._free)
        staged = self._reserved(asked, free)
        loads, choices = list(self._near), [job.in_place for job in self._jobs]
        for unit in staged:
            loads[unit], choices[unit] = self._fast[unit], self._jobs[unit].staged
        spare = self._spare(loads)
        skips = [0] * len(spare)
        for gap in range(1, len(spare)):
            skips[gap] = gap if spare[gap] >= self._least else skips[gap - 1]
        last_first = tuple(sorted(staged, reverse=True))
        return _Basis(
            jobs=self._jobs,
            staged=last_first,
            loads=loads,
            choices=choices,
            free=free,
            spare=spare,
            skips=skips,
        )

    def _begun(self, basis: _Basis) -> _Filling:
        none = [0.0] * len(basis.spare)
        return _Filling(
            free=basis.free.copy(),
            spare=basis.spare.copy(),
            skips=basis.skips.copy(),
            beside=none,
            waits=none.copy(),
            taken={},
            exposed={},
            limited=set(),
        )

    def _fill(self, filling: _Filling, reaches: Reaches, units: Sequence[int]) -> None:
        """Let the blobs of some units come, those of the last units first."""
        beside, waits = filling.beside, filling.waits
        for unit in units:
            pieces = filling.taken[unit] = self._taken(unit, reaches[unit], filling)
            for gap, length in pieces:
                beside[gap] += length
                waits[gap] += self._transfer(length)

    def _filled(
        self, reaches: Reaches, basis: _Basis, filling: _Filling, units: Sequence[int]
    ) -> FetchPlan:
        """Return a plan once the blobs of the last units that are left have come."""
        self._fill(filling, reaches, units)
        return self._planned(reaches, basis, filling, [(0.0, filling.waits[0], 0.0, 0.0)])

    def _planned(
        self, reaches: Reaches, basis: _Basis, filling: _Filling, sums: list[_Sums]
    ) -> FetchPlan:
        """Return a plan of a timeline; `sums` are those before the first units."""
        self._measure(basis.loads, filling, sums)
        by_formula, by_events, _, _ = sums[-1]
        return FetchPlan(
            reaches=reaches,
            choices=basis.choices,
            taken=filling.taken,
            exposed=filling.exposed,
            limited=filling.limited,
            offsets={},
            by_formula=by_formula,
            by_events=by_events,
            area=filling.area,
            byte_cycles=self._byte_cycles,
            course=Course(basis, filling, sums),
        )

    def _reserved(self, units: Iterable[int], free: list[int]) -> set[int]:
        """Take the memory that blobs need at the least, and return those that got it."""
        granted: set[int] = set()
        for unit in sorted(units, key=self._order.__getitem__):
            size, least = self._jobs[unit].blob_bytes, max(0, unit - 1)
            if free[least] >= size and free[unit] >= size:
                granted.add(unit)
                free[unit] -= size
                if least != unit:
                    free[least] -= size
        return granted

    def _spare(self, loads: list[_Load | None]) -> list[float]:
        """Return the cycles of each unit that hide a transfer.

        Before the first unit there is none.
        """
        spare = [0.0]
        for index, load in enumerate(loads):
            if load is None:
                spare.append(0.0)
                continue
            own, last = load.own, index + 1 == len(loads)
            follows = None if last else loads[index + 1]
            if follows is not None and follows.memory > follows.own:
                own += follows.memory - follows.own
            if not last:
                own -= self._jobs[index + 1].moved_cycles
            spare.append(min(own, load.spare))
        return spare

    def _least_cycles(self, size: int) -> float:
        """Return for how long a piece of a blob of some size must run at the least."""
        return self._bus.read_latency_cycles + (
            min(LEAST_PIECE_BYTES, size) / self._bus.bytes_per_cycle
        )

    def _taken(self, unit: int, reach: int, filling: _Filling) -> list[tuple[int, int]]:
        """Return the gaps that a blob comes in, the last ones first, and take what they have."""
        size = left = self._sizes[unit]
        latency, rate = self._bus.read_latency_cycles, self._bus.bytes_per_cycle
        least = self._leasts[unit]
        free, spare, skips = filling.free, filling.spare, filling.skips
        last = max(0, unit - reach)
        above, reached = unit, False
        pieces: list[tuple[int, int]] = []
        while left:
            gap = above if skips[above] == above else filling.next_gap(above)
            gap = max(gap, last)
            if not gap:
                break
            # The blob must have room beside each unit that it crosses; beside its own it has.
            room_above = above if above < unit else unit - 1
            if gap <= room_above and min(free[gap - 1 : room_above]) < size:
                break
            if gap == last:
                reached = True
                break
            if spare[gap] >= least:
                room = int((spare[gap] - latency) * rate)
                taken = left if room >= left else room - room % GRANULE_BYTES
                pieces.append((gap, taken))
                spare[gap] -= taken / rate + latency
                left -= taken
                if spare[gap] < self._least:
                    skips[gap] = gap - 1
            above = gap - 1
        if reached:
            filling.limited.add(unit)
        return self._settled(unit, left, pieces, filling)

    def _settled(
        self, unit: int, left: int, pieces: list[tuple[int, int]], filling: _Filling
    ) -> list[tuple[int, int]]:
        """Return the pieces of a blob with what is left of it, and take the memory of all."""
        if left:
            # What finds no place is waited for, with the last piece.
            filling.exposed[unit] = left
            taken = pieces.pop(0)[1] if pieces and pieces[0][0] == unit else 0
            pieces.insert(0, (unit, taken + left))
        start, size, free = max(pieces[-1][0] - 1, 0), self._sizes[unit], filling.free
        filling.area += size * (unit - start)
        if start < unit - 1:
            free[start : unit - 1] = [left_over - size for left_over in free[start : unit - 1]]
        return pieces

    def _measure(self, loads: list[_Load | None], filling: _Filling, sums: list[_Sums]) -> None:
        """Append the sums after each unit that has none yet."""
        rate, cache_rate = self._bus.bytes_per_cycle, self._to.bytes_per_cycle
        beside, waits = filling.beside, filling.waits
        by_formula, by_events, pending, slack = sums[-1]
        for index in range(len(sums) - 1, len(loads)):
            load, moved_cycles = loads[index], self._jobs[index].moved_cycles
            pending += moved_cycles + waits[index]
            if load is None:
                by_events += moved_cycles
                sums.append((by_formula, by_events, pending, slack))
                continue
            own = (load.own + pending - slack if pending > slack else load.own) // 1
            by_formula += own if own >= load.memory else load.memory
            moved = beside[index + 1]
            if moved:
                by_events += load.filling + max(
                    load.units, load.constants + moved / rate, load.cache + moved / cache_rate
                )
            else:
                by_events += load.alone
            pending, slack = 0.0, load.own
            sums.append((by_formula, by_events, pending, slack))

    def _transfer(self, length: int) -> float:
        """Return the cycles of a transfer by Vela's formula."""
        read = self._bus.read_latency_cycles + length / self._bus.bytes_per_cycle
        write = self._to.write_latency_cycles + length / self._to.bytes_per_cycle
        return read if read > write else write


def _to(basis: _Basis, unit: int) -> tuple[int, ...]:
    """Return the staged units up to one, the last first."""
    return tuple(staged for staged in basis.staged if staged <= unit)
