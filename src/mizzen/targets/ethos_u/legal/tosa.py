"""What of a TOSA graph may run on the NPU, operation by operation.

The compiler's own verdict decides the placement; the rules say beforehand, with a limit and an
actual value, what it will refuse, and keep from it what it compiles wrongly. Where no rule fires,
the compiler's words stand.

Ref: Vela 5.2.0, `vela --supported-ops-report`, TOSA. The core takes more than that says, and at
places less: limits are where networks on both sides of each were told apart, as the tests repeat.
"""

from __future__ import annotations

from collections.abc import Iterable

from mizzen.graph import Operation
from mizzen.targets.ethos_u.commands import Arch
from mizzen.targets.ethos_u.legal.rule import ALL, Breach
from mizzen.targets.ethos_u.legal.tosa_kernels import KERNEL_RULES
from mizzen.targets.ethos_u.legal.tosa_others import OTHER_RULES
from mizzen.targets.ethos_u.legal.tosa_rule import OPERATIONS, REPORT, Judged, TosaRule, is_fixed

NO_FORM = "no-form"
"""The rule that an operation breaks which the NPU has no form of."""

RULES: tuple[TosaRule, ...] = (*KERNEL_RULES, *OTHER_RULES)
"""Every rule, in the order in which breaches are told."""

REPLACEMENTS = {
    "EQUAL": "compare outside of the network",
    "GATHER": "with constant indices: slices and cat()",
    "GREATER": "compare outside of the network, or use maximum() and minimum()",
    "GREATER_EQUAL": "compare outside of the network, or use maximum() and minimum()",
    "INTDIV": "multiply by the reciprocal",
    "SELECT": "with a constant mask: multiply by it and add; else use maximum() and minimum()",
}
"""What to write instead of an operation that the NPU has no form of."""

_Table = dict[tuple[Arch, str], tuple[TosaRule, ...]]


def _table(rules: Iterable[TosaRule]) -> _Table:
    rows = tuple(rules)
    return {
        (arch, kind): tuple(rule for rule in rows if kind in rule.operations and arch in rule.archs)
        for kind, archs in OPERATIONS.items()
        for arch in archs
    }


_LAID_OUT = _table(RULES)
_ANYWHERE = _table(rule for rule in RULES if rule.judged is Judged.ANYWHERE)


def reasons(operation: Operation, arch: Arch) -> tuple[Breach, ...]:
    """Give the rules that an operation breaks in whatever layout; none if it may be legal.

    For graphs in the user's layout: what is about the order of axes is left to the passes.
    """
    return _broken(operation, arch, _ANYWHERE)


def breaches(operation: Operation, arch: Arch) -> tuple[Breach, ...]:
    """Give every rule that an operation breaks as it is, the most telling first."""
    return _broken(operation, arch, _LAID_OUT)


def _broken(operation: Operation, arch: Arch, table: _Table) -> tuple[Breach, ...]:
    rules = table.get((arch, operation.kind))
    if rules is None:
        return () if _folds(operation) else (_no_form(operation.kind, arch),)
    found = [(rule, actual) for rule in rules if (actual := rule.measure(operation)) is not None]
    if found and _folds(operation):
        return ()
    return tuple(_breach(operation.kind, rule, actual) for rule, actual in found)


def _folds(operation: Operation) -> bool:
    """Whether constants are folded before the operation would get to the NPU."""
    return bool(operation.operands) and all(map(is_fixed, operation.operands))


def _breach(kind: str, rule: TosaRule, actual: str) -> Breach:
    message = f"{kind} must have {rule.limit}, and has {actual}"
    return Breach(rule.id, message, rule.limit, actual, rule.help, rule.source)


def _no_form(kind: str, arch: Arch) -> Breach:
    others = [other.value for other in ALL if other in OPERATIONS.get(kind, ())]
    elsewhere = f", but {' and '.join(others)} has" if others else ""
    help = REPLACEMENTS.get(kind, "write it with operations that the NPU has, or leave it")
    return Breach(
        NO_FORM,
        f"{arch.value} has no form of {kind}{elsewhere}",
        f"an operation of {arch.value}",
        kind,
        help,
        REPORT,
    )
