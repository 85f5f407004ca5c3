"""Softmax of 16-bit numbers, its logarithm and ``logsumexp``: whole, in 32 bits inside.

The exponential of a distance below the greatest is a power of two. A table gives that of the
fraction, to 15 bits, and a shift takes the whole part; so small terms keep their digits, and the
sum of many of them is right. The sum is shifted to 31 bits, a table gives its inverse or its
logarithm, and what it was shifted by goes into the last shift. No range inside depends on data.

Ref: TOSA 1.0, 2.4.14 TABLE, 2.6 ARITHMETIC_RIGHT_SHIFT, LOGICAL_LEFT_SHIFT, 2.7 CLZ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, e, log, log2, prod, sqrt

import numpy as np

from mizzen.frontends.arrangement.choice import reduced
from mizzen.frontends.arrangement.movement import reshape
from mizzen.frontends.quantized.scales import requantize, rescale
from mizzen.frontends.quantized.sums import Sums, looked_up, multiplied, number
from mizzen.frontends.quantized.tables import STEP
from mizzen.frontends.quantized.terms import Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Value
from mizzen.ops import Builder

FRACTION_BITS = 15
"""Of the binary logarithm of a term; its exponential has as many."""

OCTAVES_MAXIMUM = 30
"""A term this many octaves below the greatest is nothing: 32-bit shifts go no further."""

TERMS_BITS = 16
"""Most bits of the number of terms."""

TERM_BITS_MAXIMUM = 29
"""Of one term: RESCALE takes 16 bits times 2**14, no more."""

INVERSE_BITS = 17
"""Of the inverse of the sum, which is between 0.5 and 1."""

RESULT_BITS = 23
"""Of a weight, before it is rounded to the result's scale."""

LOGARITHM_BITS = 16
"""Of the fraction of the binary logarithm of a sum."""

ONE = int(((1 << FRACTION_BITS) - 1) / sqrt(2))
"""What stands for the greatest term, 1: a fraction is from -0.5 to 0.5."""

MANTISSAS = np.arange(2 << FRACTION_BITS, (4 << FRACTION_BITS) + 1, STEP) / (2 << FRACTION_BITS)
"""The numbers from 1 to 2 that a table of 16-bit mantissas has entries for."""


MOST_DIMENSIONS = 4
"""More are folded into three: not every NPU broadcasts either operand in more."""


def softmax(
    b: Builder, x: Real, axes: Sequence[int], target: Target, shape: Sequence[int]
) -> Value:
    """Return each number's exponential over the sum of all along axes."""
    x, axes = _folded(b, x, axes)
    weights = _Terms.of(b, x, axes).weights()
    return reshape(b, requantize(b, weights, 2.0**-RESULT_BITS, target), shape)


def log_softmax(
    b: Builder, x: Real, axes: Sequence[int], target: Target, shape: Sequence[int]
) -> Value:
    """Return each number less the logarithm of the sum of all exponentials along axes."""
    x, axes = _folded(b, x, axes)
    terms, unit = _Terms.of(b, x, axes), _unit(x)
    below = rescale(b, b("SUB", terms.value, terms.greatest), x.scale / unit, DType.INT32)
    value = requantize(b, b("SUB", below, terms.logarithm(unit)), unit, target)
    return reshape(b, value, shape)


def logsumexp(
    b: Builder, x: Real, axes: Sequence[int], target: Target, shape: Sequence[int]
) -> Value:
    """Return the logarithm of the sum of all exponentials along axes."""
    x, axes = _folded(b, x, axes)
    terms, unit = _Terms.of(b, x, axes), _unit(x)
    greatest = rescale(b, terms.greatest, x.scale / unit, DType.INT32)
    value = requantize(b, b("ADD", greatest, terms.logarithm(unit)), unit, target)
    return reshape(b, value, shape)


def need_few_terms(shape: Sequence[int], axes: Sequence[int]) -> None:
    """Refuse sums along axes that 32 bits do not hold."""
    count = prod(shape[axis] for axis in axes)
    if count > 1 << TERMS_BITS:
        raise RefusedError(f"its sum has {count} terms, and 32 bits hold {1 << TERMS_BITS}")


def _folded(b: Builder, x: Real, axes: Sequence[int]) -> tuple[Real, Sequence[int]]:
    """Return a tensor of many dimensions in three, which every NPU broadcasts in."""
    shape, first, last = x.value.shape, axes[0], axes[-1]
    if len(shape) <= MOST_DIMENSIONS or len(axes) != last - first + 1:
        return x, axes
    parts = shape[:first], shape[first : last + 1], shape[last + 1 :]
    return Real(reshape(b, x.value, [prod(part) for part in parts])), [1]


