"""Into how many parts sums over input channels may be cut, by the range of accumulators."""

from __future__ import annotations

import math

import numpy as np

from mizzen.mesh.machine.machine import ElementKind, Overflow
from mizzen.mesh.network.network import Layer, LayerKind
from mizzen.mesh.network.ranges import greatest_sums, product_of
from mizzen.mesh.network.regions import Span

CORE_BITS = 32
PRODUCT_BITS = 14
"""No product of two bytes has more bits, its sign aside."""


class SumRange:
    """What the sums of a layer can be, by its real weights where it has them."""

    def __init__(self, layer: Layer, kinds: tuple[ElementKind, ...]) -> None:
        self.layer = layer
        self.arrays = [kind.array for kind in kinds if kind.array is not None]
        self.bits = min((array.accumulator_bits for array in self.arrays), default=CORE_BITS)
        product = None if layer.chain is None else product_of(layer.chain)
        sums = None if product is None else greatest_sums(product)
        self.sums = None if sums is None or sums.shape[1] != layer.input_channels else sums

    @property
    def may_be_cut(self) -> bool:
        """Whether cutting is exact: no part of a sum leaves the range of an array that saturates.

        Without weights the worst case decides. What wraps is exact however it is cut.
        """
        if self.layer.kind is not LayerKind.CONVOLUTION or self.layer.window is None:
            return False
        if self.sums is not None or all(array.overflow is Overflow.WRAP for array in self.arrays):
            return True
        products = math.prod(self.layer.window.kernel) * self.layer.input_channels
        return products << PRODUCT_BITS < 1 << (self.bits - 1)

    def holds(self, spans: list[Span]) -> bool:
        """Whether sums over each of these input channels stay in range; so if nothing is known."""
        if self.sums is None or self.bits >= CORE_BITS:
            return True
        limit = (1 << (self.bits - 1)) - 1
        return all(
            int(np.asarray(self.sums[:, first:last]).sum(axis=1).max(initial=0)) <= limit
            for first, last in spans
        )
