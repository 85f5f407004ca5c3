"""Layer and RMS normalization of 16-bit numbers: whole, in 32 bits inside.

Distances from the mean are shifted left as far as the furthest of a row allows, so that rows of any
spread have squares of as many digits. The sum of squares is shifted to 31 bits, a table gives the
inverse of its root, and what it was shifted by goes into the last shift. No range inside depends
on data, so a row may be a thousandth of another one.

Ref: TOSA 1.0, 2.4.14 TABLE, 2.6 ARITHMETIC_RIGHT_SHIFT, LOGICAL_LEFT_SHIFT, MUL, 2.7 CLZ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log2, prod, sqrt

import numpy as np

from mizzen.frontends.arrangement.choice import reduced
from mizzen.frontends.quantized.scales import requantize, rescale
from mizzen.frontends.quantized.sums import Sums, looked_up, multiplied, number
from mizzen.frontends.quantized.terms import Array, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Value
from mizzen.ops import Builder

DISTANCE_BITS = 14
"""Of fraction that a distance from the mean has: 17 bits of whole steps and these make 31."""

TERMS_MAXIMUM = 1 << 16
"""Terms whose sum 32 bits hold."""

ROOT_BITS = 16
"""Of fraction of the inverse root, which is from 1 to 2."""

PRODUCT_BITS = 18
"""That a distance of 31 bits times an inverse root of 17 loses: 30 are left."""

SQUARES_BITS = 30
"""Of a sum of squares, and of what is added to it."""

SQUARES_MAXIMUM = 0.98 * (1 << SQUARES_BITS)

WEIGHT = (1 << 15) - 1
"""What stands for the greatest weight."""

ROOTS_LEAST = 0.25
"""A sum of squares is shifted by an even number of bits, so it is from a quarter to 1."""

PLACES = np.linspace(ROOTS_LEAST, 1, 2 * 256 + 1)
"""The sums that the table of inverse roots has entries for."""


@dataclass(frozen=True, eq=False)
class Normalization:
    """What is normalised, and what follows: factors and addends, float64 in the input's rank.

    epsilon  what is added to the mean square
    """

    axes: Sequence[int]
    epsilon: float
    weight: Array | None = None
    bias: Array | None = None


def layer_norm(b: Builder, x: Real, how: Normalization, target: Target) -> Value:
    """Return distances from the mean over their root mean square, along axes."""
    return _normalized(b, x, how, _distances(b, x, how.axes), target)


def rms_norm(b: Builder, x: Real, how: Normalization, target: Target) -> Value:
    """Return numbers over their root mean square, along axes."""
    return _normalized(b, x, how, _numbers(b, x, how.axes), target)


def need_few_terms(shape: Sequence[int], axes: Sequence[int]) -> None:
    """Refuse sums along axes that 32 bits do not hold."""
    terms = prod(shape[axis] for axis in axes)
    if terms > TERMS_MAXIMUM:
        raise RefusedError(f"it sums {terms} numbers, and 32 bits hold {TERMS_MAXIMUM}")


def _normalized(b: Builder, x: Real, how: Normalization, spread: _Spread, target: Target) -> Value:
    shape = x.value.shape
    terms = prod(shape[axis] for axis in how.axes)
    spreads = _Rows(b, spread, Sums.of(shape, how.axes), terms)
    value, unit = spreads.over_root(how.epsilon * (1 << DISTANCE_BITS) ** 2 / x.scale**2)
    value, unit = _times(b, value, unit, how.weight, sqrt(terms))
    return requantize(b, _plus(b, value, unit, how.bias), unit, target)


@dataclass(frozen=True, slots=True)
class _Spread:
    """What is divided by its root mean square: int32 of `DISTANCE_BITS`; the furthest of a row."""

    value: Value
    furthest: Value


def _distances(b: Builder, x: Real, axes: Sequence[int]) -> _Spread:
    """Return distances from the mean."""
    terms = prod(x.value.shape[axis] for axis in axes)
    total = reduced(b, "REDUCE_SUM", rescale(b, x.value, 1.0, DType.INT32), axes)
    mean = rescale(b, total, (1 << DISTANCE_BITS) / terms, DType.INT32)
    greatest, least = (_edge(b, kind, x, axes) for kind in ("REDUCE_MAX", "REDUCE_MIN"))
    furthest = b("MAXIMUM", b("SUB", greatest, mean), b("SUB", mean, least))
    return _Spread(b("SUB", _fine(b, x.value), mean), furthest)


def _numbers(b: Builder, x: Real, axes: Sequence[int]) -> _Spread:
    """Return the numbers themselves."""
    greatest, least = (_edge(b, kind, x, axes) for kind in ("REDUCE_MAX", "REDUCE_MIN"))
    furthest = b("MAXIMUM", greatest, b("SUB", number(b, 0, least), least))
    return _Spread(_fine(b, x.value), furthest)


def _edge(b: Builder, kind: str, x: Real, axes: Sequence[int]) -> Value:
    return _fine(b, reduced(b, kind, x.value, axes))


def _fine(b: Builder, value: Value) -> Value:
    return multiplied(b, rescale(b, value, 1.0, DType.INT32), 1 << DISTANCE_BITS)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows that are divided by their root mean square.

    sums   how squares are summed
    terms  how many numbers a row has
    """

    b: Builder
    spread: _Spread
    sums: Sums
    terms: int

    def over_root(self, epsilon: float) -> tuple[Value, float]:
        """Return the quotients, int32, and the unit they are in.

        epsilon  what is added to the mean square, in squares of the distances' unit
        """
        b = self.b
        lost = 62 - self.sums.term_bits
        bits = lost + self.sums.bits
        added = epsilon * self.terms * 2.0**-bits
        # Where what is added is more than any square, the squares give way.
        spare = max(0, ceil(log2(added)) - (SQUARES_BITS - 1)) if added else 0
        spare = min(spare, 63 - lost)
        room = floor(log(SQUARES_MAXIMUM / added * 2.0**spare, 4)) if added else 31
        most = min(31, max(0, room))
        left = b("SUB", b("CLZ", self.spread.furthest), number(b, 1, self.spread.furthest))
        left = b("MINIMUM", left, number(b, most, left))
        value = b("LOGICAL_LEFT_SHIFT", self.spread.value, left)
        squares = b("MUL", value, value, b.constant([lost + spare], DType.INT8))
        total = self.sums.add(b, squares)
        if added:
            total = b("ADD", total, _added(b, left, most, added * 2.0**-spare))
        return self._over(value, total, bits, spare)

    def _over(self, value: Value, total: Value, bits: int, spare: int) -> tuple[Value, float]:
        """Divide by the root of a sum of squares that lost `bits` and `spare` bits."""
        b = self.b
        pairs = rescale(b, b("SUB", b("CLZ", total), number(b, 2, total)), 0.5, DType.INT32)
        shifted = b("LOGICAL_LEFT_SHIFT", total, b("ADD", pairs, pairs))
        place = b("SUB", shifted, number(b, 5 << 28, total))
        index = rescale(b, place, (1 << 16) / (3 << 29), DType.INT16)
        entries = (1 / np.sqrt(PLACES) - 1.5) * (1 << ROOT_BITS)
        root = b("ADD", looked_up(b, index, entries), number(b, 3 << (ROOT_BITS - 1), total))
        product = b("MUL", value, root, b.constant([PRODUCT_BITS], DType.INT8))
        # The least sum is one square of 60 bits.
        most = ceil((bits - 29) / 2) + 1
        places = b("SUB", number(b, most, pairs), pairs)
        places = b("MAXIMUM", places, number(b, 0, places))
        divided = b("ARITHMETIC_RIGHT_SHIFT", product, places, round=True)
        unit = 2.0 ** (PRODUCT_BITS + most - ROOT_BITS - 15.5 - (bits + spare) / 2)
        return divided, unit * sqrt(self.terms)


