"""What of TOSA may run on the NPU: the rules, as rows, and what an operation breaks.

`reasons` is for operations as a front-end gives them: it says nothing of the order of axes, which
passes choose. `reasons_as_compiled` is for what the compiler is given.

Ref: Vela 5.2.0, ``vela --supported-ops-report``, TOSA. Its texts are neither complete nor always
right: the rows were found by compiling graphs on both sides of each limit, which the tests repeat,
and by running what was compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from mizzen.diagnostics import Reason
from mizzen.graph import Operation
from mizzen.targets.ethos_u.commands import ALL, Arch
from mizzen.targets.ethos_u.legal.tosa.arithmetic import ARITHMETIC_RULES
from mizzen.targets.ethos_u.legal.tosa.forms import FORM_RULES, archs_with, replacement
from mizzen.targets.ethos_u.legal.tosa.kernels import KERNEL_RULES
from mizzen.targets.ethos_u.legal.tosa.layout import LAYOUT_RULES
from mizzen.targets.ethos_u.legal.tosa.rule import CONSTANTS, SOURCE, WRONG, Rule, is_fixed

NO_FORM = "no-form"
"""The rule that an operation breaks which a family has no form of."""

RULES: tuple[Rule, ...] = (*FORM_RULES, *KERNEL_RULES, *ARITHMETIC_RULES)
"""Rules that hold whatever the order of axes, in the order in which breaches are told."""

__all__ = [
    "LAYOUT_RULES",
    "NO_FORM",
    "RULES",
    "Rule",
    "archs_with",
    "defects",
    "reasons",
    "reasons_as_compiled",
]


def reasons(operation: Operation, arch: Arch) -> tuple[Reason, ...]:
    """Return what keeps an operation from a family, whatever the order of its axes.

    Empty where it may run there. Operations on constants only are none for the NPU: they are
    computed before. CUSTOM operations have their own reasons, from whoever made them.
    """
    if operation.kind == "CUSTOM" or _is_computed_before(operation):
        return ()
    if arch not in archs_with(operation.kind):
        return (_no_form(operation, arch),)
    return tuple(_broken(operation, arch, _rules_for(operation.kind, arch)))


def reasons_as_compiled(operation: Operation, arch: Arch) -> tuple[Reason, ...]:
    """Return what keeps an operation from a family in the order of axes that it has."""
    found = reasons(operation, arch)
    if found or _is_computed_before(operation):
        return found
    return tuple(_broken(operation, arch, LAYOUT_RULES))


def defects(operation: Operation, arch: Arch) -> tuple[Reason, ...]:
    """Return the broken rules that the compiler does not know: it would compile a wrong answer."""
    return tuple(row for row in reasons_as_compiled(operation, arch) if row.source == WRONG)


def _is_computed_before(operation: Operation) -> bool:
    if operation.kind in CONSTANTS:
        return True
    return bool(operation.operands) and all(map(is_fixed, operation.operands))


@cache
def _rules_for(kind: str, arch: Arch) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES if kind in rule.kinds and arch in rule.archs)


def _broken(operation: Operation, arch: Arch, rules: Sequence[Rule]) -> Iterator[Reason]:
    for rule in rules:
        breach = rule.breach(operation, arch)
        if breach is not None:
            yield breach


def _no_form(operation: Operation, arch: Arch) -> Reason:
    kind = operation.kind
    others = [other.value for other in ALL if other in archs_with(kind)]
    elsewhere = f", but {' and '.join(others)} has" if others else ""
    return Reason(
        NO_FORM,
        f"{arch.value} has no form of {kind}{elsewhere}",
        f"an operator of {arch.value}",
        kind,
        replacement(kind),
        SOURCE,
    )
