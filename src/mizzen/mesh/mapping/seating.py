"""Elements for the seats of a replica."""

from __future__ import annotations

from mizzen.mesh.machine.machine import Machine
from mizzen.mesh.mapping.candidates import Candidate
from mizzen.mesh.mapping.routes import snake


def seated(machine: Machine, best: Candidate, chips: list[int], replica: int) -> list[int]:
    """Return the element of each seat of a replica, in the order of layers along each chip."""
    free = [list(elements) for elements in snake(machine)]
    kinds = machine.element_kind.tolist()
    template, sharing = best.template, best.way.sharing
    found: list[int] = []
    at: dict[tuple[int, int], int] = {}
    order = sorted(range(len(best.parts)), key=lambda seat: (template.depths[seat], seat))
    chosen = [0] * len(order)
    for seat in order:
        chip, kind = chips[best.parts[seat]], template.kinds[seat]
        of_kind = [element for element in free[chip] if kinds[element] == kind]
        first = (replica % sharing) * (len(of_kind) // sharing)
        place = at.get((chip, kind), 0)
        chosen[seat] = of_kind[first + place]
        at[chip, kind] = place + 1
    found += chosen
    return found
