"""Sums, products and extremes of two operands.

Two operands come to one scale, with headroom, in 32 bits; one RESCALE gives the result.
"""

from __future__ import annotations

import numpy as np

from mizzen.frontends.arrangement.movement import same_rank
from mizzen.frontends.quantized.scales import as_target, centered, clamped, requantize, rescale
from mizzen.frontends.quantized.terms import Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Graph, Quantization, Value
from mizzen.ops import Builder

HEADROOM_BITS = {DType.INT8: 20, DType.INT16: 12}
"""Bits by which operands of a sum are shifted left: 8 + 20 + 1 and 16 + 12 + 1 fit into 32."""


def combine(b: Builder, kind: str, x: Real, y: Real, target: Target) -> Value:
    """Add or subtract (ADD, SUB): both operands in one unit, with headroom, in 32 bits.

    Operands of one scale are added as they are, which is exact too, and which Ethos-U55 does in
    one operation.
    """
    bits = min(HEADROOM_BITS[x.value.dtype], HEADROOM_BITS[y.value.dtype])
    unit = x.scale if x.scale == y.scale else 2 * max(x.scale, y.scale) / (1 << bits)
    left, right = (
        rescale(b, item.value, item.scale / unit, DType.INT32, (item.zero_point, 0))
        for item in (x, y)
    )
    left, right = same_rank(b, left, right)
    return requantize(b, b(kind, left, right), unit, target)


def multiply(b: Builder, x: Real, y: Real, target: Target) -> Value:
    """Multiply without zero points, in 32 bits."""
    left, right = same_rank(b, centered(b, x), centered(b, y))
    value = b("MUL", left, right, b.constant([0], DType.INT8))
    return requantize(b, value, x.scale * y.scale, target)


def scalar(graph: Graph, number: float) -> Real:
    """Return a number as a quantised tensor that stands for it exactly: its own scale, times 1."""
    if not np.isfinite(number):
        raise RefusedError(f"it takes the number {number}, which no integer stands for")
    integer = 0 if number == 0.0 else int(np.sign(number))
    quantization = Quantization((abs(number) or 1.0,), (0,))
    value = graph.constant([integer], DType.INT8, quantization=quantization)
    return Real(value)


def extreme(b: Builder, kind: str, x: Real, y: Real, target: Target) -> Value:
    """Return the greater or lesser (MAXIMUM, MINIMUM), each operand on the target's scale."""
    left, right = (rescale(b, as_target(b, item, target), 1.0, DType.INT32) for item in (x, y))
    left, right = same_rank(b, left, right)
    return clamped(b, rescale(b, b(kind, left, right), 1.0, target.dtype), target)
