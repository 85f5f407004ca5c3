"""Cliffs: what a layer would cost with a few channels more or less."""

from __future__ import annotations

from dataclasses import dataclass

SAME = 1.02
"""Times the cycles that still count as the same."""
STEEP = 0.85
"""Times the cycles from which on fewer channels are worth telling of."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The layer alone, with another number of channels.

    sram_bytes   that the layer alone needs at its peak
    flash_bytes  of its constants
    """

    channels: int
    cycles: int
    sram_bytes: int
    flash_bytes: int


@dataclass(frozen=True, slots=True)
class Cliff:
    """A layer of the model, and its neighbours in one number of channels.

    index       of the operator in the model
    axis        ``output channels`` or ``input channels``
    channels    that the layer has
    neighbours  by channels, in ascending order; the layer itself is one
    """

    index: int
    kind: str
    name: str
    axis: str
    channels: int
    neighbours: tuple[Neighbour, ...]

    @property
    def own(self) -> Neighbour:
        """The layer as it is."""
        return next(
            neighbour for neighbour in self.neighbours if neighbour.channels == self.channels
        )

    @property
    def free_channels(self) -> int:
        """The most channels that take the same cycles."""
        most = SAME * self.own.cycles
        return max(neighbour.channels for neighbour in self.neighbours if neighbour.cycles <= most)

    @property
    def needs_more_sram(self) -> bool:
        """Whether so many channels need more SRAM."""
        free = next(
            neighbour for neighbour in self.neighbours if neighbour.channels == self.free_channels
        )
        return free.sram_bytes > SAME * self.own.sram_bytes

    @property
    def step_down(self) -> Neighbour | None:
        """The neighbour with most channels that costs clearly fewer cycles; None without one."""
        fewer = [
            neighbour
            for neighbour in self.neighbours
            if neighbour.channels < self.channels and neighbour.cycles <= STEEP * self.own.cycles
        ]
        return max(fewer, key=lambda neighbour: neighbour.channels, default=None)

    @property
    def advice(self) -> str:
        """What follows, in a sentence; empty where nothing does."""
        axis, own = self.axis, self.own
        told: list[str] = []
        if self.free_channels > self.channels:
            but = ", with less SRAM" if self.needs_more_sram else ""
            told.append(f"{self.channels} {axis} take the cycles that {self.free_channels} do{but}")
        down = self.step_down
        if down is not None and own.cycles * down.channels > down.cycles * self.channels:
            saved = 100 - round(100 * down.cycles / own.cycles)
            told.append(f"{down.channels} {axis} would take {saved} % fewer cycles")
        return "; ".join(told)

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {
            "index": self.index,
            "kind": self.kind,
            "name": self.name,
            "axis": self.axis,
            "channels": self.channels,
            "advice": self.advice,
            "neighbours": [
                {
                    "channels": neighbour.channels,
                    "cycles": neighbour.cycles,
                    "sram_bytes": neighbour.sram_bytes,
                    "flash_bytes": neighbour.flash_bytes,
                }
                for neighbour in self.neighbours
            ],
        }
