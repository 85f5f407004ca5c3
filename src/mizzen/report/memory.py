"""What an artifact keeps in which memory, and when: per tensor, from its first use to its last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Use(Enum):
    """What lies in memory."""

    INPUT = "input"
    OUTPUT = "output"
    FEATURE_MAP = "feature map"
    """Between operators; what only the compiler knows by an address is one as well."""
    STATE = "state"
    """Kept from one inference to the next."""
    BUFFER = "weight buffer"
    """Constants that were copied to faster memory."""
    CPU = "CPU tensor"
    CONSTANTS = "constants"
    """Weights, scales, tables, command streams: read-only."""
    RUNTIME = "runtime"
    """What the runtime keeps for itself: interpreter, kernels, plans."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Bytes of a memory, from one operation to another.

    name         of the tensor in the user's model, or of what it is
    memory       by its name in `vela.ini`: ``Sram``, ``Dram``, ``OnChipFlash``, ``OffChipFlash``
    area         which part of the artifact's data: ``arena``, ``cache``, ``constants``, ``runtime``
    address      in the area, in bytes; None where it is not decided
    first, last  operations, by index in the cost report, from which and to which it is kept
    """

    name: str
    memory: str
    area: str
    use: Use
    address: int | None
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class AreaUse:
    """A part of the artifact's data: what it takes, and where the most of it is in use.

    used_bytes   that must be there: the end of what lies there, not what is alive
    live_bytes   alive at each operation, in their order
    peak         operation at which the most is alive
    """

    area: str
    memory: str
    used_bytes: int
    live_bytes: tuple[int, ...]
    peak: int


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Where the memory goes.

    operations   names of the operations that `first`, `last` and `peak` count
    allocations  everything that lies in memory
    areas        its parts
    arena_bytes  tensor arena that the runtime must be given, its own structures included; None
                 where no such runtime takes the artifact
    file_bytes   of the artifact's file
    """

    model: str
    operations: tuple[str, ...]
    allocations: tuple[Allocation, ...]
    areas: tuple[AreaUse, ...]
    arena_bytes: int | None
    file_bytes: int

    def _repr_html_(self) -> str | None:
        """Return the HTML that a notebook shows; None for its text."""
        from mizzen.notebook import html_of

        return html_of(self)

    @property
    def by_memory(self) -> Mapping[str, int]:
        """Bytes that each memory must have."""
        sizes: dict[str, int] = {}
        for area in self.areas:
            sizes[area.memory] = sizes.get(area.memory, 0) + area.used_bytes
        return sizes

    def alive_at(self, operation: int, memory: str) -> tuple[Allocation, ...]:
        """Return the allocations in a memory at an operation, the largest first."""
        alive = (
            allocation
            for allocation in self.allocations
            if allocation.memory == memory and allocation.first <= operation <= allocation.last
        )
        return tuple(sorted(alive, key=lambda allocation: -allocation.size_bytes))
