"""The vocabulary of the rules: what is asked about, and how a row is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from mizzen.targets.ethos_n.config import Capabilities, Profile
from mizzen.targets.ethos_n.network import Operation, output_infos
from mizzen.targets.ethos_n.tensors import TensorInfo
from mizzen.targets.rules import ForEach, Found, Head, Level, Rule

O_co = TypeVar("O_co", bound=Operation, covariant=True)
O = TypeVar("O", bound=Operation)  # noqa: E741  an operation, as in the one above

BOTH = (Profile.V23_02, Profile.V25_03)
V23_02 = (Profile.V23_02,)
V25_03 = (Profile.V25_03,)


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


Measure = Callable[[Case[O]], Found]
OperationRule = Rule[Case[O]]
Step = OperationRule[O] | ForEach[Case[O]]


def rule(
    id: str,
    level: Level = Level.UNSUPPORTED,
    profiles: tuple[Profile, ...] = BOTH,
    *,
    fills: bool = False,
) -> Head:
    """Begin a row; what it must have comes with the help, and with the library's message."""
    return Head(id, on=profiles, level=level, fills=fills)


def each_input(*rules: OperationRule[O]) -> ForEach[Case[O]]:
    """Return rules tested on one input after the other; each is the only one then."""
    return ForEach(_by_input, rules)


def _by_input(case: Case[O]) -> Iterable[Case[O]]:
    return (replace(case, inputs=(info,)) for info in case.inputs)


def shape_text(info: TensorInfo) -> str:
    """Write a shape."""
    return "x".join(map(str, info.shape))
