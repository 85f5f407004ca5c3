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
    """Weights and scale records: the bytes of each stream, and where they are read.

    fast  whether weights are in U85's fast format
    """

    bus: Bus
    weights: tuple[int, ...]
    scales: tuple[int, ...]
    fast: bool = False

    @property
    def bytes_(self) -> int:
        """Bytes of all streams."""
        return sum(self.weights) + sum(self.scales)


@dataclass(frozen=True, slots=True)
class Traffic:
    """All that an operation moves; nothing is written by what hands its result on in a chain."""

    reads: tuple[Stored, ...]
    write: Stored | None
    constants: Constants | None = None

    @property
    def fast(self) -> bool:
        """Whether weights are in U85's fast format."""
        return self.constants is not None and self.constants.fast
