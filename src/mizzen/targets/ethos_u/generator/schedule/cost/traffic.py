"""Where what an operation reads and writes lies, as far as it matters for its cost."""

from __future__ import annotations

from dataclasses import dataclass

from mizzen.targets.ethos_u.judge.timing.machine import Bus


@dataclass(frozen=True, slots=True)
class Stored:
    """A map in memory.

    shape          height, width, depth
    element_bytes  of an element
    bricks         whether it is NHCWB16
    stride_x       bytes between columns
    """

    bus: Bus
    shape: tuple[int, int, int]
    element_bytes: int
    bricks: bool
    stride_x: int


@dataclass(frozen=True, slots=True)
class Constants:
    """Weights and scale records: the bytes of each stream, and where they are read."""

    bus: Bus
    streams_bytes: tuple[int, ...]

    @property
    def bytes_(self) -> int:
        """Bytes of all streams."""
        return sum(self.streams_bytes)


@dataclass(frozen=True, slots=True)
class Traffic:
    """All that an operation moves."""

    reads: tuple[Stored, ...]
    write: Stored
    constants: Constants | None = None
