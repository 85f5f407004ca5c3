"""Functions that cut numbers at bounds: part of the computation that they follow."""

from __future__ import annotations

from math import inf

import numpy as np

from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.onnx.lowering.context import Function
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.scales import as_target
from mizzen.frontends.quantized.terms import Pending, Plain, Quantized, Term
from mizzen.graph import DType, Value, integer_range


def relu(call: OnnxCall) -> Term:
    """Cut what is below zero."""
    return bounded(call, 0.0, inf)


def clip(call: OnnxCall) -> Term:
    """Cut at one or two constant bounds."""
    low = call.scalar(1) if call.given(1) else -inf
    high = call.scalar(2) if call.given(2) else inf
    # Bounds the wrong way round: all numbers become the upper one, as ONNX says.
    return bounded(call, min(low, high), high)


def bounded(call: OnnxCall, low: float, high: float, index: int = 0) -> Term:
    """Clamp an input to bounds: part of the computation that it follows, else one of its own."""
    term = call.term(index)
    if isinstance(term, (Quantized, Plain)) and call.dtype.kind in "iu":
        return _whole(call, term.value, low - call.offset(index), high - call.offset(index))
    function = call.function(index)
    if function is not None:
        _remember(call, function, low, high)
    if isinstance(term, Pending):
        return term.clamped(low, high)
    x = call.real(index)
    return Pending(lambda target: as_target(call.b, x, target), call.shape).clamped(low, high)


def _remember(call: OnnxCall, function: Function, low: float, high: float) -> None:
    """Let what follows be a function of the same numbers."""

    def of(reals: Array) -> Array:
        return np.clip(function.of(reals), np.float32(low), np.float32(high))

    call.context.functions[call.node.outputs[0]] = Function(function.x, of)


def _whole(call: OnnxCall, value: Value, low: float, high: float) -> Term:
    """Clamp integers that stand for nothing but themselves."""
    dtype = value.dtype
    call.need(
        dtype in (DType.INT8, DType.INT16), f"it is of {call.dtype.name}, which no NPU clamps"
    )
    least, greatest = integer_range(dtype)
    bounds = [int(np.clip(bound, least, greatest)) for bound in (low, high)]
    if bounds == [least, greatest]:
        return Quantized(value)
    return Quantized(call.b("CLAMP", value, min_val=bounds[0], max_val=bounds[1]))
