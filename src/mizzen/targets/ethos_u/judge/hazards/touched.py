"""What each operation of a stream reads and writes of the regions, in the stream's order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.targets.ethos_u.judge.hazards.intervals import Intervals
from mizzen.targets.ethos_u.judge.hazards.maps import Kind
from mizzen.targets.ethos_u.judge.hazards.operations import Access
from mizzen.targets.ethos_u.judge.hazards.stream import Wait, steps
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of

Touch = tuple[int, Intervals]
"""A region, and bytes of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """The bytes of one operation, a row for each of its maps, transfers' ends, weights, scales."""

    reads: tuple[Touch, ...]
    writes: tuple[Touch, ...]


def touched(program: Program) -> Iterator[Touched]:
    """Return the bytes that each operation touches. E5xx, E604 to E613, E677 as the checker."""
    for step in steps(program, accelerator_of(program.hardware)):
        if not isinstance(step, Wait):
            yield Touched(tuple(_rows(step.reads)), tuple(_rows(step.writes)))


def _rows(accesses: tuple[Access, ...]) -> Iterator[Touch]:
    for access in accesses:
        if access.place.kind is Kind.REGION:
            yield access.place.index, access.bytes.intervals
