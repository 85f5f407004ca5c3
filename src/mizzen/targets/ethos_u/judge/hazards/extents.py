"""How far into each region a stream reaches: the memory that it needs where nobody says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mizzen.targets.ethos_u.judge.hazards.maps import Kind
from mizzen.targets.ethos_u.judge.hazards.stream import Wait, steps
from mizzen.targets.ethos_u.machine.program import Program, accelerator_of


@dataclass(frozen=True, slots=True)
class Extent:
    """One past the highest byte of a region that is read, and that is written; 0 for none."""

    read: int = 0
    written: int = 0

    @property
    def size_bytes(self) -> int:
        """The least size of the region."""
        return max(self.read, self.written)


def extents(program: Program) -> Mapping[int, Extent]:
    """Return what a stream touches, by region; sizes that the program declares do not matter.

    Raises as `mizzen.targets.ethos_u.judge.hazards.find_hazards`.
    """
    ends: dict[int, list[int]] = {}
    for step in steps(program, accelerator_of(program.hardware)):
        if isinstance(step, Wait):
            continue
        for side, accesses in enumerate((step.reads, step.writes)):
            for access in accesses:
                if access.place.kind is Kind.REGION:
                    held = ends.setdefault(access.place.index, [0, 0])
                    held[side] = max(held[side], access.bytes.end)
    return {region: Extent(read, written) for region, (read, written) in sorted(ends.items())}
