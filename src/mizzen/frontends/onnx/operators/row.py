"""What a row of the registry says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ONNX = ""
"""The domain of ONNX's own operators."""

MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's operators."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why an operator has no lowering; ``{kind}`` in the reason is the operator's type."""

    reason: str
    help: str | None = None


CPU = "ONNX Runtime computes it on the CPU; use operators that the support list names"

Form = str | Missing
"""A lowering, ``module:function`` below `mizzen.frontends.onnx.lowering`, or why it has none."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A type of operator.

    kind    as files have it: ``Conv``
    form    its lowering to integers
    since   version of its domain that has it first
    domain  empty for ONNX's own
    """

    kind: str
    form: Form
    since: int = 1
    domain: str = ONNX


def each(kinds: str, form: Form, since: int = 1, domain: str = ONNX) -> Iterator[Operator]:
    """Return a row for each of some types, separated by spaces, that one function lowers."""
    for kind in kinds.split():
        yield Operator(kind, form, since, domain)


def missing(why: str, help: str | None = CPU) -> Missing:
    """Say why an operator has no form on integers."""
    return Missing(f"there is no TOSA form of {{kind}} here: {why}", help)
