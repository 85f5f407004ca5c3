"""Larger and smaller images. Ref: TOSA 1.0, 2.12.1 RESIZE."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mizzen.frontends.torch.fp_lowering.fp_arithmetic import filled
from mizzen.frontends.torch.fp_lowering.fp_context import Call, lowers
from mizzen.frontends.torch.fp_lowering.fp_matmul import multiplied
from mizzen.frontends.torch.fp_lowering.fp_shapes import channels_first, image, reshape
from mizzen.frontends.torch.values import Array
from mizzen.graph import Value
from mizzen.ops.attributes import ResizeMode
from mizzen.ops.image import NUMERATOR

HALF = Fraction(1, 2)


@lowers("aten.upsample_nearest2d.vec", "aten.upsample_nearest2d.default",
        "aten.upsample_nearest1d.vec", "aten.upsample_nearest1d.default")  # fmt: skip
def nearest(call: Call) -> Value:
    """The nearest pixel towards the origin."""
    return _resized(call, ResizeMode.NEAREST)


@lowers("aten.upsample_bilinear2d.vec", "aten.upsample_bilinear2d.default",
        "aten.upsample_linear1d.vec", "aten.upsample_linear1d.default")  # fmt: skip
def bilinear(call: Call) -> Value:
    """The mean of the four pixels around, weighted by distance."""
    return _resized(call, ResizeMode.BILINEAR)


def _resized(call: Call, mode: ResizeMode) -> Value:
    b, x = call.b, call.value(call.first)
    spatial = x.type.rank - 2
    before = (1, *x.shape[2:])[-2:]
    after = (1, *call.shape[2:])[-2:]
    numbers = [
        _numbers(call, mode, *sizes, axis - (2 - spatial))
        for axis, sizes in enumerate(zip(before, after, strict=True))
    ]
    if any(each is None for each in numbers):
        return _by_matrices(call, mode, before, after)
    scale, offset, border = ([n for each in numbers if each for n in each[part]] for part in PARTS)
    value = b(
        "RESIZE",
        image(b, x, spatial),
        b.shape(scale),
        b.shape(offset),
        b.shape(border),
        mode=mode,
    )
    return channels_first(b, value, call.shape)


PARTS = (slice(0, 2), slice(2, 3), slice(3, 4))
"""Where scale, offset and border are among the numbers of one dimension."""


def _positions(
    call: Call, mode: ResizeMode, before: int, after: int, axis: int
) -> tuple[Fraction, Fraction]:
    """Return where in the input output 0 is, and how far apart two outputs are.

    PyTorch's nearest takes input ``floor(i * step)``. The others let corners of images meet, or
    centres of corner pixels (``align_corners``).
    """
    step = Fraction(before, after)
    if mode is ResizeMode.NEAREST:
        return Fraction(0), _given_step(call, axis) or step
    if call["align_corners"]:
        return Fraction(0), Fraction(before - 1, after - 1) if after > 1 else Fraction(0)
    step = _given_step(call, axis) or step
    return HALF * step - HALF, step


def _given_step(call: Call, axis: int) -> Fraction | None:
    """Return 1 / scale where the model says a scale."""
    factors: list[float | None] | None = call.arguments.get("scale_factors")
    if factors is None and "scales" in call.arguments:
        factors = [call["scales"]]
    elif factors is None:
        factors = [call.arguments.get("scales_h"), call.arguments.get("scales_w")]
    factor = factors[axis] if 0 <= axis < len(factors) else None
    return None if factor is None else 1 / Fraction(float(factor)).limit_denominator(1 << 20)


def _numbers(
    call: Call, mode: ResizeMode, before: int, after: int, axis: int
) -> tuple[int, int, int, int] | None:
    """Return a dimension's scale (two numbers), offset and border; None where RESIZE has none.

    The output's index i is at ``(i * scale_d + offset) / scale_n`` of the input; the border makes
    ``out = ((in - 1) * scale_n - offset + border) / scale_d + 1`` hold.
    """
    start, step = _positions(call, mode, before, after, axis)
    if mode is ResizeMode.NEAREST:
        if _nearest(before, after, step) != _floors(before, after, step):
            return None
        start = -HALF  # TOSA rounds to the nearest input, halves up: half less is rounding down
    if after == 1:
        step = step or Fraction(1)
    if step <= 0:
        return None
    numerator = np.lcm(start.denominator, step.denominator).item()
    scale_d, offset = int(step * numerator), int(start * numerator)
    border = (after - 1) * scale_d - (before - 1) * numerator + offset
    fits = (
        numerator <= NUMERATOR
        and 0 < scale_d < 16 * numerator
        and -numerator <= offset < 16 * numerator
        and -16 * numerator <= border < numerator
    )
    return (numerator, scale_d, offset, border) if fits else None


def _nearest(before: int, after: int, step: Fraction) -> list[int]:
    """Return the inputs that PyTorch takes: positions are products in float32, cut off."""
    places = np.arange(after, dtype=np.float32) * np.float32(float(step))
    return np.minimum(np.floor(places), before - 1).astype(int).tolist()


def _floors(before: int, after: int, step: Fraction) -> list[int]:
    return [min(int(index * step), before - 1) for index in range(after)]


def _by_matrices(
    call: Call, mode: ResizeMode, before: Sequence[int], after: Sequence[int]
) -> Value:
    """Resize as two products with constant weights, where the scale is no small fraction."""
    b, x = call.b, call.value(call.first)
    spatial = x.type.rank - 2
    count = x.shape[0] * x.shape[1]
    rows, columns = (
        _weights(call, mode, *sizes, axis - (2 - spatial))
        for axis, sizes in enumerate(zip(before, after, strict=True))
    )
    planes = reshape(b, x, (count, *before))
    if after[1] != before[1]:
        flat = reshape(b, planes, (1, count * before[0], before[1]))
        wide = multiplied(b, flat, filled(b, columns.T[None], x.dtype))
        planes = reshape(b, wide, (count, before[0], after[1]))
    if after[0] != before[0]:
        planes = multiplied(b, filled(b, rows[None], x.dtype), planes)
    return reshape(b, planes, call.shape)


def _weights(call: Call, mode: ResizeMode, before: int, after: int, axis: int) -> Array:
    """Return the weight [after, before] of each input for each output along a dimension."""
    start, step = _positions(call, mode, before, after, axis)
    weights = np.zeros((after, before))
    if mode is ResizeMode.NEAREST:
        weights[np.arange(after), _nearest(before, after, step)] = 1.0
        return weights
    for index in range(after):
        place = min(max(start + index * step, Fraction(0)), Fraction(before - 1))
        low = int(place)
        part = float(place - low)
        weights[index, low] += 1.0 - part
        weights[index, min(low + 1, before - 1)] += part
    return weights
