"""When constants are fetched: which units have theirs staged, and behind which units they come.

A transfer is free if it fits behind the unit that it runs beside: by Vela's formula behind that
unit's cycles, by events behind what its constants' bus has to spare. A blob comes in pieces, each
behind one unit, as late as can be, because until it is read it takes memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mizzen.targets.ethos_u.schedule.choices import SHOWN_OF_FILLING, Choice
from mizzen.targets.ethos_u.schedule.units import GRANULE_BYTES
from mizzen.targets.ethos_u.timing.machine import Machine

LEAST_PIECE_BYTES = 256
"""A piece that is shorter is not worth its latency."""
FARTHEST = 1 << 16
REACHES = (1, 2, 3, 5, 9, FARTHEST)
"""Units before its own that a blob may begin to come beside."""
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
class Plan:
    """What is fetched when.

    reaches  that were asked for
    choices  of each unit
    taken    of each staged unit, gaps and the bytes that come in them, the last bytes first; gap 0
             is before all, and each other one behind a unit
    exposed  of each staged unit, the bytes that are waited for
    offsets  of staged blobs in memory, once there are addresses
    area     bytes of blobs, each times the units that it is in memory before its own, and what
             one of them is worth
    """

    reaches: Reaches
    choices: list[Choice | None]
    taken: dict[int, list[tuple[int, int]]]
    exposed: dict[int, int]
    offsets: dict[int, int]
    by_formula: float = 0.0
    by_events: float = 0.0
    area: int = 0
    byte_cycles: float = 0.0

    @property
    def cycles(self) -> float:
        """What is to be as small as can be."""
        return self.by_formula + self.by_events + self.byte_cycles * self.area

    def start(self, unit: int) -> int:
        """Return the unit beside which a staged blob begins to come."""
        return max(0, self.taken[unit][-1][0] - 1)

    def gaps(self) -> list[list[Piece]]:
        """Return what comes in each gap, what is needed first first."""
        found: list[list[Piece]] = [[] for _ in range(len(self.choices) + 1)]
        for unit in sorted(self.taken):
            at = sum(length for _, length in self.taken[unit])
            for gap, length in self.taken[unit]:
                found[gap].append(Piece(unit, at - length, at))
                at -= length
        return found


@dataclass(frozen=True, slots=True)
class _Load:
    """A choice as numbers: cycles by the formula, and by events of units and of both buses."""

    own: float
    memory: float
    units: float
    constants: float
    cache: float
    filling: float
    spare: float


class Fetching:
    """Plans the fetching of units' constants within the memory that is free beside each.

    byte_cycles  for a byte of a blob that is in memory a unit longer: what crosses much may find no
                 place
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        free_bytes: Sequence[int],
        machine: Machine,
        byte_cycles: float = 0.0,
    ) -> None:
        self._jobs = jobs
        self._byte_cycles = byte_cycles
        self._free = free_bytes
        self._bus = machine.constants
        self._to = machine.cache
        self.plans = 0
        self._near_choices = [job.in_place for job in jobs]
        self._near = [self._load(job.in_place) for job in jobs]
        self._fast = [self._load(job.staged) for job in jobs]
        rows = sorted(range(len(jobs)), key=lambda row: (-jobs[row].gain, row))
        self._order = {unit: place for place, unit in enumerate(rows)}

    def whole(self) -> Plan:
        """Return a plan that stages whatever is slower where it lies."""
        return self.plan({row: FARTHEST for row, job in enumerate(self._jobs) if job.gain > 0})

    def improved(self, plan: Plan, units: Iterable[int]) -> Plan:
        """Return the best plan with other reaches of some units, one after the other."""
        for unit in units:
            now = plan.reaches.get(unit, 0)
            trials = [
                self.plan({**plan.reaches, unit: reach}) for reach in (0, *REACHES) if reach != now
            ]
            plan = min((plan, *trials), key=lambda row: row.cycles)
        return plan

    def plan(self, reaches: Reaches) -> Plan:
        """Return when constants are fetched, and what all takes."""
        self.plans += 1
        free = list(self._free)
        staged = self._reserved([unit for unit, reach in reaches.items() if reach], free)
        loads, choices = list(self._near), list(self._near_choices)
        for unit in staged:
            loads[unit], choices[unit] = self._fast[unit], self._jobs[unit].staged
        spare = self._spare(loads)
        beside = [0.0] * len(spare)
        waits = [0.0] * len(spare)
        found = Plan(reaches, choices, {}, {}, {}, byte_cycles=self._byte_cycles)
        for unit in sorted(staged, reverse=True):
            rows = found.taken[unit] = self._taken(unit, found, spare, free)
            for gap, length in rows:
                beside[gap] += length
                waits[gap] += self._transfer(length)
        self._measure(found, loads, beside, waits)
        return found

    def _load(self, choice: Choice | None) -> _Load | None:
        if choice is None:
            return None
        constants, cache = choice.port(self._bus.port), choice.port(self._to.port)
        main = max(choice.units, constants, cache)
        filling = SHOWN_OF_FILLING * (choice.fetch + choice.drain)
        return _Load(
            choice.own, choice.memory, choice.units, constants, cache, filling, main - constants
        )

    def _reserved(self, units: list[int], free: list[int]) -> set[int]:
        """Take the memory that blobs need at the least, and return those that got it."""
        found: set[int] = set()
        for unit in sorted(units, key=self._order.__getitem__):
            size, least = self._jobs[unit].blob_bytes, max(0, unit - 1)
            if free[least] >= size and free[unit] >= size:
                found.add(unit)
                free[unit] -= size
                if least != unit:
                    free[least] -= size
        return found

    def _spare(self, loads: list[_Load | None]) -> list[float]:
        """Return for how many cycles a transfer may run behind each unit for nothing.

        Before all there is nothing to run behind.
        """
        found = [0.0]
        for index, load in enumerate(loads):
            if load is None:
                found.append(0.0)
                continue
            own, last = load.own, index + 1 == len(loads)
            follows = None if last else loads[index + 1]
            if follows is not None and follows.memory > follows.own:
                own += follows.memory - follows.own
            if not last:
                own -= self._jobs[index + 1].moved_cycles
            found.append(min(own, load.spare))
        return found

    def _taken(
        self, unit: int, plan: Plan, spare: list[float], free: list[int]
    ) -> list[tuple[int, int]]:
        """Return the gaps that a blob comes in, the last ones first, and take what they have."""
        size = left = self._jobs[unit].blob_bytes
        latency, rate = self._bus.read_latency_cycles, self._bus.bytes_per_cycle
        least = latency + min(LEAST_PIECE_BYTES, size) / rate
        gap, last = unit, max(0, unit - plan.reaches[unit])
        pieces: list[tuple[int, int]] = []
        while left and gap > last and (gap == unit or free[gap - 1] >= size):
            if spare[gap] >= least:
                room = int((spare[gap] - latency) * rate)
                taken = left if room >= left else room - room % GRANULE_BYTES
                pieces.append((gap, taken))
                spare[gap] -= taken / rate + latency
                left -= taken
            gap -= 1
        if left:
            # What finds no place is waited for, with the last piece.
            plan.exposed[unit] = left
            taken = pieces.pop(0)[1] if pieces and pieces[0][0] == unit else 0
            pieces.insert(0, (unit, taken + left))
        start = max(pieces[-1][0] - 1, 0)
        plan.area += size * (unit - start)
        for row in range(start, unit - 1):
            free[row] -= size
        return pieces

    def _measure(
        self,
        plan: Plan,
        loads: list[_Load | None],
        beside: list[float],
        waits: list[float],
    ) -> None:
        """Set both models' cycles of a plan.

        beside, waits  of each gap, the bytes that come in it and their cycles by the formula
        """
        rate, cache_rate = self._bus.bytes_per_cycle, self._to.bytes_per_cycle
        by_formula = pending = slack = 0.0
        by_events = waits[0]
        for index, load in enumerate(loads):
            copied = self._jobs[index].moved_cycles
            pending += copied + waits[index]
            if load is None:
                by_events += copied
                continue
            own = load.own + pending - slack if pending > slack else load.own
            by_formula += max(own // 1, load.memory)
            moved = beside[index + 1]
            by_events += load.filling + max(
                load.units, load.constants + moved / rate, load.cache + moved / cache_rate
            )
            pending, slack = 0.0, load.own
        plan.by_formula, plan.by_events = by_formula, by_events

    def _transfer(self, length: int) -> float:
        """Return the cycles of a transfer by Vela's formula."""
        read = self._bus.read_latency_cycles + length / self._bus.bytes_per_cycle
        write = self._to.write_latency_cycles + length / self._to.bytes_per_cycle
        return read if read > write else write
