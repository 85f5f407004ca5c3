"""Fixed-point scaling: multiply by an integer, shift right, round.

Every scaling in the simulator goes through this module. A `Scaling` is prepared once from the
machine's multipliers and shifts; `apply` then works in place on 64-bit accumulators.

Ref: gemmlowp's SaturatingRoundingDoublingHighMul and RoundingDivideByPOT for DOUBLE, which TOSA 1.0
states as `apply_scale_32` with double rounding; the other modes round once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail

Int64 = npt.NDArray[np.int64]
Integers = npt.NDArray[np.signedinteger]

INT64_LIMIT = 1 << 63
INT32_LIMIT = 1 << 31
DOUBLING_BITS = 31
"""Where DOUBLE rounds first: the high half of a doubled 32 x 32 bit product."""


class Rounding(Enum):
    """How a shifted product becomes an integer."""

    DOUBLE = "half up at bit 31, then half away from zero"
    TRUNCATE = "toward zero"
    NATURAL = "half up"
    SYMMETRIC = "half away from zero"
    FLOOR = "down"
    ASYMMETRIC = "like DOUBLE, as far as is known"


ONCE = (Rounding.NATURAL, Rounding.TRUNCATE, Rounding.FLOOR)
"""Modes of a single shift; the others end in one that rounds half away from zero."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What registers say of a scaling: `round(v * multiplier / 2**shift)`.

    `doubling_bit` is where DOUBLE rounds first.
    """

    multiplier: int
    shift: int
    rounding: Rounding
    doubling_bit: int = DOUBLING_BITS

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return self.multiplier == 1 and self.shift == 0


@dataclass(frozen=True, slots=True)
class Scaling:
    """`round((v + bias) * multiplier / 2**shift)`, per channel or for all.

    multiplier, first_shift, second_shift and addend broadcast against `[..., C]`. `bound` is the
    largest `|v|` for which no intermediate leaves 64 bits.
    """

    multiplier: Int64
    addend: Int64
    first_shift: Int64
    second_shift: Int64
    second_half: Int64
    ties_down: Int64
    truncate: bool
    bound: int

    def apply(self, v: Int64) -> Int64:
        """Scale `v` `[..., C]` in place and return it; `|v|` must be at most `bound`."""
        if self.truncate:
            return self._truncated(v)
        np.multiply(v, self.multiplier, out=v)
        np.add(v, self.addend, out=v)
        np.right_shift(v, self.first_shift, out=v)
        if self.has_second_step:
            self.second_step(v)
        return v

    @property
    def has_second_step(self) -> bool:
        """Whether any channel shifts by more than the first step does."""
        return bool(self.second_shift.any())

    def second_step(self, v: Integers) -> None:
        """Round half away from zero by `second_shift`, in place."""
        sign = np.right_shift(v, v.dtype.itemsize * 8 - 1)
        np.bitwise_and(sign, self.ties_down.astype(v.dtype), out=sign)
        np.add(v, sign, out=v)
        np.add(v, self.second_half.astype(v.dtype), out=v)
        np.right_shift(v, self.second_shift.astype(v.dtype), out=v)

    def _truncated(self, v: Int64) -> Int64:
        np.multiply(v, self.multiplier, out=v)
        np.add(v, self.addend, out=v)
        below = np.bitwise_and(np.right_shift(v, 63), (np.int64(1) << self.first_shift) - 1)
        np.add(v, below, out=v)
        return np.right_shift(v, self.first_shift, out=v)


def scaling(
    multiplier: npt.ArrayLike,
    shift: npt.ArrayLike,
    rounding: Rounding,
    bias: npt.ArrayLike = 0,
    doubling_bit: int = DOUBLING_BITS,
) -> Scaling:
    """Prepare the scaling by `multiplier * 2**-shift`, `0 <= shift < 64`, after adding `bias`.

    `doubling_bit` is where DOUBLE rounds first. Raises E602 for a bias whose scaled value leaves
    64 bits.
    """
    multiplier_, shift_ = np.broadcast_arrays(
        np.atleast_1d(np.asarray(multiplier, np.int64)), np.asarray(shift, np.int64)
    )
    first = _first_shift(shift_, rounding, doubling_bit)
    second = shift_ - first
    down = rounding in (Rounding.TRUNCATE, Rounding.FLOOR)
    half = np.zeros_like(first) if down else (np.int64(1) << first) >> 1
    bias_ = np.atleast_1d(np.asarray(bias, np.int64))
    largest, largest_bias = max(1, _largest(multiplier_)), _largest(bias_)
    bias_bound = largest_bias * largest + int(half.max())
    if bias_bound >= INT64_LIMIT:
        raise fail(
            "E602",
            f"a scaled bias must fit 64 bits, not {largest_bias} * {largest}",
            help="this is beyond what the simulator computes exactly; please report the network",
        )
    return Scaling(
        multiplier=multiplier_.astype(np.int64),
        addend=bias_ * multiplier_ + half,
        first_shift=first.astype(np.int64),
        second_shift=second.astype(np.int64),
        second_half=((np.int64(1) << second) >> 1).astype(np.int64),
        ties_down=np.where(second > 0, np.int64(-1), np.int64(0)),
        truncate=rounding is Rounding.TRUNCATE,
        bound=(INT64_LIMIT - 1 - bias_bound) // largest,
    )


def _largest(values: Int64) -> int:
    """Return the largest magnitude, as a number of any width."""
    return max(int(values.max()), -int(values.min()))


def prepared(scale: Scale) -> Scaling:
    """Prepare what registers say."""
    return scaling(scale.multiplier, scale.shift, scale.rounding, 0, scale.doubling_bit)


def _first_shift(shift: Int64, rounding: Rounding, doubling_bit: int) -> Int64:
    if rounding in ONCE:
        return shift
    return np.minimum(shift, 0 if rounding is Rounding.SYMMETRIC else doubling_bit)
