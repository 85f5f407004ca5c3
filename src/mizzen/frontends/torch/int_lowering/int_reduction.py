"""Sums, means, extremes along dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mizzen.frontends.torch.context import Call, lowers
from mizzen.frontends.torch.int_lowering.int_convolution import (
    TO_CHANNELS_FIRST,
    TO_CHANNELS_LAST,
    reshape,
    transpose,
)
from mizzen.frontends.torch.int_lowering.int_elementwise import as_target
from mizzen.frontends.torch.int_lowering.int_pooling import LARGEST_KERNEL, Means
from mizzen.frontends.torch.int_lowering.rescale import clamp, requantize, rescale
from mizzen.frontends.torch.values import Pending, Real, Target
from mizzen.graph import DType, Value


@lowers("aten.mean.dim", "aten.mean.default", "aten.sum.dim_IntList", "aten.sum.default")
def summed(call: Call) -> Pending:
    """Sum or mean along dimensions."""
    x = call.real("self")
    axes = _axes(call, x)
    is_mean = "mean" in str(call.node.target)

    def emit(target: Target) -> Value:
        if is_mean and _is_plane(x, axes):
            return _plane(call, x, target)
        count = prod(x.value.shape[axis] for axis in axes) if is_mean else 1
        value = rescale(call.b, x.value, 1.0, DType.INT32, (x.zero_point, 0))
        for axis in axes:
            value = call.b("REDUCE_SUM", value, axis=axis)
        value = requantize(call.b, value, x.scale / count, target)
        return reshape(call.b, value, call.shape, target)

    return Pending(emit, call.shape)


@lowers("aten.amax.default", "aten.amin.default")
def extreme(call: Call) -> Pending:
    """Greatest or smallest along dimensions."""
    x = call.real("self")
    axes = _axes(call, x)
    kind = "REDUCE_MAX" if "amax" in str(call.node.target) else "REDUCE_MIN"

    def emit(target: Target) -> Value:
        value = x.value
        for axis in axes:
            value = call.b(kind, value, axis=axis, quantization=x.quantization)
        value = as_target(call.b, Real(value), target)
        return reshape(call.b, clamp(call.b, value, target), call.shape, target)

    return Pending(emit, call.shape)


def _plane(call: Call, x: Real, target: Target) -> Value:
    """Average the whole of each plane of [N,C,H,W]."""
    b = call.b
    source = transpose(b, x.value, TO_CHANNELS_LAST)
    _, height, width, _ = source.shape
    value = Means(x, (height, width)).emit(b, source, target)
    return reshape(b, transpose(b, value, TO_CHANNELS_FIRST), call.shape, target)


def _is_plane(x: Real, axes: Sequence[int]) -> bool:
    return (
        x.value.type.rank == 4
        and tuple(axes) == (2, 3)
        and max(x.value.shape[2:]) <= LARGEST_KERNEL
    )


def _axes(call: Call, x: Real) -> list[int]:
    rank = x.value.type.rank
    given = call.arguments.get("dim")
    if isinstance(given, int):
        given = [given]
    return sorted({axis % rank for axis in given}) if given else list(range(rank))
