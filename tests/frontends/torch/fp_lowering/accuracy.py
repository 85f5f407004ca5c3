"""How far float32 may be from float64, when what is computed is right.

The oracle and PyTorch both compute in float32, each in its own order. With a third computation in
float64, PyTorch's own error says what roundings cost in this network for this input.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

UNIT = 2.0**-24
"""Unit roundoff of float32."""

LANES = 8
"""Partial sums of PyTorch's dot products: 256-bit vectors of float32."""

ROUNDINGS = 4
"""Of ours for one of PyTorch's: SiLU, softmax and norms are several operations, and folding a
batch norm rounds each weight once more."""


def rms(array: Array) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.mean(np.square(array.astype(np.float64)))))


def network_bound(exact: Array, eager: Array) -> float:
    """Return how much the outputs' error may be, root of the mean square.

    Roundings of sums are independent. In a sum of n terms one after the other, as the oracle adds,
    errors grow with sqrt(n); PyTorch adds `LANES` sums side by side, each of n / LANES terms, whose
    error is sqrt(LANES) less. The amplification by the layers behind is the same for both, and
    PyTorch's measured error contains it. A network of few roundings may have none by chance: one
    rounding for each of ours, of the greatest output, is allowed at least.
    """
    return ROUNDINGS * (LANES**0.5 * rms(eager - exact) + UNIT * float(np.abs(exact).max()))
