"""The vocabulary of the rules: levels, what a rule measures, what it says where it is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from mizzen.targets.ethos_n.config import Capabilities, Profile
from mizzen.targets.ethos_n.network import Operation, output_infos
from mizzen.targets.ethos_n.tensors import TensorInfo

O_co = TypeVar("O_co", bound=Operation, covariant=True)
O_contra = TypeVar("O_contra", bound=Operation, contravariant=True)
O = TypeVar("O", bound=Operation)  # noqa: E741  an operation, as in the two above

BOTH = (Profile.V23_02, Profile.V25_03)
V23_02 = (Profile.V23_02,)
V25_03 = (Profile.V25_03,)


class Level(Enum):
    """What the library does with an operation; the value is its own word."""

    UNSUPPORTED = "Unsupported"
    """Nothing: it cannot be in a network."""
    ESTIMATE_ONLY = "EstimateOnly"
    """Its performance can be estimated; a network that has it is not compiled."""
    SUPPORTED = "Supported"
    """It is compiled, and its performance estimated."""


@dataclass(frozen=True, slots=True)
class Case(Generic[O_co]):
    """An operation that is asked about.

    expected  the output infos that it should have; None where none were given
    """

    operation: O_co
    inputs: tuple[TensorInfo, ...]
    capabilities: Capabilities
    expected: tuple[TensorInfo, ...] | None = None

    @property
    def input(self) -> TensorInfo:
        """The first input."""
        return self.inputs[0]

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What it makes of its inputs.

        For rules that stand behind those of its parameters, which may make it impossible to tell.
        """
        return output_infos(self.operation, self.inputs)


@dataclass(frozen=True, slots=True)
class Breach:
    """What was found instead.

    actual     the end of "... must have ..., and has ..."
    arguments  the numbers in the library's message
    """

    actual: str
    arguments: tuple[object, ...] = ()


Measure = Callable[[Case[O]], Breach | None]
"""Gives what breaks a rule, None where it is kept."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[O_contra]):
    """A row.

    id       its name, the same for the same rule of several operations
    level    what an operation that breaks it is; SUPPORTED for a remark
    limit    what must hold, as the end of "... must have"
    message  the library's, `%`-formatted; empty where it says nothing
    measure  finds what breaks it
    help     what to change in the network
    fills    whether the library gives the output infos to the asker once it is kept
    """

    id: str
    level: Level
    limit: str
    message: str
    measure: Callable[[Case[O_contra]], Breach | None]
    help: str
    profiles: tuple[Profile, ...] = BOTH
    fills: bool = False

    def text(self, breach: Breach) -> str:
        """Return the library's message."""
        return self.message % breach.arguments if breach.arguments else self.message


@dataclass(frozen=True, slots=True)
class EachInput(Generic[O_contra]):
    """Rules that the library tests on one input after the other; each is the only one then."""

    rules: tuple[Rule[O_contra], ...]


Step = Rule[O] | EachInput[O]


def steps_of(
    table: tuple[Step[Any], ...], case: Case[Any]
) -> Iterator[tuple[Rule[Any], Case[Any]]]:
    """Return the rules of a table in the order of the tests, and what each is about."""
    for step in table:
        if isinstance(step, Rule):
            yield step, case
        else:
            for info in case.inputs:
                part = replace(case, inputs=(info,))
                for rule in step.rules:
                    yield rule, part


def rules_of(table: tuple[Step[Any], ...]) -> tuple[Rule[Any], ...]:
    """Return the rules of a table in the order of the tests."""
    rows = (step.rules if isinstance(step, EachInput) else (step,) for step in table)
    return tuple(rule for group in rows for rule in group)


def shape_text(info: TensorInfo) -> str:
    """Write a shape."""
    return "x".join(map(str, info.shape))
