"""The suite: which networks there are.

Every operator that Vela's report of supported operators names for TFLite, on all architectures, in
the types that it has there. A case is a name and a function that builds the file, the same one
every time, so that a verdict can be repeated by name. Cases must not know who compiles them or what
is expected: that is for oracles.
"""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.conformance.cases import elementwise_cases, movement_cases, window_cases
from mizzen.conformance.networks import Case
from mizzen.diagnostics import did_you_mean, fail


def cases() -> list[Case]:
    """Every network of the suite."""
    return [
        *window_cases.rows(),
        *elementwise_cases.rows(),
        *movement_cases.rows(),
        *elementwise_cases.logic(),
    ]


def selected(operators: Sequence[str], types: Sequence[str]) -> list[Case]:
    """Return the cases of these operators and types; none named means every one.

    E720 for an operator or type that the suite does not have.
    """
    every = cases()
    _require("operator", operators, {case.operator for case in every})
    _require("type", types, {case.dtype for case in every})
    return [
        case
        for case in every
        if (not operators or case.operator in operators) and (not types or case.dtype in types)
    ]


def _require(what: str, names: Sequence[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise fail(
                "E720",
                f"the {what} must be one that the suite has networks for, not {name!r}",
                help=did_you_mean(name, sorted(known)) or f"it has {', '.join(sorted(known))}",
            )
