"""Arithmetic on the way to 8 bits: of the accumulators, and of the layer engine's registers.

An accumulator is multiplied, shifted, rounded, offset and bounded; the shift's rounding is in the
closed specification of the compute engine, half up is taken. A lane of the programmable layer
engine has 16 bits and wraps. As an input has 8 bits, what a kernel makes of one element is a table
of 256 entries, which is computed once.

Ref: Ethos-N driver stack 25.03, `CExec.hpp` (`Rescale`), `Sigmoid.cpp`,
`InstructionDescriptions_v417.csv`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Table = npt.NDArray[np.int64]

_SHIFT_MASK = 31
"""A shift is the low five bits of a register."""
_ONE = 256
"""1.0 in the 8.8 format of the special functions."""


def wrapped_16(values: Array) -> Array:
    """Return values as a signed register of 16 bits holds them."""
    return ((values + 0x8000) & 0xFFFF) - 0x8000


def every_input(dtype: np.dtype[Any]) -> Table:
    """Return the 256 numbers of an 8-bit type in the order of their bytes."""
    return np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64)


def looked_up(values: Array, table: Table, dtype: np.dtype[Any]) -> Array:
    """Return the entry of a table for each element of an 8-bit array, as `dtype`."""
    return table.astype(dtype)[values.view(np.uint8)]


def rescaled(numbers: Table, zero_point: int, multiplier: int, shift: int) -> Table:
    """Return (number - zero point) * multiplier / 2**shift, half up, in 16 bits.

    The kernel shifts one bit less with saturation, adds one and shifts again; the addition wraps.
    """
    product = (numbers - zero_point) * multiplier
    halves = np.clip(product >> ((shift - 1) & _SHIFT_MASK), -0x8000, 0x7FFF)
    return wrapped_16(halves + 1) >> 1


def saturated(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return 16-bit values as an 8-bit type, clipped to its range."""
    limits = np.iinfo(dtype)
    return np.clip(values, limits.min, limits.max).astype(dtype)


def sigmoid_table(dtype: np.dtype[Any], zero_point: int, multiplier: int, shift: int) -> Table:
    """Return the logistic function of each 8-bit number; tanh is it with another multiplier.

    The input's magnitude goes to 8.8 fixed point; EXP2 and RCP are taken to round correctly.
    """
    numbers = every_input(dtype) - zero_point
    scaled = np.abs(numbers) * multiplier >> (shift & _SHIFT_MASK)
    exponent = wrapped_16(-np.minimum(scaled, 0xFFFF))
    power = np.minimum(np.rint(np.exp2(exponent / _ONE) * _ONE), 0xFFFF).astype(np.int64)
    divisor = (power + _ONE) & 0xFFFF
    quotient = np.minimum(np.rint(_ONE * _ONE / np.maximum(divisor, 1)), 0xFFFF).astype(np.int64)
    low = (quotient & 0xFF) - (quotient >> 8) + np.iinfo(dtype).min
    low = np.where(numbers < 0, -low, low) & 0xFF
    return low.astype(np.uint8).view(dtype).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Requantizer:
    """floor((sum + bias) * factor + 1/2) + zero point, within bounds, for each channel.

    factor  multiplier / 2**shift
    offset  bias * factor + 1/2

    All is exact in float64: a sum of 32 bits times 16 bits is below 2**48, and with the half at
    most 2**49, in units of 2**-47.
    """

    factor: npt.NDArray[np.float64]
    offset: npt.NDArray[np.float64]
    zero_point: int
    lower: int
    upper: int

    def __call__(self, sums: Array, target: Array) -> None:
        """Put the result of `sums`, `[..., C]` of a float type, into `target` of 8 bits."""
        scaled = np.multiply(sums, self.factor, dtype=np.float64)
        scaled += self.offset
        np.floor(scaled, out=scaled)
        if self.zero_point:
            scaled += self.zero_point
        np.clip(scaled, self.lower, self.upper, out=scaled)
        np.copyto(target, scaled, casting="unsafe")


def requantizer(
    bias: npt.NDArray[np.int64],
    multiplier: npt.NDArray[np.int64],
    shift: npt.NDArray[np.int64],
    zero_point: int,
    bounds: tuple[int, int],
) -> Requantizer:
    """Prepare the constants of each channel."""
    factor = np.ldexp(multiplier.astype(np.float64), -shift)
    offset = bias.astype(np.float64) * factor + np.float64(0.5)
    return Requantizer(factor, offset, zero_point, *bounds)
