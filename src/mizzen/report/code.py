"""Whose code each NPU operator of a network has, why, and what either would cost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What became of code of our own."""

    TAKEN = "taken"
    CORRECTED = "corrected"
    """It is taken because Vela's code computes something else than the reference, or would."""
    DEARER = "dearer"
    """It needs more than Vela's does, or nothing less."""
    DIFFERS = "differs"
    """It computes something else than Vela's does."""
    HAZARD = "hazard"
    STOPS = "stops"
    """It cannot be executed."""
    REFUSED = "refused"
    """There is none: operations cannot be had, or not be scheduled."""
    FAILED = "failed"
    """There is none by a mistake of Mizzen's."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Code of our own that was not taken, and why: `reason` in words."""

    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class StreamCost:
    """What a command stream costs.

    cycles          by the timing model
    vela_cycles     by Vela's formula
    arena_bytes     of feature maps, and of what is staged where that shares the arena
    fast_bytes      of a fast memory beside it; 0 without one
    constant_bytes  of weights, biases, tables
    """

    cycles: int
    vela_cycles: int
    arena_bytes: int
    fast_bytes: int
    constant_bytes: int


@dataclass(frozen=True, slots=True)
class CodeChoice:
    """Whose code an NPU operator has.

    verdict     what became of Mizzen's own; the operator has Vela's unless that was taken
    reason      for it, in words
    vela        what Vela's costs; None where Vela made none
    own         what Mizzen's costs; None where there is not any
    tried       candidates that were not taken, and why
    operations  what Mizzen's own was made of: its rules, or Vela's commands; empty without one
    """

    verdict: Verdict
    reason: str
    vela: StreamCost | None
    own: StreamCost | None = None
    tried: tuple[Rejected, ...] = ()
    operations: str = ""

    @property
    def is_own(self) -> bool:
        """Whether the operator has Mizzen's own code, not Vela's."""
        return self.verdict is Verdict.TAKEN or self.is_corrected

    @property
    def is_corrected(self) -> bool:
        """Whether Mizzen's own code gives other numbers than Vela's, or would."""
        return self.verdict is Verdict.CORRECTED

    @property
    def cost(self) -> StreamCost | None:
        """What is taken costs."""
        return self.own if self.is_own and self.own is not None else self.vela


def choice_of(data: dict[str, Any]) -> CodeChoice:
    """Take a choice out of JSON data; KeyError, TypeError or ValueError if it is not one."""
    own, vela = data["own"], data["vela"]
    return CodeChoice(
        Verdict(data["verdict"]),
        str(data["reason"]),
        None if vela is None else _cost(vela),
        None if own is None else _cost(own),
        tuple(Rejected(Verdict(each["verdict"]), str(each["reason"])) for each in data["tried"]),
        str(data["operations"]),
    )


def _cost(data: dict[str, Any]) -> StreamCost:
    return StreamCost(**{field.name: int(data[field.name]) for field in fields(StreamCost)})
