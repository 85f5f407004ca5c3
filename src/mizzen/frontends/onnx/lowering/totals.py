"""Sums and means of several tensors, broadcast: in 32 bits, rounded once."""

from __future__ import annotations

from math import ceil, log2

import numpy as np

from mizzen.frontends.arrangement.movement import same_rank
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.quantized.scales import requantize, rescale
from mizzen.frontends.quantized.terms import Constant, Pending, Real, Target, Term
from mizzen.graph import DType, Value

BITS = 30
"""Of a sum."""


def total(call: OnnxCall) -> Term:
    """Return the sum."""
    return _over(call, 1)


def mean(call: OnnxCall) -> Term:
    """Return the mean."""
    return _over(call, call.count)


def _over(call: OnnxCall, divisor: int) -> Term:
    if call.count == 1:
        return call.itself()
    terms = [call.term(index) for index in range(call.count)]
    parts = [
        term if isinstance(term, Constant) else call.real(index) for index, term in enumerate(terms)
    ]
    finest = max(_most(part) for part in parts) or 1.0
    unit = finest * 2.0 ** (ceil(log2(len(parts))) - BITS)
    b = call.b

    def emit(target: Target) -> Value:
        first, *others = same_rank(b, *(_in(call, part, unit) for part in parts))
        for other in others:
            first = b("ADD", first, other)
        return requantize(b, first, unit / divisor, target)

    return Pending(emit, call.shape)


def _most(part: Real | Constant) -> float:
    """Return the greatest distance from zero that a tensor can have."""
    if isinstance(part, Constant):
        return float(np.abs(part.real).max(initial=0.0))
    return part.scale * (1 << (8 if part.value.dtype is DType.INT8 else 15))


def _in(call: OnnxCall, part: Real | Constant, unit: float) -> Value:
    if isinstance(part, Constant):
        steps = np.rint(part.real.astype(np.float64) / unit)
        return call.b.constant(steps, DType.INT32)
    return rescale(call.b, part.value, part.scale / unit, DType.INT32, (part.zero_point, 0))