def _added(b: Builder, left: Value, most: int, added: float) -> Value:
    """Return the amount that is added to the squares of rows that were shifted left, int32."""
    constant = number(b, round(added * 4.0**most), left)
    short = b("SUB", number(b, most, left), left)
    places = b("MINIMUM", b("ADD", short, short), number(b, 31, left))
    return b("ARITHMETIC_RIGHT_SHIFT", constant, places, round=True)


def _times(
    b: Builder, value: Value, unit: float, weight: Array | None, most: float
) -> tuple[Value, float]:
    """Multiply numbers up to `most` by a constant; return the product and its unit."""
    if weight is None:
        return value, unit
    greatest = float(np.abs(weight).max()) or 1.0
    if np.all(weight == greatest):
        return value, unit * greatest
    integers = np.rint(weight / greatest * WEIGHT).astype(np.int64)
    lost = max(0, ceil(log2(most / unit * WEIGHT)) - 30)
    factor = b.constant(integers, DType.INT32)
    product = b("MUL", value, factor, b.constant([lost], DType.INT8))
    return product, unit * greatest / WEIGHT * 2.0**lost


def _plus(b: Builder, value: Value, unit: float, bias: Array | None) -> Value:
    """Add a constant in the unit of a value of up to 30 bits."""
    if bias is None or not bias.any():
        return value
    return b("ADD", value, b.constant(np.rint(bias / unit).astype(np.int64), DType.INT32))
