"""Whose code each NPU operator of a network has, how it was made, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any


class Maker(StrEnum):
    """Whose code it is."""

    MIZZEN = "mizzen"
    VELA = "vela"


@dataclass(frozen=True, slots=True)
class Tried:
    """A way to make the code that gave none that is right: its name, and why not."""

    way: str
    why_not: str


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

    @property
    def memory_bytes(self) -> int:
        """What is written to."""
        return self.arena_bytes + self.fast_bytes


@dataclass(frozen=True, slots=True)
class CodeChoice:
    """The code of an NPU operator.

    way    how it was made; empty for Vela's
    tried  ways before it, and why their code was not taken
    """

    maker: Maker
    cost: StreamCost
    way: str = ""
    tried: tuple[Tried, ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkChoice:
    """Which of two compilations of a network was taken, what each costs, and why in words."""

    maker: Maker
    reason: str
    mizzen: StreamCost | None
    vela: StreamCost | None


def choice_of(data: dict[str, Any]) -> CodeChoice:
    """Take an operator's code out of JSON data; KeyError, TypeError or ValueError if it is none."""
    return CodeChoice(
        Maker(data["maker"]),
        _cost(data["cost"]),
        str(data["way"]),
        tuple(Tried(str(each["way"]), str(each["why_not"])) for each in data["tried"]),
    )


def network_choice_of(data: dict[str, Any] | None) -> NetworkChoice | None:
    """Take a network's choice out of JSON data; KeyError, TypeError or ValueError if it is none."""
    if data is None:
        return None
    mizzen, vela = (None if data[name] is None else _cost(data[name]) for name in Maker)
    return NetworkChoice(Maker(data["maker"]), str(data["reason"]), mizzen, vela)


def _cost(data: dict[str, Any]) -> StreamCost:
    return StreamCost(**{field.name: int(data[field.name]) for field in fields(StreamCost)})
