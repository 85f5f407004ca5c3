"""From the accumulator to 8 bits: multiply, shift, round, add the zero point, bound.

The shift's rounding is in the closed specification of the compute engine; half up is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


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
