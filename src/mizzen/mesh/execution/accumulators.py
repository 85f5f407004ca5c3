"""Sums of products in accumulators of so many bits, where they could leave their range.

The array multiplies the integers as they are: zero points and bias are the core's, who adds them to
the sum in 32 bits. A sum that wraps is the same whatever the order; one that saturates is taken as
clipped at the end of the tile's sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.graph import Array, Value
from mizzen.mesh.machine import MacArray, Overflow
from mizzen.mesh.network.ranges import centered_weights, greatest_sums

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
    greatest = int(greatest_sums(product).sum(axis=1).max(initial=0))
    if greatest < 1 << (array.accumulator_bits - 1):
        return None
    bias = product.bias.constant.astype(np.int64)
    zero_point = int(product.input_zp.constant[0])
    weights = centered_weights(product).sum(axis=(1, 2))
    return Accumulators(array, sums, weights * zero_point - bias)
