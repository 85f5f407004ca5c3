"""Sums of products in accumulators of so many bits, where they could leave their range.

The array multiplies the integers as they are: zero points and bias are the core's, who adds them to
the sum in 32 bits. A sum that wraps is the same whatever the order; one that saturates is taken as
clipped at the end of the tile's sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.graph import INTEGER_BITS, Array, Value, integer_range
from mizzen.mesh.machine import MacArray, Overflow
from mizzen.ops.tensor import DepthwiseConv2d, Windowed

CORE_BITS = 32


@dataclass(frozen=True, eq=False)
class Accumulators:
    """The accumulators of a tile: they hold `array.accumulator_bits`.

    value    the sums in the tile's graph, with bias and without zero points
    beyond   what the array's sums have and these have not, by output channel
    """

    array: MacArray
    value: Value
    beyond: Array

    def trace(self, value: Value, sums: Array) -> Array | None:
        """Return the sums as accumulators hold them."""
        if value is not self.value:
            return None
        raw = sums.astype(np.int64) + self.beyond
        half = 1 << (self.array.accumulator_bits - 1)
        if self.array.overflow is Overflow.WRAP:
            held = ((raw + half) & (2 * half - 1)) - half
        else:
            held = np.clip(raw, -half, half - 1)
        return (held - self.beyond).astype(sums.dtype)


def accumulators(array: MacArray | None, sums: Value | None) -> Accumulators | None:
    """Return the accumulators of a tile whose sums may leave their range; None if none does."""
    if array is None or sums is None or array.accumulator_bits >= CORE_BITS:
        return None
    product: Any = sums.producer
    weights = _centered(product)
    if greatest_sum(product) < 1 << (array.accumulator_bits - 1):
        return None
    bias = product.bias.constant.astype(np.int64)
    return Accumulators(array, sums, weights.sum(axis=0) * _zero_point(product) - bias)


def greatest_sum(product: Windowed) -> int:
    """Return what no sum of products exceeds, whatever the input is: of integers as they are."""
    least, _ = integer_range(product.input.dtype)
    sums: int = np.abs(_centered(product)).sum(axis=0).max(initial=0)
    return int(sums) * -least if product.input.dtype in INTEGER_BITS else 0


def _zero_point(product: Windowed) -> int:
    assert product.input_zp.constant is not None
    return int(product.input_zp.constant[0])


def _centered(product: Windowed) -> Array:
    """Return the weights less their zero point, `[products, output channels]`."""
    weights, zero_point = product.weight.constant, product.weight_zp.constant
    assert weights is not None
    assert zero_point is not None
    plain = weights.astype(np.int64) - int(zero_point[0])
    if isinstance(product, DepthwiseConv2d):
        height, width, depth, multiplier = plain.shape
        return plain.reshape(height * width, depth * multiplier)
    return plain.reshape(len(plain), -1).T
