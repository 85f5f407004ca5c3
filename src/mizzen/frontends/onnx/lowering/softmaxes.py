"""Softmax and its logarithm, whole, in 32 bits inside; see `frontends.quantized.softmax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.quantized.softmax import log_softmax, need_few_terms, softmax
from mizzen.frontends.quantized.terms import Pending, Real, Target
from mizzen.graph import Value
from mizzen.ops import Builder

Whole = Callable[[Builder, Real, Sequence[int], Target, Sequence[int]], Value]


def soft_max(call: OnnxCall) -> Pending:
    """Return each number's exponential over the sum of all along an axis."""
    return _along(call, softmax)


def log_soft_max(call: OnnxCall) -> Pending:
    """Return each number less the logarithm of the sum of all exponentials along an axis."""
    return _along(call, log_softmax)


def _along(call: OnnxCall, whole: Whole) -> Pending:
    x, axes = call.real(0), [call.axis(-1)]
    need_few_terms(call.shape, axes)
    return Pending(lambda target: whole(call.b, x, axes, target, call.shape), call.shape)
