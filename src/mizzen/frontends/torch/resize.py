"""Larger and smaller images as nodes have them: which inputs an output is made of."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.resize import HALF, Dimension, Resizing
from mizzen.frontends.torch.call import Call
from mizzen.graph import ResizeMode


def dimensions(call: Call[Any], mode: ResizeMode) -> tuple[Dimension, Dimension]:
    """Return rows and columns; one dimension is columns."""
    given, spatial = call.shape_of(call.first), len(call.shape) - 2
    before, after = (1, *given[2:])[-2:], (1, *call.shape[2:])[-2:]
    lines, columns = (
        _dimension(call, mode, before[axis], after[axis], axis - (2 - spatial)) for axis in (0, 1)
    )
    return lines, columns


def _dimension(call: Call[Any], mode: ResizeMode, before: int, after: int, axis: int) -> Dimension:
    """Say where outputs are.

    PyTorch's nearest takes input ``floor(i * step)``. The others let corners of images meet, or
    centres of corner pixels (``align_corners``).
    """
    step = Fraction(before, after)
    if mode is ResizeMode.NEAREST:
        step = _given_step(call, axis) or step
        return Dimension(before, after, Fraction(0), step, _nearest(before, after, step))
    if call["align_corners"]:
        step = Fraction(before - 1, after - 1) if after > 1 else Fraction(0)
        return Dimension(before, after, Fraction(0), step)
    step = _given_step(call, axis) or step
    return Dimension(before, after, HALF * step - HALF, step)


def _nearest(before: int, after: int, step: Fraction) -> tuple[int, ...]:
    """Return the inputs that PyTorch takes: positions are products in float32, cut off."""
    places = np.arange(after, dtype=np.float32) * np.float32(float(step))
    return tuple(np.minimum(np.floor(places), before - 1).astype(int).tolist())


def _given_step(call: Call[Any], axis: int) -> Fraction | None:
    """Return 1 / scale where the model says a scale."""
    factors: list[float | None] | None = call.arguments.get("scale_factors")
    if factors is None and "scales" in call.arguments:
        factors = [call["scales"]]
    elif factors is None:
        factors = [call.arguments.get("scales_h"), call.arguments.get("scales_w")]
    factor = factors[axis] if 0 <= axis < len(factors) else None
    return None if factor is None else 1 / Fraction(float(factor)).limit_denominator(1 << 20)


def resizing(call: Call[Any], mode: ResizeMode) -> Resizing | None:
    """Return how RESIZE does what a node does; None where its scale is not a small fraction."""
    return Resizing.of(mode, *dimensions(call, mode))