def _unit(x: Real) -> float:
    """Return the unit of 32-bit numbers that hold any score and logarithm of a sum."""
    return ((2 << FRACTION_BITS) * x.scale + TERMS_BITS * log(2)) * 2.0**-29


@dataclass(frozen=True, eq=False)
class _Terms:
    """The exponentials of scores, and their sum.

    value     the scores, int32 in steps of the input
    greatest  the greatest of them along the axes
    terms     exponentials of the distances below it, int32, `bits` of fraction, 1 is a bit less
    sums      which parts of the terms are summed at once
    """

    b: Builder
    value: Value
    greatest: Value
    terms: Value
    bits: int
    sums: Sums

    @staticmethod
    def of(b: Builder, x: Real, axes: Sequence[int]) -> _Terms:
        """Add the exponentials."""
        sums = Sums.of(x.value.shape, axes)
        bits = min(sums.term_bits, TERM_BITS_MAXIMUM)
        greatest = reduced(b, "REDUCE_MAX", x.value, axes)
        value, most = (rescale(b, each, 1.0, DType.INT32) for each in (x.value, greatest))
        terms = _exponentials(b, b("SUB", most, value), x.scale * log2(e), bits)
        return _Terms(b, value, most, terms, bits, sums)

    @property
    def sum_bits(self) -> int:
        """Bits of fraction of the sum."""
        return self.bits - self.sums.bits

    def weights(self) -> Value:
        """Return terms over their sum, int32 of `RESULT_BITS`."""
        b = self.b
        zeros, mantissa = self._sum()
        entries = (1 / MANTISSAS - 0.75) * (1 << INVERSE_BITS)
        offset = 3 << (INVERSE_BITS - 2)
        inverse = b("ADD", looked_up(b, mantissa, entries), number(b, offset, zeros))
        # A product of up to bits + INVERSE_BITS loses those beyond 30.
        lost = self.bits + INVERSE_BITS - 30
        product = b("MUL", self.terms, inverse, b.constant([lost], DType.INT8))
        gone = self.sums.bits + INVERSE_BITS + 31 - lost - RESULT_BITS
        places = b("SUB", number(b, gone, zeros), zeros)
        return b("ARITHMETIC_RIGHT_SHIFT", product, places, round=True)

    def logarithm(self, unit: float) -> Value:
        """Return the natural logarithm of the sum, int32 in a unit."""
        b = self.b
        zeros, mantissa = self._sum()
        one = 1 << LOGARITHM_BITS
        fraction = looked_up(b, mantissa, (np.log2(MANTISSAS) - 0.5) * one)
        whole = 31.5 - self.sum_bits + FRACTION_BITS - log2(ONE)
        octaves = b(
            "SUB", number(b, round(whole * one), zeros), rescale(b, zeros, one, DType.INT32)
        )
        return rescale(b, b("ADD", fraction, octaves), log(2) / one / unit, DType.INT32)

    def _sum(self) -> tuple[Value, Value]:
        """Return how many leading zeros the sum has, and its mantissa less 1.5, int16."""
        b = self.b
        total = self.sums.add(b, self.terms)
        zeros = b("CLZ", total)
        places = b("SUB", zeros, number(b, 1, zeros))
        shifted = b("LOGICAL_LEFT_SHIFT", total, places)
        above = b("SUB", shifted, number(b, 3 << 29, zeros))
        return zeros, rescale(b, above, 2.0**-14, DType.INT16)


def _exponentials(b: Builder, distance: Value, octaves: float, bits: int) -> Value:
    """Return 2 to the power of minus `octaves` for each step of a distance, int32 of some bits."""
    one, octaves = 1 << FRACTION_BITS, min(octaves, OCTAVES_MAXIMUM)
    furthest = int(OCTAVES_MAXIMUM / octaves)
    if furthest < 2 * one:
        distance = b("MINIMUM", distance, number(b, furthest, distance))
    # The compiler would rescale once for each use; a product it keeps.
    spare = min(62, 30 - ceil(log2(octaves * one)))
    factor = number(b, round(octaves * one * 2.0**spare), distance)
    places = b("MUL", distance, factor, b.constant([spare], DType.INT8))
    fraction_bits = number(b, FRACTION_BITS, distance)
    whole = b("ARITHMETIC_RIGHT_SHIFT", places, fraction_bits, round=True)
    fraction = b("SUB", places, b("LOGICAL_LEFT_SHIFT", whole, fraction_bits))
    points = np.arange(-one, one + 1, STEP) / one
    power = looked_up(b, rescale(b, fraction, 1.0, DType.INT16), ONE * 0.5**points)
    raised = multiplied(b, power, 1 << (bits - FRACTION_BITS))
    return b("ARITHMETIC_RIGHT_SHIFT", raised, whole, round=True)
