"""What of TOSA may run on the NPU: the rules, as rows, and what an operation breaks.

`reasons` is for operations as a front-end gives them: it says nothing of the order of axes, which
passes choose. `reasons_as_compiled` is for what the compiler is given.

Ref: Vela 5.2.0, ``vela --supported-ops-report``, TOSA. Its texts are neither complete nor always
right: the rows were found by compiling graphs on both sides of each limit, which the tests repeat,
and by running what was compiled.
"""

from __future__ import annotations

from mizzen.diagnostics import Reason
from mizzen.graph import Operation
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.legal.tosa_forms import (
    ARITHMETIC_RULES,
    FORM_RULES,
    LAYOUT_RULES,
    archs_with,
    replacement,
)
from mizzen.targets.ethos_u.legal.tosa_kernels import KERNEL_RULES
from mizzen.targets.ethos_u.legal.tosa_rule import CONSTANTS, SOURCE, WRONG, Rule, is_fixed
from mizzen.targets.rules import NO_FORM, Table, no_form

RULES: tuple[Rule, ...] = (*FORM_RULES, *KERNEL_RULES, *ARITHMETIC_RULES)
"""Rules that hold whatever the order of axes, in the order in which breaches are told."""

SENTENCE = "{kind} must have {limit} on {on}, and has {actual}"
TABLE, LAYOUT_TABLE = Table(RULES, SENTENCE), Table(LAYOUT_RULES, SENTENCE)

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
    """Return what keeps an operation from an architecture, whatever the order of its axes.

    Empty where it may run there. Operations on constants only are not for the NPU: they are
    computed before. CUSTOM operations have their own reasons, from whoever made them.
    """
    if operation.kind == "CUSTOM" or _is_computed_before(operation):
        return ()
    kind = operation.kind
    if arch not in archs_with(kind):
        return (no_form(kind, arch, archs_with(kind), replacement(kind), SOURCE),)
    return tuple(TABLE.reasons(operation, kind, arch))


def reasons_as_compiled(operation: Operation, arch: Arch) -> tuple[Reason, ...]:
    """Return what keeps an operation from an architecture in the order of axes that it has."""
    found = reasons(operation, arch)
    if found or _is_computed_before(operation):
        return found
    return tuple(LAYOUT_TABLE.reasons(operation, operation.kind, arch))


def defects(operation: Operation, arch: Arch) -> tuple[Reason, ...]:
    """Return the broken rules that the compiler does not know: it would compile a wrong answer."""
    return tuple(row for row in reasons_as_compiled(operation, arch) if row.source == WRONG)


def _is_computed_before(operation: Operation) -> bool:
    if operation.kind in CONSTANTS:
        return True
    return bool(operation.operands) and all(map(is_fixed, operation.operands))
