"""What of TFLite may run on the NPU: the operators there are, and what an operator breaks.

Where no rule fires, the compiler's words stand.

Ref: Vela 5.2.0, `ethosu.regor.tflite_operator_constraints`. Its texts leave things open: limits
were found by compiling networks on both sides of each, which the tests repeat.
"""

from __future__ import annotations

from mizzen.diagnostics import Reason
from mizzen.targets.ethos_u.legal.tflite_kernels import KERNEL_RULES, RESIZE_RULES
from mizzen.targets.ethos_u.legal.tflite_operators import (
    OPERATOR_RULES,
    REDUCTION_RULES,
    TRANSPOSE_RULES,
)
from mizzen.targets.ethos_u.legal.tflite_tensors import (
    OPERATORS,
    SOURCE,
    TENSOR_RULES,
    OperatorFacts,
    Rule,
)
from mizzen.targets.rules import Table, no_form

RULES: tuple[Rule, ...] = (
    *TENSOR_RULES,
    *KERNEL_RULES,
    *REDUCTION_RULES,
    *RESIZE_RULES,
    *TRANSPOSE_RULES,
    *OPERATOR_RULES,
)
"""Every rule, in the order in which breaches are told."""

TABLE = Table(RULES)

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


def breaches(operator: OperatorFacts) -> tuple[Reason, ...]:
    """Return every rule that an operator breaks, the most telling first."""
    kind, arch = operator.kind, operator.arch
    having = OPERATORS.get(kind, ())
    if arch not in having:
        help = REPLACEMENTS.get(kind, "replace it by operators that `mizzen targets` lists")
        return (no_form(kind, arch, having, f"{help}; or {ALLOWANCE}", SOURCE),)
    return tuple(TABLE.reasons(operator, kind, arch))
