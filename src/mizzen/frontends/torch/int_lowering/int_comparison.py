"""Comparisons. Numbers of one scale compare as their integers do. With a number that is no tensor,
PyTorch itself says which integers are on which side of it. Only Ethos-U85 has these operations.

Ref: TOSA 1.0, 2.7 comparison operators.
"""

from __future__ import annotations

import numpy as np

from mizzen.frontends.torch.choice import compared
from mizzen.frontends.torch.int_lowering.int_activation import evaluate, reals_of
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.int_lowering.int_elementwise import centered
from mizzen.frontends.torch.int_lowering.int_terms import Plain
from mizzen.graph import DType, integer_range


def compare(call: IntCall) -> Plain:
    """Compare two tensors, broadcast."""
    x, y = call.real("self"), call.real("other")
    call.need(
        (x.scale, x.zero_point) == (y.scale, y.zero_point),
        "its operands have different scales",
        "quantise the comparison itself: its operands then share a scale",
    )
    return Plain(compared(call, centered(call.b, x), centered(call.b, y)))


def compare_number(call: IntCall) -> Plain:
    """Compare a tensor with a number: with the first integer on the other side of it."""
    b, x, name = call.b, call.real("self"), call.operator
    low, high = integer_range(x.value.dtype)
    points = np.arange(low, high + 1)
    holds = evaluate(call.node, call["self"], reals_of(x, points))
    negated = name in ("lt", "le", "ne")
    found = points[~holds if negated else holds]
    limit = int(found[0]) if found.size else high + 1
    shape = (1,) * x.value.type.rank
    constant = b.constant(np.full(shape, limit - x.zero_point), DType.INT32)
    kind = "EQUAL" if name in ("eq", "ne") else "GREATER_EQUAL"
    value = b(kind, centered(b, x), constant)
    return Plain(b("LOGICAL_NOT", value) if negated else value)
