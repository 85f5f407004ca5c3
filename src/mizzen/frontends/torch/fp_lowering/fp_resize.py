"""Larger and smaller images: RESIZE, or products with constant weights where it has no scale."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mizzen.frontends.arrangement.movement import channels_first, reshape
from mizzen.frontends.arrangement.resize import Dimension
from mizzen.frontends.torch.fp_lowering.fp_arithmetic import filled
from mizzen.frontends.torch.fp_lowering.fp_convolution import multiplied
from mizzen.frontends.torch.fp_lowering.fp_lower import FpCall
from mizzen.frontends.torch.program import Array
from mizzen.frontends.torch.resize import dimensions, resizing
from mizzen.graph import ResizeMode, Value


def upsample_nearest2d(call: FpCall) -> Value:
    """Return the nearest pixel towards the origin."""
    return _resized(call, ResizeMode.NEAREST)


def upsample_bilinear2d(call: FpCall) -> Value:
    """Return the mean of the four pixels around, weighted by distance."""
    return _resized(call, ResizeMode.BILINEAR)


def _resized(call: FpCall, mode: ResizeMode) -> Value:
    form = resizing(call, mode)
    if form is None:
        return _by_matrices(call, mode)
    return channels_first(call.b, form.emit(call.b, call.value(call.first)), call.shape)


def _by_matrices(call: FpCall, mode: ResizeMode) -> Value:
    """Resize as two products with constant weights."""
    b, x = call.b, call.value(call.first)
    count = x.shape[0] * x.shape[1]
    lines, columns = dimensions(call, mode)
    planes = reshape(b, x, (count, lines.before, columns.before))
    if columns.after != columns.before:
        flat = reshape(b, planes, (1, count * lines.before, columns.before))
        weights = filled(b, _weights(columns, mode).T[None], x.dtype)
        planes = reshape(b, multiplied(b, flat, weights), (count, lines.before, columns.after))
    if lines.after != lines.before:
        planes = multiplied(b, filled(b, _weights(lines, mode)[None], x.dtype), planes)
    return reshape(b, planes, call.shape)


def _weights(dimension: Dimension, mode: ResizeMode) -> Array:
    """Return the weight [after, before] of each input for each output along a dimension."""
    before, after = dimension.before, dimension.after
    weights = np.zeros((after, before))
    if mode is ResizeMode.NEAREST:
        weights[np.arange(after), dimension.places] = 1.0
        return weights
    for index in range(after):
        place = dimension.start + index * dimension.step
        place = min(max(place, Fraction(0)), Fraction(before - 1))
        low = int(place)
        part = float(place - low)
        weights[index, low] += 1.0 - part
        weights[index, min(low + 1, before - 1)] += part
    return weights
