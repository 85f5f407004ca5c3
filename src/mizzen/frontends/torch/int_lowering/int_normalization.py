"""Numbers of 16 bits over their sum or spread: softmax, its kin, layer and RMS normalization."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mizzen.frontends.quantized import normalization
from mizzen.frontends.quantized import softmax as exponentials
from mizzen.frontends.quantized.normalization import Normalization
from mizzen.frontends.quantized.terms import Array, Pending, Real
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.graph import DType, Value


def softmax(call: IntCall) -> Pending:
    """Return each number's exponential over the sum of all along an axis."""
    return _of_sum(call, exponentials.softmax)


def log_softmax(call: IntCall) -> Pending:
    """Return each number less the logarithm of the sum of all exponentials along an axis."""
    return _of_sum(call, exponentials.log_softmax)


def logsumexp(call: IntCall) -> Pending:
    """Return the logarithm of the sum of all exponentials along axes."""
    return _of_sum(call, exponentials.logsumexp)


def _of_sum(call: IntCall, function: Callable[..., Value]) -> Pending:
    x, axes = _wide(call, "self"), call.axes()
    exponentials.need_few_terms(x.value.shape, axes)
    return Pending(lambda target: function(call.b, x, axes, target, call.shape), call.shape)


def _wide(call: IntCall, name: str) -> Real:
    """Return the input, which must be of 16 bits."""
    x = call.real(name)
    call.need(
        x.value.dtype is DType.INT16,
        "it has integers in one step of 16 bits only, and was not taken apart before calibration",
        "quantise with EthosUQuantizer, which does so where it can",
    )
    return x


def layer_norm(call: IntCall) -> Pending:
    """Return distances from the mean over their root mean square, along the last axes."""
    return _normalized(call, normalization.layer_norm)


def rms_norm(call: IntCall) -> Pending:
    """Return numbers over their root mean square, along the last axes."""
    return _normalized(call, normalization.rms_norm)


def _normalized(call: IntCall, function: Callable[..., Value]) -> Pending:
    x = _wide(call, "input")
    rank, count = x.value.type.rank, len(call["normalized_shape"])
    axes = range(rank - count, rank)
    normalization.need_few_terms(x.value.shape, axes)
    epsilon = call["eps"]
    epsilon = float(np.finfo(np.float32).eps) if epsilon is None else float(epsilon)
    affine = (_constant(call, name, rank) for name in ("weight", "bias"))
    how = Normalization(axes, epsilon, *affine)
    return Pending(lambda target: function(call.b, x, how, target), call.shape)


def _constant(call: IntCall, name: str, rank: int) -> Array | None:
    """Return a constant operand, float64, in a rank; None if it is not there."""
    if call.arguments.get(name) is None:
        return None
    real = call.constant(name).real.astype(np.float64)
    return real.reshape((1,) * (rank - real.ndim) + real.shape)
