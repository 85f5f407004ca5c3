"""Sums of 16-bit numbers on Ethos-U85, of which others say that they came out as zeros.

The compiler reads the 16-bit numbers in the sum itself. Numbers that are doubled before are written
with 32 bits first, and summed as its own SOFTMAX of 8 bits sums exponentials; the sum is halved,
which is exact.

Ref: ExecuTorch, pull requests 19319 and 19594: sums and means of 16 bits are zero on Arm's model of
Corstone-320 with Vela 5.0 (its issue 23), and right on Ethos-U55.
"""

from __future__ import annotations

import numpy as np

from mizzen.graph import Array, DType, Graph, Value
from mizzen.ops.reduction import ReduceSum, Reduction
from mizzen.ops.type_conversion import Rescale

TERMS_MAXIMUM = 1 << 14
"""Doubled numbers of 16 bits whose sum RESCALE takes by a half. Ref: TOSA 1.0, apply_scale_32."""


def widen_sums(graph: Graph) -> None:
    """Have sums of 16-bit numbers take numbers of 32 bits that the NPU wrote before."""
    for operation in tuple(graph):
        if isinstance(operation, ReduceSum) and operation.result not in graph.outputs:
            _widen(graph, operation)


def _shift(rescale: Rescale) -> int | None:
    """Return the shift of a RESCALE that changes no number; None for others."""
    multiplier, shift = rescale.multiplier.constant, rescale.shift.constant
    if multiplier is None or shift is None or rescale.per_channel:
        return None
    return int(shift[0]) if int(multiplier[0]) == 1 << int(shift[0]) else None


def _widen(graph: Graph, operation: Reduction) -> None:
    rescale = operation.input.producer
    if not isinstance(rescale, Rescale) or rescale.input.dtype is not DType.INT16:
        return
    shift = _shift(rescale)
    if shift is None or operation.input.shape[operation.axis] > TERMS_MAXIMUM:
        return
    total = operation.result
    users = tuple(total.uses)
    doubled = _rescaled(graph, rescale, rescale.input, shift - 1)
    graph.set_operand(operation, Reduction.input.index, doubled)
    halved = _rescaled(graph, rescale, total, shift + 1)
    for user in users:
        for index, operand in enumerate(user.operands):
            if operand is total:
                graph.set_operand(user, index, halved)


def _rescaled(graph: Graph, like: Rescale, value: Value, shift: int) -> Value:
    """Return a value through a RESCALE by the multiplier of another, to 32 bits."""
    origin, group = like.origin, like.group

    def constant(numbers: Array, dtype: DType) -> Value:
        return graph.constant(numbers, dtype, origin=origin, group=group)

    zero = like.input_zp if value is like.input else constant(np.array([0]), value.dtype)
    shifts = constant(np.array([shift]), DType.INT8)
    operands = (value, like.multiplier, shifts, zero, like.output_zp)
    dtype = like.result.type.with_shape(value.shape)
    return graph.add_beside(like, like.kind, operands, dtype, like.attributes)
