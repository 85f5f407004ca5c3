"""Means of windows of floating-point numbers."""

from __future__ import annotations

from mizzen.frontends.torch.fp_lowering.fp_arithmetic import mul
from mizzen.frontends.torch.fp_lowering.fp_context import FpCall
from mizzen.frontends.torch.pooling import Pool, Window, adaptive, averaged, window_count
from mizzen.graph import DType, Value


def avg_pool2d(call: FpCall) -> Value:
    """Return the mean of each window; padding counts only where the model says so."""
    value = averaged(call, call.value("self"), 0, _mean(call))
    divisor = call.arguments.get("divisor_override")
    return mul(call.b, value, window_count(call) / int(divisor)) if divisor else value


def adaptive_avg_pool2d(call: FpCall) -> Value:
    """Return the mean of windows that cut an image into a given number of rows and columns."""
    return adaptive(call, call.value("self"), _mean(call))


def _mean(call: FpCall) -> Pool:
    def pool(source: Value, window: Window) -> Value:
        zero = call.b.constant([0], source.dtype)
        return call.b("AVG_POOL2D", source, zero, zero, acc_type=DType.FP32, **window.attributes)

    return pool
