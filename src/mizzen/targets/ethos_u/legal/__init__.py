"""What may run on the NPU: the operators there are, and the rules that their use must follow.

Each rule is a row: which operators of which families, what it wants, how to measure it, what to
do about it, where it is written. The compiler's own verdict decides the placement; the rules give
it a reason with a limit and an actual value. Where no rule fires, the compiler's words stand.

Ref: Vela 5.2.0, `ethosu.regor.tflite_operator_constraints`. Its texts leave things open: limits
were found by compiling networks on both sides of each, which the tests repeat.
"""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.diagnostics import Reason
from mizzen.targets.ethos_u.commands import ALL, Arch
from mizzen.targets.ethos_u.legal.facts import OperatorFacts
from mizzen.targets.ethos_u.legal.kernels import KERNEL_RULES
from mizzen.targets.ethos_u.legal.operators import OPERATOR_RULES
from mizzen.targets.ethos_u.legal.reductions import REDUCTION_RULES
from mizzen.targets.ethos_u.legal.resize import RESIZE_RULES
from mizzen.targets.ethos_u.legal.rule import OPERATORS, SOURCE, Rule
from mizzen.targets.ethos_u.legal.tensors import TENSOR_RULES
from mizzen.targets.ethos_u.legal.transpose import TRANSPOSE_RULES

NO_FORM = "no-form"
"""The rule that an operator breaks which the NPU has no form of."""

RULES: tuple[Rule, ...] = (
    *TENSOR_RULES,
    *KERNEL_RULES,
    *REDUCTION_RULES,
    *RESIZE_RULES,
    *TRANSPOSE_RULES,
    *OPERATOR_RULES,
)
"""Every rule, in the order in which breaches are told."""

REPLACEMENTS = {
    "BROADCAST_TO": "operators broadcast by themselves; leave it out",
    "CAST": "convert between quantised types with QUANTIZE",
    "DEPTH_TO_SPACE": "write it as RESHAPE, TRANSPOSE, RESHAPE",
    "DEQUANTIZE": "let the network give integers (inference_output_type), and convert outside",
    "DIV": "by a constant: MUL with its reciprocal",
    "GATHER": "with constant indices: STRIDED_SLICE and CONCATENATION",
    "L2_NORMALIZATION": "write it as MUL, SUM, RSQRT, MUL",
    "LOG_SOFTMAX": "leave it out where only the largest counts, or use SOFTMAX",
    "SHAPE": "export the network with fixed shapes; it becomes a constant",
    "SPACE_TO_DEPTH": "write it as RESHAPE, TRANSPOSE, RESHAPE",
    "SQRT": "write it as MUL with RSQRT",
    "SQUARE": "write it as MUL of the tensor with itself",
}
"""What to write instead of an operator that the NPU has no form of."""

ALLOWANCE = "allow it on the CPU with `--max-cpu-ops`"


def breaches(operator: OperatorFacts, arch: Arch) -> tuple[Reason, ...]:
    """Return every rule that an operator breaks on a family, the most telling first."""
    if arch not in OPERATORS.get(operator.kind, ()):
        return (_no_form(operator, arch),)
    return tuple(_broken(operator, arch))


def _broken(operator: OperatorFacts, arch: Arch) -> Iterator[Reason]:
    for rule in RULES:
        if rule.applies_to(operator.kind, arch):
            actual = rule.measure(operator, arch)
            if actual is not None:
                message = f"{operator.kind} must have {rule.limit}, and has {actual}"
                yield Reason(rule.id, message, rule.limit, actual, rule.help, rule.source)


def _no_form(operator: OperatorFacts, arch: Arch) -> Reason:
    others = [other.value for other in ALL if other in OPERATORS.get(operator.kind, ())]
    elsewhere = f", but {' and '.join(others)} has" if others else ""
    help = REPLACEMENTS.get(operator.kind, "replace it by operators that `mizzen targets` lists")
    return Reason(
        NO_FORM,
        f"{arch.value} has no form of {operator.kind}{elsewhere}",
        f"an operator of {arch.value}",
        operator.kind,
        f"{help}; or {ALLOWANCE}",
        SOURCE,
    )
