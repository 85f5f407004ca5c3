"""Larger and smaller images of integers."""

from __future__ import annotations

from mizzen.frontends.quantized.resize import resized
from mizzen.frontends.quantized.terms import Pending
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.resize import resizing
from mizzen.graph import ResizeMode


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
    return Pending(lambda target: resized(call.b, x, form, target, call.shape), call.shape)
