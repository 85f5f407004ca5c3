"""Larger and smaller images of integers."""

from __future__ import annotations

from mizzen.frontends.arrangement.movement import channels_first
from mizzen.frontends.quantized.scales import as_target, rescale
from mizzen.frontends.quantized.terms import Pending, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.resize import Resizing, resizing
from mizzen.graph import ResizeMode, Value


def upsample_nearest2d(call: IntCall) -> Pending:
    """Return the nearest pixel towards the origin."""
    return _resized(call, ResizeMode.NEAREST)


def upsample_bilinear2d(call: IntCall) -> Pending:
    """Return the mean of the four pixels around, weighted by distance."""
    return _resized(call, ResizeMode.BILINEAR)


def _resized(call: IntCall, mode: ResizeMode) -> Pending:
    x, form = call.real(call.first), resizing(call, mode)
    if form is None:
        raise RefusedError("its scale is too large a fraction")

    def emit(target: Target) -> Value:
        value = form.emit(call, x.value)
        if mode is ResizeMode.BILINEAR:
            value = _divided(call, form, value, x)
        return channels_first(call.b, as_target(call.b, Real(value), target), call.shape)

    return Pending(emit, call.shape)


def _divided(call: IntCall, form: Resizing, value: Value, x: Real) -> Value:
    """Divide weighted sums by their weights.

    The weights of the four add up to the product of the scales, so the quotient is a mean of the
    integers themselves, zero point and all.
    """
    value = rescale(call.b, value, 1.0 / (form.scale[0] * form.scale[2]), x.value.dtype)
    value.type = value.type.quantized(x.quantization)
    return value
