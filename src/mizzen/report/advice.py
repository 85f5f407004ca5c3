"""Advice: a change that was tried, and what it brings."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """What an inference takes, and the memory that it needs."""

    cycles: int
    sram_bytes: int
    flash_bytes: int


@dataclass(frozen=True, slots=True)
class Advice:
    """A change of a network or of options that makes an inference cheaper: it was compiled.

    what           in words: ``--memory-mode Sram_Only``, ``56 output channels instead of 60``
    layer          the operator of the model that it is about; None for the whole network
    before, after  of that layer by itself, or of the whole network
    """

    what: str
    layer: int | None
    kind: str
    before: Measured
    after: Measured

    @property
    def saved_cycles(self) -> int:
        """Cycles of an inference that it saves."""
        return self.before.cycles - self.after.cycles

    @property
    def text(self) -> str:
        """What to do, and what it brought when it was tried."""
        percent = 100 * self.saved_cycles / max(self.before.cycles, 1)
        alone = "" if self.layer is None else " by itself"
        parts = [
            f"{self.what}: {self.after.cycles:,} cycles{alone} instead of "
            f"{self.before.cycles:,} ({percent:.0f} % fewer)"
        ]
        for name, now, then in (
            ("SRAM", self.after.sram_bytes, self.before.sram_bytes),
            ("flash", self.after.flash_bytes, self.before.flash_bytes),
        ):
            if self.layer is None and now != then:
                parts.append(f"{now:,} bytes of {name} instead of {then:,}")
        return ", ".join(parts)

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data."""
        return {**asdict(self), "saved_cycles": self.saved_cycles, "text": self.text}
