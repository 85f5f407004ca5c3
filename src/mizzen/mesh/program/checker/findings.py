"""What a checker finds, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mizzen.mesh.network.boxes import Box


class Rule(Enum):
    """What a program must keep to; the value is how reports call it."""

    STRUCTURE = "structure"
    ELEMENTS = "elements"
    CAPACITY = "capacity"
    OVERLAP = "overlap"
    REGIONS = "regions"
    OPERANDS = "operands"
    LAYERS = "layers"
    MESSAGES = "messages"
    ROUTES = "routes"
    OUTPUTS = "outputs"
    WAITING = "waiting"
    ACCUMULATORS = "accumulators"
    COSTS = "costs"


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that a program breaks: where, what must hold there, what came instead."""

    rule: Rule
    place: str
    must: str
    came: str

    def __str__(self) -> str:
        return f"{self.place}: {self.must}, {self.came}"


def shown(box: Box | None) -> str:
    """Return ``[0:1, 4:8]`` of a box."""
    if box is None:
        return "no box"
    return f"[{', '.join(f'{start}:{stop}' for start, stop in box)}]"
