"""Sums that a network leaves in floating point before a function, or before another sum.

Their range is not known, but that of the result is: beyond some bound, the result of a function
that ends flat or saturates is the same whatever the sum. So sums become 16-bit integers up to that
bound, of steps that the result does not see.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mizzen.frontends.onnx.lowering.call import within
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.terms import Pending, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Quantization, integer_range

LEAST, GREATEST = integer_range(DType.INT16)

REACH = np.geomspace(1e-4, 1e6, 1501)
"""Numbers, of either sign, at which a function is looked at."""

MARGIN = 1.02
"""By how much a bound is beyond the last of these at which a result still changes."""

STEEPEST = {DType.INT8: 0.25, DType.INT16: 1.5}
"""By how many steps of a result neighbouring integers of a sum may differ."""

WIDE = "put a QuantizeLinear and a DequantizeLinear before it"


def taken(x: Pending, bound: float) -> Real:
    """Return sums as 16-bit integers up to a bound, of either sign."""
    quantization = Quantization((bound / GREATEST,), (0,))
    target = Target(DType.INT16, quantization, LEAST, GREATEST)
    return Real(x.emit(within(target, x.low, x.high)))


def taken_for(
    x: Pending, function: Callable[[Array], Array], target: Target, steps: Callable[[Array], Array]
) -> Real:
    """Return sums as 16-bit integers for a function of theirs.

    steps  rounds and saturates results of the function as the target does
    """
    bound = bound_of(lambda reals: steps(function(reals)))
    integers = np.arange(LEAST, GREATEST + 1).astype(np.float32)
    reals = integers * np.float32(bound / GREATEST)
    low, high = (max(min(limit, bound), -bound) for limit in (x.low, x.high))
    curve = function(np.clip(reals, np.float32(low), np.float32(high))) / np.float32(target.scale)
    span = 1 << (8 * target.dtype.numpy.itemsize)
    change = np.abs(np.diff(np.clip(np.nan_to_num(curve), -span, span))).max()
    if change > STEEPEST[target.dtype]:
        raise RefusedError("its input is not quantised, and 16 bits are too few for it", WIDE)
    return taken(x, bound)


def bound_of(rounded: Callable[[Array], Array]) -> float:
    """Return how far from zero the results of a function still change."""
    bound = REACH[0]
    for sign in (1, -1):
        results = rounded((sign * REACH).astype(np.float32))
        changing = np.flatnonzero(results != results[-1])
        if changing.size:
            bound = max(bound, REACH[min(int(changing[-1]) + 1, REACH.size - 1)])
    if bound == REACH[-1]:
        raise RefusedError("its input is not quantised, and it never ends to change", WIDE)
    return float(bound) * MARGIN
