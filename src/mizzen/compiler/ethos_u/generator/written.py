"""A compiled network that says whose code it has."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mizzen.report.code import CodeChoice
from mizzen.targets.ethos_u.vela.generate import Compiled


@dataclass(frozen=True, slots=True)
class Written(Compiled):
    """A compiled network, and whose code each of its NPU operators has."""

    choices: tuple[CodeChoice, ...] = ()


def written(compiled: Compiled, choices: tuple[CodeChoice, ...]) -> Written:
    """Return a compiled network with whose code it has."""
    rows = {field.name: getattr(compiled, field.name) for field in fields(Compiled)}
    return Written(**rows, choices=choices)
