"""Sums of 32-bit numbers, put together from sums of parts, and 32-bit numbers from tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, prod

import numpy as np

from mizzen.frontends.arrangement.choice import reduced
from mizzen.frontends.arrangement.movement import sliced
from mizzen.frontends.quantized.scales import rescale
from mizzen.frontends.quantized.tables import FRACTION_BITS
from mizzen.frontends.quantized.terms import Array
from mizzen.graph import DType, Value
from mizzen.ops import Builder

SUM_BITS = 30
"""Of a sum: its terms have as many less those of their number."""

TERMS_AT_ONCE = 256
"""Terms of one sum. Each is rounded by half of 2**-22, together less than 2**-14 of the greatest.
Sums of more are put together from such sums, which are rounded again, so there are few of them.
"""

SUMS_MAXIMUM = 16


@dataclass(frozen=True, slots=True)
class Sums:
    """How terms are summed: in parts of an axis, of up to `size` rows.

    terms  how many are summed at once
    bits   that each of the sums loses before they are summed
    """

    axes: tuple[int, ...]
    axis: int
    size: int
    terms: int
    bits: int

    @staticmethod
    def of(shape: Sequence[int], axes: Sequence[int]) -> Sums:
        """Part the longest axis."""
        axis = max(axes, key=lambda each: shape[each])
        extent, others = shape[axis], prod(shape[each] for each in axes if each != axis)
        size = min(extent, max(1, TERMS_AT_ONCE // others, ceil(extent / SUMS_MAXIMUM)))
        bits = ceil(log2(ceil(extent / size)))
        return Sums(tuple(axes), axis, size, size * others, bits)

    @property
    def term_bits(self) -> int:
        """Bits that a term may have."""
        return SUM_BITS - ceil(log2(self.terms))

    def add(self, b: Builder, terms: Value) -> Value:
        """Return the sum of all terms."""
        extent = terms.shape[self.axis]
        starts = range(0, extent, self.size)
        parts = [sliced(b, terms, self.axis, at, min(self.size, extent - at)) for at in starts]
        sums = [reduced(b, "REDUCE_SUM", part, list(self.axes)) for part in parts]
        if self.bits:
            sums = [rescale(b, each, 2.0**-self.bits, DType.INT32) for each in sums]
        total, *rest = sums
        for part in rest:
            total = b("ADD", total, part)
        return total


def looked_up(b: Builder, index: Value, entries: Array) -> Value:
    """Return a table's integers, 32 bits of which 16 are used."""
    integers = np.rint(entries).clip(-(1 << 15), (1 << 15) - 1).astype(np.int64)
    values = b("TABLE", index, b.constant(integers, DType.INT16))
    return rescale(b, rescale(b, values, 2.0**-FRACTION_BITS, DType.INT16), 1.0, DType.INT32)


def number(b: Builder, value: int, like: Value) -> Value:
    """Return a 32-bit number in a tensor's rank."""
    return b.constant(np.full((1,) * like.type.rank, value), DType.INT32)


def multiplied(b: Builder, value: Value, factor: int) -> Value:
    """Return 16-bit numbers, widened to 32, times one of 16 bits: one operation on Ethos-U55."""
    narrow = b.constant(np.full((1,) * value.type.rank, factor), DType.INT16)
    return b("MUL", value, rescale(b, narrow, 1.0, DType.INT32), b.constant([0], DType.INT8))
