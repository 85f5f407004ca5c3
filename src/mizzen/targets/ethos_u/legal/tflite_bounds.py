"""Operators whose results in Vela's code may differ from TFLite's kernels by a documented step.

Each has a table or a scale that Vela computes in another precision than the kernel. Ref:
docs/how-to/conformance.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.targets.bounds import Bound

FEW = Bound(1, 0.02)
ROWS = Bound(1, 0.5)
"""Of SOFTMAX all of a row differs that meets one of two entries of a table."""

BOUNDS = {
    ("SOFTMAX", "INT16"): ROWS,
    ("MUL", "INT16"): FEW,
    ("RELU", "INT16"): FEW,
    ("LEAKY_RELU", "INT16"): FEW,
    ("LOGISTIC", "INT16"): FEW,
    ("FULLY_CONNECTED", "INT8"): FEW,
    ("FULLY_CONNECTED", "UINT8"): FEW,
    ("FULLY_CONNECTED", "INT16"): FEW,
    ("BATCH_MATMUL", "INT8"): FEW,
    ("BATCH_MATMUL", "INT16"): FEW,
    ("GELU", "INT8"): FEW,
    ("GELU", "UINT8"): FEW,
}
"""By operator and type of the output."""


def bound_of(kind: str, dtype: str) -> Bound | None:
    """Return the documented bound of an operator's output of a type."""
    return BOUNDS.get((kind, dtype))


def scaled_apart(data: float, weights: Sequence[float], result: float) -> bool:
    """Whether the compiler scales a FULLY_CONNECTED by other multipliers than the kernel.

    It multiplies the scales of data and weights in single precision, the kernel in double; both
    make multipliers of 31 bits of them, which differ by less than 2^-23 of themselves: results of
    16 bits by less than 2^-8 of a step, so that fewer than one in 2^8 is rounded otherwise.
    """
    exact = np.float64(data) * np.asarray(weights, np.float64) / result
    single = (np.float32(data) * np.asarray(weights, np.float32)).astype(np.float64) / result
    return not np.array_equal(_multipliers(single), _multipliers(exact))


def _multipliers(scales: np.ndarray) -> np.ndarray:
    fractions, exponents = np.frexp(scales)
    return np.rint(fractions * 2.0**31) * 2.0**exponents
