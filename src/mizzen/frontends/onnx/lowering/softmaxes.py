"""Softmax and its logarithm, whole, in 32 bits inside; see `frontends.quantized.softmax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from mizzen.frontends.arrangement.movement import reshape
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.quantized.softmax import log_softmax, need_few_terms, softmax
from mizzen.frontends.quantized.terms import Pending, Real, Target
from mizzen.graph import Value
from mizzen.ops import Builder

ONE_AXIS = 13
"""The version of ONNX's operators from which on a softmax has one axis."""

Whole = Callable[[Builder, Real, Sequence[int], Target, Sequence[int]], Value]


def soft_max(call: OnnxCall) -> Pending:
    """Return each number's exponential over the sum of all along an axis."""
    return _along(call, softmax)


def log_soft_max(call: OnnxCall) -> Pending:
    """Return each number less the logarithm of the sum of all exponentials along an axis."""
    return _along(call, log_softmax)


def _along(call: OnnxCall, whole: Whole) -> Pending:
    """Compute along one axis; before version 13, along it and all that follow, as if one."""
    x = call.real(0)
    if call.context.model.opset >= ONE_AXIS:
        axes = [call.axis(-1)]
        need_few_terms(call.shape, axes)
        return Pending(lambda target: whole(call.b, x, axes, target, call.shape), call.shape)
    axis = call.axis(1)
    flat = (prod(call.shape[:axis]), prod(call.shape[axis:]))
    need_few_terms(flat, [1])

    def emit(target: Target) -> Value:
        return whole(call.b, Real(reshape(call.b, x.value, flat)), [1], target, call.shape)

    return Pending(emit, call.shape)
