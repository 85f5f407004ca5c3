"""Larger and smaller images of integers."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.frontends.arrangement.movement import channels_first
from mizzen.frontends.arrangement.resize import Resizing
from mizzen.frontends.quantized.scales import as_target, rescale
from mizzen.frontends.quantized.terms import Real, Target
from mizzen.graph import ResizeMode, Value
from mizzen.ops import Builder


def resized(b: Builder, x: Real, form: Resizing, target: Target, shape: Sequence[int]) -> Value:
    """Resize [N,C,H,W] or [N,C,W], to a shape.

    The weights of the four pixels around add up to the product of the scales, so the quotient is a
    mean of the integers themselves, zero point and all.
    """
    value = form.emit(b, x.value)
    if form.mode is ResizeMode.BILINEAR:
        value = rescale(b, value, 1.0 / form.weights, x.value.dtype)
        value.type = value.type.quantized(x.quantization)
    return channels_first(b, as_target(b, Real(value), target), shape)
