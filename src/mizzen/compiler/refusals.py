"""The one search for what a code generator refuses.

A code generator that stops at a network seldom says at which operator. What it does with parts of
the network shows which: a part alone, or the shortest beginning that it does not take. Who searches
says what a part is and how one is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Unit = TypeVar("Unit", bound=Hashable)
Answer = TypeVar("Answer")
Why = TypeVar("Why")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Refused:
    """What a try found to be refused, at least one, and why."""

    reasons: Mapping[Any, Any]


def settle(
    attempt: Callable[[dict[Key, Why]], Result | Refused],
    refused: dict[Key, Why],
    most_tries: int | None = None,
) -> Result | None:
    """Try without what is refused until a try finds nothing more, which `refused` then holds.

    None if so many tries were not enough.
    """
    tries = 0
    while most_tries is None or tries < most_tries:
        outcome = attempt(refused)
        if not isinstance(outcome, Refused):
            return outcome
        refused.update(outcome.reasons)
        tries += 1
    return None


@dataclass(frozen=True, slots=True)
class RefusalSearch(Generic[Unit, Answer]):
    """Finds units of a network that a code generator refuses.

    units      all of them, each after those that it needs
    compile    compiles some of them without the others: what is said if they are refused, or None
    signature  what a code generator sees of a unit that is alone; such are compiled once
    """

    units: Sequence[Unit]
    compile: Callable[[Sequence[Unit]], Answer | None]
    signature: Callable[[Unit], Hashable] = lambda unit: unit

    def alone(self, suspects: Iterable[Unit]) -> dict[Unit, Answer]:
        """Return the suspects that are refused when nothing else is there."""
        answers: dict[Hashable, Answer | None] = {}
        refused: dict[Unit, Answer] = {}
        for unit in suspects:
            key = self.signature(unit)
            if key not in answers:
                answers[key] = self.compile([unit])
            answer = answers[key]
            if answer is not None:
                refused[unit] = answer
        return refused

    def first(self, answer: Answer) -> tuple[Unit, Answer] | None:
        """Return the unit with which a beginning of the network is no longer taken, and why.

        `answer` is what was said of the whole; None if the whole is taken when tried again.
        """
        taken, refused = 0, len(self.units)
        while refused - taken > 1:
            middle = (taken + refused) // 2
            outcome = self.compile(self.units[:middle])
            if outcome is None:
                taken = middle
            else:
                refused, answer = middle, outcome
        if refused == len(self.units) and self.compile(self.units) is None:
            return None
        return self.units[refused - 1], answer
