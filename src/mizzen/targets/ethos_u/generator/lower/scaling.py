"""Constants of a graph, and what a RESCALE makes of integers.

Ref: TOSA 1.0, 2.13.2 RESCALE.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mizzen.graph import RoundingMode, Value, integer_range
from mizzen.ops.type_conversion import Rescale
from mizzen.targets.ethos_u.generator.lower.refusing import need

Int64 = npt.NDArray[np.int64]


def numbers(value: Value) -> Int64:
    """Return the elements of a constant in one dimension; refused where it is not one."""
    array = value.constant
    need(array is not None, "a number of it is computed")
    assert array is not None
    return array.reshape(-1).astype(np.int64)


def number(value: Value) -> int:
    """Return the one element of a constant."""
    return int(numbers(value)[0])


def rescaled(step: Rescale, values: Int64) -> Int64:
    """Return what a RESCALE by one scale makes of integers, as int64."""
    need(not (step.input_unsigned or step.output_unsigned), "it takes integers as unsigned")
    multipliers, shifts = numbers(step.multiplier), numbers(step.shift)
    need(len(multipliers) == 1, "its channels have scales of their own")
    multiplier, shift = int(multipliers[0]), int(shifts[0])
    centered = values - number(step.input_zp)
    half = np.full_like(centered, 1 << shift >> 1)
    if step.rounding_mode is RoundingMode.DOUBLE_ROUND and shift > 31:
        half = half + np.where(centered >= 0, 1 << 30, -(1 << 30))
    result = ((centered * multiplier + half) >> shift) + number(step.output_zp)
    return np.clip(result, *integer_range(step.result.dtype))
