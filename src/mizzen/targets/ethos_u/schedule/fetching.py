"""When constants are fetched: which units have theirs staged, and behind which units they come.

A transfer is free if it fits behind the unit that it runs beside: by Vela's formula behind that
unit's cycles, by events behind what its constants' bus has to spare. A blob comes in pieces, each
behind one unit, as late as can be, because until it is read it takes memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.targets.ethos_u.schedule.choices import SHOWN_OF_FILLING, Choice
from mizzen.targets.ethos_u.timing.machine import Machine

GRANULE_BYTES = 16
"""Of the ends of a transfer."""
LEAST_PIECE_BYTES = 256
"""A piece that is shorter is not worth its latency."""
FARTHEST = 1 << 16
REACHES = (1, 2, 3, 5, 9, FARTHEST)
"""Units before its own that a blob may begin to come beside."""
PASSES = 3
"""Reaches are looked at unit by unit, as often as this if any changed."""

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
    starts   of each staged unit, the unit behind which its first piece comes; -1 for before all
    gaps     pieces behind each unit; the first entry is before all
    """

    reaches: Reaches
    choices: list[Choice | None]
    starts: dict[int, int]
    gaps: list[list[Piece]]
    by_formula: float = 0.0
    by_events: float = 0.0

    @property
    def cycles(self) -> float:
        """What is to be as small as can be."""
        return self.by_formula + self.by_events


class Fetching:
    """Plans the fetching of units' constants within the memory that is free beside each."""

    def __init__(self, jobs: Sequence[Job], free_bytes: Sequence[int], machine: Machine) -> None:
        self._jobs = jobs
        self._free = free_bytes
        self._bus = machine.constants
        self._to = machine.cache
        gains = [
            job.in_place.cycles - job.staged.cycles if job.staged and job.in_place else 0.0
            for job in jobs
        ]
        rows = sorted(range(len(jobs)), key=lambda row: (-gains[row], row))
        self._order = {unit: place for place, unit in enumerate(rows)}

    def best(self, reaches: Reaches | None = None) -> Plan:
        """Return a plan that another reach of one unit does not make better.

        reaches  to begin with; None to stage whatever is slower where it lies
        """
        if reaches is None:
            reaches = {
                index: FARTHEST
                for index, job in enumerate(self._jobs)
                if job.staged and job.in_place and job.in_place.cycles > job.staged.cycles
            }
        found = self.plan(reaches)
        for _ in range(PASSES):
            before = found.cycles
            for index, job in enumerate(self._jobs):
                if job.staged is not None:
                    found = self.improved(found, index)
            if found.cycles >= before:
                break
        return found

    def improved(self, plan: Plan, unit: int) -> Plan:
        """Return the best plan of those with another reach of one unit."""
        found = plan
        for reach in (0, *REACHES):
            if reach != plan.reaches.get(unit, 0):
                trial = self.plan({**plan.reaches, unit: reach})
                if trial.cycles < found.cycles:
                    found = trial
        return found

    def plan(self, reaches: Reaches) -> Plan:
        """Return when constants are fetched, and what all takes."""
        free = list(self._free)
        staged = self._reserved([unit for unit, reach in reaches.items() if reach], free)
        choices = [
            job.staged if index in staged else job.in_place for index, job in enumerate(self._jobs)
        ]
        spare = [0.0, *self._spare(choices)]
        found = Plan(reaches, choices, {}, [[] for _ in range(len(choices) + 1)])
        for unit in sorted(staged, reverse=True):
            self._stage(unit, found, spare, free)
        self._measure(found)
        return found

    def _reserved(self, units: list[int], free: list[int]) -> set[int]:
        """Take the memory that blobs need at the least, and return those that got it."""
        found: set[int] = set()
        for unit in sorted(units, key=self._order.__getitem__):
            size, least = self._jobs[unit].blob_bytes, max(0, unit - 1)
            if min(free[least : unit + 1]) >= size:
                found.add(unit)
                for row in range(least, unit + 1):
                    free[row] -= size
        return found

    def _spare(self, choices: list[Choice | None]) -> list[float]:
        """Return for how many cycles a transfer may run behind each unit for nothing."""
        found: list[float] = []
        for index, choice in enumerate(choices):
            if choice is None:
                found.append(0.0)
                continue
            follows = choices[index + 1] if index + 1 < len(choices) else None
            waits = max(0.0, follows.memory - follows.own) if follows else 0.0
            by_formula = choice.own + waits
            main = max([choice.units, *(cycles for _, cycles in choice.ports)])
            found.append(min(by_formula, main - choice.port(self._bus.port)))
        for index, job in enumerate(self._jobs[1:]):
            found[index] -= job.moved_cycles
        return found

    def _stage(self, unit: int, plan: Plan, spare: list[float], free: list[int]) -> None:
        """Find pieces of a blob, the last ones first."""
        size = self._jobs[unit].blob_bytes
        latency, rate = self._bus.read_latency_cycles, self._bus.bytes_per_cycle
        left, gap = size, unit
        pieces: list[tuple[int, int]] = []
        last = max(0, unit - plan.reaches[unit])
        while left and gap > last and (gap == unit or free[gap - 1] >= size):
            room = int((spare[gap] - latency) * rate) // GRANULE_BYTES * GRANULE_BYTES
            taken = min(left, room)
            if taken >= min(left, LEAST_PIECE_BYTES):
                pieces.append((gap, taken))
                left -= taken
            gap -= 1
        if left:
            # What finds no place is waited for, with the last piece.
            taken = pieces.pop(0)[1] if pieces and pieces[0][0] == unit else 0
            pieces.insert(0, (unit, taken + left))
        at = size
        for gap, taken in pieces:
            plan.gaps[gap].insert(0, Piece(unit, at - taken, at))
            spare[gap] -= taken / rate + latency
            at -= taken
        plan.starts[unit] = min(gap for gap, _ in pieces) - 1
        for row in range(max(plan.starts[unit], 0), unit - 1):
            free[row] -= size

    def _measure(self, plan: Plan) -> None:
        """Set both models' cycles of a plan."""
        by_formula = pending = slack = 0.0
        by_events = sum(map(self._transfer, plan.gaps[0]))
        for index, (job, choice) in enumerate(zip(self._jobs, plan.choices, strict=True)):
            pending += job.moved_cycles + sum(map(self._transfer, plan.gaps[index]))
            if choice is None:
                by_events += job.moved_cycles
                continue
            exposed = max(0.0, pending - slack)
            by_formula += max(float(int(choice.own + exposed)), choice.memory)
            by_events += self._by_events(choice, plan.gaps[index + 1])
            pending, slack = 0.0, choice.own
        plan.by_formula, plan.by_events = by_formula, by_events

    def _by_events(self, choice: Choice, beside: list[Piece]) -> float:
        ports = dict(choice.ports)
        moved = sum(piece.stop - piece.start for piece in beside)
        for bus in (self._bus, self._to):
            ports[bus.port] = ports.get(bus.port, 0.0) + moved / bus.bytes_per_cycle
        main = max([choice.units, *ports.values()])
        return main + SHOWN_OF_FILLING * (choice.fetch + choice.drain)

    def _transfer(self, piece: Piece) -> float:
        length = piece.stop - piece.start
        return max(
            self._bus.read_latency_cycles + length / self._bus.bytes_per_cycle,
            self._to.write_latency_cycles + length / self._to.bytes_per_cycle,
        )
