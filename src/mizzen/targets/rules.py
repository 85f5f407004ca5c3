"""The one engine of the tables that say what an NPU may be given.

A target says what it takes in rows: what must hold, how to measure it, what to change, where it is
written. A row stands on the function that measures it, so that limit and measure are read together.
Placement, `mizzen check`, `mizzen targets` and the documentation's pages all read the same rows: a
limit is written once, and what explains a refusal cannot differ from what decided it.

The engine tests rows in their order, and tells a broken one as a `Reason`. It knows no operator, no
network and no NPU: each table brings its own subject, and the NPUs or releases that rows hold for
are whatever members of an enumeration the table names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Generic, TypeVar

from mizzen.diagnostics import Reason

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)

NO_FORM = "no-form"
"""The rule that an operation breaks which an NPU has no form of."""

SENTENCE = "{kind} must have {limit}, and has {actual}"
"""How a broken rule is told; a table may have its own sentence, with `{on}` too."""


class Level(Enum):
    """What becomes of an operation that breaks a rule; the value is the Ethos-N library's word."""

    UNSUPPORTED = "Unsupported"
    """Nothing: it cannot be in a network."""
    ESTIMATE_ONLY = "EstimateOnly"
    """Its performance can be estimated; a network that has it is not compiled."""
    SUPPORTED = "Supported"
    """It is compiled all the same: the rule is a remark."""


@dataclass(frozen=True, slots=True)
class Breach:
    """What was found instead.

    actual     the end of "... must have ..., and has ..."
    arguments  the numbers in the rule's message
    """

    actual: str
    arguments: tuple[object, ...] = ()


Found = Breach | str | None
"""What a measure finds: the actual value where a rule is broken, None where it is kept."""

Measure = Callable[[S], Found]


@dataclass(frozen=True, slots=True)
class Rule(Generic[S_contra]):
    """A row.

    id       its name, the same for the same rule of several operations
    limit    what must hold, as the end of "... must have"
    measure  finds the actual value that breaks it, as the end of "... has"
    help     what to change in the network
    source   where it is written; empty where the table says so for all
    kinds    the operations that it is about; empty for those in whose lists it stands
    on       the NPUs or releases that it holds for
    level    what an operation that breaks it is
    message  the vendor's words for it, `%`-formatted; empty where there are none
    fills    whether the vendor's library gives the output infos to the asker once it is kept
    """

    id: str
    limit: str
    measure: Callable[[S_contra], Found]
    help: str
    source: str = ""
    kinds: frozenset[str] = frozenset()
    on: tuple[Enum, ...] = ()
    level: Level = Level.UNSUPPORTED
    message: str = ""
    fills: bool = False

    def breach(self, subject: S_contra) -> Breach | None:
        """Return how a subject breaks the rule, if it does."""
        answer = self.measure(subject)
        return Breach(answer) if isinstance(answer, str) else answer

    def text(self, breach: Breach) -> str:
        """Return the vendor's message."""
        return self.message % breach.arguments if breach.arguments else self.message

    def reason(
        self, breach: Breach, kind: str, *, sentence: str = SENTENCE, on: str = "", source: str = ""
    ) -> Reason:
        """Tell a breach by an operation of some kind, with where the rule is written."""
        parts = {"kind": kind, "limit": self.limit, "actual": breach.actual, "on": on}
        message = sentence.format_map(parts)
        return Reason(self.id, message, self.limit, breach.actual, self.help, self.source or source)


@dataclass(frozen=True, slots=True)
class Head:
    """The first half of a row; fields are those of `Rule`.

    Written on the function that measures: `@rule("id", ...).must_have("a limit", "a help")`.
    """

    id: str
    source: str = ""
    kinds: frozenset[str] = frozenset()
    on: tuple[Enum, ...] = ()
    level: Level = Level.UNSUPPORTED
    fills: bool = False

    def must_have(
        self, limit: str, help: str, message: str = ""
    ) -> Callable[[Callable[[S], Found]], Rule[S]]:
        """Return a decorator that makes the rule of its measure."""

        def made(measure: Callable[[S], Found]) -> Rule[S]:
            entry = (self.source, self.kinds, self.on, self.level, message, self.fills)
            return Rule(self.id, limit, measure, help, *entry)

        return made


@dataclass(frozen=True, slots=True)
class ForEach(Generic[S_contra]):
    """Rules that are tested together on one part of a subject after the other."""

    parts: Callable[[Any], Iterable[Any]]
    rules: tuple[Rule[S_contra], ...]


Step = Rule[S] | ForEach[S]


def judged(steps: Iterable[Step[S]], subject: S) -> Iterator[tuple[Rule[S], Breach | None]]:
    """Return each rule with its breach, in the order of the tests."""
    for step in steps:
        if isinstance(step, Rule):
            yield step, step.breach(subject)
        else:
            for part in step.parts(subject):
                for rule in step.rules:
                    yield rule, rule.breach(part)


def rules_of(steps: Iterable[Step[S]]) -> tuple[Rule[S], ...]:
    """Return the rules of a list in the order of the tests."""
    groups = ((step,) if isinstance(step, Rule) else step.rules for step in steps)
    return tuple(rule for group in groups for rule in group)


@dataclass(frozen=True)
class Table(Generic[S]):
    """Rules that name the operations that they are about, in the order in which breaches are told.

    sentence  how they are told
    """

    rules: tuple[Rule[S], ...]
    sentence: str = SENTENCE

    def reasons(self, subject: S, kind: str, on: Enum) -> Iterator[Reason]:
        """Return how an operation of some kind breaks the rules of an NPU."""
        for rule, breach in judged(self._rules_for(kind, on), subject):
            if breach is not None:
                yield rule.reason(breach, kind, sentence=self.sentence, on=on.value)

    def _rules_for(self, kind: str, on: Enum) -> tuple[Rule[S], ...]:
        if (kind, on) not in self._held:
            rules = (rule for rule in self.rules if kind in rule.kinds and on in rule.on)
            self._held[kind, on] = tuple(rules)
        return self._held[kind, on]

    @cached_property
    def _held(self) -> dict[tuple[str, Enum], tuple[Rule[S], ...]]:
        """The rules of each kind and NPU that was asked about: compilers ask for all operations."""
        return {}


def no_form(kind: str, on: Enum, having: Iterable[Enum], help: str, source: str) -> Reason:
    """Say that an NPU has no form of an operation, and which ones have."""
    others = " and ".join(other.value for other in having)
    elsewhere = f", but {others} has" if others else ""
    message = f"{on.value} has no form of {kind}{elsewhere}"
    return Reason(NO_FORM, message, f"an operator of {on.value}", kind, help, source)


def listed(kinds: str | frozenset[str]) -> frozenset[str]:
    """Return operations, of a list in a text or as they are."""
    return frozenset(kinds.split()) if isinstance(kinds, str) else kinds


def extents(shape: Iterable[int]) -> str:
    """Write a shape."""
    return f"[{', '.join(map(str, shape))}]"


def by(sizes: Iterable[object]) -> str:
    """Write the sizes of a window or a plane, as in 3x3."""
    return "x".join(map(str, sizes))
