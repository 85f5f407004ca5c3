"""A compiled network that says whose code it has."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mizzen.report.code import CodeChoice
from mizzen.targets.ethos_u.vela.generate import Compiled


@dataclass(frozen=True, slots=True)
class Written(Compiled):
    """A compiled network, and whose code each of its NPU operators has."""

    choices: tuple[CodeChoice, ...] = ()


def has_own_code(compiled: Compiled) -> bool:
    """Whether some NPU operator of a network has Mizzen's own code."""
    return isinstance(compiled, Written) and any(row.is_own for row in compiled.choices)


def has_corrected_code(compiled: Compiled) -> bool:
    """Whether some NPU operator of a network has code whose numbers are not those of Vela's."""
    rows = compiled.choices if isinstance(compiled, Written) else ()
    return any(row.is_corrected for row in rows)


def written(compiled: Compiled, choices: tuple[CodeChoice, ...]) -> Written:
    """Return a compiled network with whose code it has."""
    rows = {field.name: getattr(compiled, field.name) for field in fields(Compiled)}
    return Written(**rows, choices=choices)
