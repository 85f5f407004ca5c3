"""Whose code each NPU operator of a network has, why, and what either would cost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


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

    is_own  whether it is Mizzen's own, not Vela's
    reason  in words
    own     what Mizzen's costs; None where there is not any
    vela    what Vela's costs
    tried   other candidates, and why they were not taken
    operations  what Mizzen's own was made of: its rules, or Vela's words; empty without one
    """

    is_own: bool
    reason: str
    vela: StreamCost
    own: StreamCost | None = None
    tried: tuple[str, ...] = ()
    operations: str = ""

    @property
    def cost(self) -> StreamCost:
        """What is taken costs."""
        return self.own if self.is_own and self.own is not None else self.vela


def choice_of(row: dict[str, Any]) -> CodeChoice:
    """Take a choice out of JSON data; KeyError or TypeError if it is not one."""
    own = row["own"]
    if type(row["is_own"]) is not bool:
        raise TypeError(f"{row['is_own']!r} is no bool")
    return CodeChoice(
        row["is_own"],
        str(row["reason"]),
        _cost(row["vela"]),
        None if own is None else _cost(own),
        tuple(map(str, row["tried"])),
        str(row["operations"]),
    )


def _cost(row: dict[str, Any]) -> StreamCost:
    return StreamCost(**{field.name: int(row[field.name]) for field in fields(StreamCost)})
