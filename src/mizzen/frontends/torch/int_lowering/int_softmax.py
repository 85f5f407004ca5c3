"""Softmax, its logarithm and ``logsumexp``, of 16-bit numbers."""

from __future__ import annotations

from collections.abc import Callable

from mizzen.frontends.quantized import softmax as arithmetic
from mizzen.frontends.quantized.terms import Pending
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.graph import DType, Value


def softmax(call: IntCall) -> Pending:
    """Return each number's exponential over the sum of all along an axis."""
    return _of_sum(call, arithmetic.softmax)


def log_softmax(call: IntCall) -> Pending:
    """Return each number less the logarithm of the sum of all exponentials along an axis."""
    return _of_sum(call, arithmetic.log_softmax)


def logsumexp(call: IntCall) -> Pending:
    """Return the logarithm of the sum of all exponentials along axes."""
    return _of_sum(call, arithmetic.logsumexp)


def _of_sum(call: IntCall, function: Callable[..., Value]) -> Pending:
    x, axes = call.real("self"), call.axes()
    call.need(
        x.value.dtype is DType.INT16,
        "it has integers in one step of 16 bits only, and was not taken apart before calibration",
        "quantise with EthosUQuantizer, which does so where it can",
    )
    arithmetic.need_few_terms(x.value.shape, axes)
    return Pending(lambda target: function(call.b, x, axes, target, call.shape), call.shape)
