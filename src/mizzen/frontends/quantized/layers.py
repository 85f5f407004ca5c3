"""Layers and products: sums, which one RESCALE brings to the result's scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.movement import reshape, tiled
from mizzen.frontends.arrangement.windows import Layer
from mizzen.frontends.quantized.scales import requantize
from mizzen.frontends.quantized.terms import Array, Constant, Real, Target
from mizzen.graph import DType, Value
from mizzen.ops import Builder

ACCUMULATORS = {DType.INT8: DType.INT32, DType.INT16: DType.INT48}
"""Type of the input to type of the sums. Ref: TOSA 1.0, 2.3.3 CONV2D, supported types."""

BIAS_MAXIMUM = 2**31 - 1


@dataclass(frozen=True, eq=False)
class IntLayer(Layer):
    """A layer on integers that stand for `x`, which gives those of a target.

    scales      of the sums, by output or one for all
    zero_point  of the weights
    """

    b: Builder
    x: Real
    weight: Array
    bias: Array
    scales: Array
    target: Target
    zero_point: int = 0

    def part(self, start: int, count: int) -> IntLayer:
        """Return some of the outputs."""
        outputs = slice(start, start + count)
        scales = self.scales if self.scales.size == 1 else self.scales[outputs]
        return replace(self, weight=self.weight[outputs], bias=self.bias[outputs], scales=scales)

    def product(self, kind: str, source: Value, weight: Array, attributes: dict[str, Any]) -> Value:
        """Add an operation, and what gives the target's integers of its sums."""
        b, dtype = self.b, self.x.value.dtype
        sums = b(
            kind,
            source,
            b.constant(np.ascontiguousarray(weight), DType.INT8),
            b.constant(self.bias, ACCUMULATORS[dtype]),
            b.constant([self.x.zero_point], dtype),
            b.constant([self.zero_point], DType.INT8),
            acc_type=ACCUMULATORS[dtype],
            **attributes,
        )
        return requantize(b, sums, self.scales, self.target)


def bias_of(bias: Constant | None, scales: Array, outputs: int) -> Array:
    """Return a bias as integers of the sums' scales, zeros if there is none."""
    if bias is None:
        return np.zeros(outputs, np.int64)
    quantization = bias.quantization
    if bias.integers is not None and quantization is not None:
        same = np.allclose(np.asarray(quantization.scales), scales, rtol=1e-6, atol=0.0)
        if same and not any(quantization.zero_points):
            return bias.integers.astype(np.int64)
    steps = np.rint(bias.real.astype(np.float64) / scales)
    return np.clip(steps, -BIAS_MAXIMUM, BIAS_MAXIMUM).astype(np.int64)


def matmul(b: Builder, x: Real, y: Real, target: Target, shape: Sequence[int]) -> Value:
    """Multiply [..., H, C] by [..., C, W], to a shape; leading dimensions are broadcast."""
    batch = np.broadcast_shapes(x.value.shape[:-2], y.value.shape[:-2])
    value = b(
        "MATMUL",
        _stacked(b, x.value, batch),
        _stacked(b, y.value, batch),
        b.constant([x.zero_point], x.value.dtype),
        b.constant([y.zero_point], y.value.dtype),
    )
    return reshape(b, requantize(b, value, x.scale * y.scale, target), shape)


def _stacked(b: Builder, value: Value, batch: Sequence[int]) -> Value:
    """Return as many matrices as a batch has, [N,H,C]."""
    matrix = value.shape[-2:]
    return reshape(b, tiled(b, value, (*batch, *matrix)), (prod(batch), *matrix))
