"""Sums and means along dimensions, rounded once. Ref: TOSA 1.0, 2.9.7 REDUCE_SUM."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mizzen.frontends.arrangement.choice import reduced
from mizzen.frontends.arrangement.movement import channels_first, image, reshape
from mizzen.frontends.arrangement.windows import Window
from mizzen.frontends.quantized.pools import Means
from mizzen.frontends.quantized.scales import centered, requantize
from mizzen.frontends.quantized.terms import Real, Target
from mizzen.graph import Value
from mizzen.ops import Builder
from mizzen.ops.limits import WindowLimits


def summed(b: Builder, x: Real, axes: Sequence[int], target: Target, shape: Sequence[int]) -> Value:
    """Sum along axes, to a shape."""
    return _divided(b, x, axes, 1, target, shape)


def mean(
    b: Builder,
    x: Real,
    axes: Sequence[int],
    target: Target,
    shape: Sequence[int],
    limits: WindowLimits,
) -> Value:
    """Take the mean along axes, to a shape: by a window where it is of planes that fit one."""
    extents = [x.value.shape[axis] for axis in axes]
    if x.value.type.rank != 4 or tuple(axes) != (2, 3) or max(extents) > limits.largest_kernel:
        return _divided(b, x, axes, prod(extents), target, shape)
    height, width = extents
    value = Means(b, x, target, limits).of(image(b, x.value), Window((height, width)))
    return channels_first(b, value, shape)


def _divided(
    b: Builder, x: Real, axes: Sequence[int], count: int, target: Target, shape: Sequence[int]
) -> Value:
    value = reduced(b, "REDUCE_SUM", centered(b, x), axes)
    return reshape(b, requantize(b, value, x.scale / count, target), shape)
