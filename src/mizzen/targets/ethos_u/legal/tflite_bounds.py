"""Operators whose results on the NPU may differ from TFLite's kernels by a documented step.

Each has a table or a scale that Vela computes in another precision than the kernel; nothing can be
done about it without computing that again. Ref: docs/explanation/exceptions.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

STEPS = {
    ("SOFTMAX", "INT16"): 1,
    ("MUL", "INT16"): 1,
    ("RELU", "INT16"): 1,
    ("RELU6", "INT16"): 1,
    ("LEAKY_RELU", "INT16"): 1,
    ("FULLY_CONNECTED", "INT8"): 1,
    ("FULLY_CONNECTED", "UINT8"): 1,
    ("BATCH_MATMUL", "INT8"): 1,
    ("BATCH_MATMUL", "INT16"): 1,
    ("GELU", "INT8"): 1,
    ("GELU", "UINT8"): 1,
}
"""The largest difference, in integers of the output, by operator and type."""


def bound_of(kind: str, dtype: str) -> int | None:
    """Return the largest documented difference of an operator's output of a type."""
    return STEPS.get((kind, dtype))


def scaled_apart(data: float, weights: Sequence[float], result: float) -> bool:
    """Whether the compiler scales a FULLY_CONNECTED by other multipliers than the kernel.

    It multiplies the scales of data and weights in single precision, the kernel in double; both
    make multipliers of 31 bits of them, which differ by less than 2^-23 of themselves.
    """
    exact = np.float64(data) * np.asarray(weights, np.float64) / result
    single = (np.float32(data) * np.asarray(weights, np.float32)).astype(np.float64) / result
    return not np.array_equal(_multipliers(single), _multipliers(exact))


def _multipliers(scales: np.ndarray) -> np.ndarray:
    fractions, exponents = np.frexp(scales)
    return np.rint(fractions * 2.0**31) * 2.0**exponents
