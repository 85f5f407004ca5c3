"""The pooling kernels of the programmable layer engine; 8-bit `[n, H, W, C]` in and out.

Ref: Ethos-N driver stack 25.03, `MeanXyCommon.hpp`, `AvgPool_3x3_1_1_Udma.cpp`,
`MaxPool_2x2_2_2.cpp`, `MaxPool_3x3_2_2_Common.hpp`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_MEAN_SHIFT = 20
_AVERAGE_SHIFT = 16


def mean_of_plane(values: Array) -> Array:
    """Return mean of each plane, `[n, 1, 1, C]`, rounded half up but for the reciprocal's error.

    Sums of at most 64 elements fit 16 bits; products are of 32, whose high half is shifted.
    """
    count = values.shape[1] * values.shape[2]
    multiplier = (1 << _MEAN_SHIFT) // count + 1
    sums = values.sum(axis=(1, 2), dtype=np.int64, keepdims=True)
    return ((sums + count // 2) * multiplier >> _MEAN_SHIFT).astype(values.dtype)


def average_3x3(values: Array) -> Array:
    """Return the mean of the 3 x 3 elements around each, those outside the plane left out.

    The kernel knows whether an element is in the first or last row, and column, not how many
    elements there are: it divides by 9, 6 or 4 also where a plane has only one row.
    """
    n, height, width, depth = values.shape
    padded = np.zeros((n, height + 2, width + 2, depth), np.int32)
    padded[:, 1:-1, 1:-1] = values
    down = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    sums = down[:, :, :-2] + down[:, :, 1:-1] + down[:, :, 2:]
    taps = np.multiply.outer(_taps(height), _taps(width))[:, :, None]
    sums += taps // 2
    sums *= (1 << _AVERAGE_SHIFT) // taps + 1
    return (sums >> _AVERAGE_SHIFT).astype(values.dtype)


def _taps(extent: int) -> npt.NDArray[np.int32]:
    """Return 2 for the first and last place along an axis, 3 for others."""
    taps = np.full(extent, 3, np.int32)
    taps[[0, -1]] = 2
    return taps


def largest_2x2(values: Array) -> Array:
    """Return the largest of each 2 x 2 elements; the last row or column may stand alone."""
    return _largest(_largest(values, 2, 1), 2, 2)


def largest_3x3(values: Array) -> Array:
    """Return the largest of 3 x 3 elements at every second place that has two rows and columns."""
    return _largest(_largest(values, 3, 1), 3, 2)


def _largest(values: Array, size: int, axis: int) -> Array:
    """Return the largest of windows of `size` at every second place along an axis."""
    extent = values.shape[axis]
    count = -(-extent // 2) if size == 2 else extent // 2
    turned = values.swapaxes(0, axis)
    result = turned[: 2 * count : 2].copy()
    for tap in range(1, size):
        part = turned[tap : tap + 2 * count : 2]
        np.maximum(result[: len(part)], part, out=result[: len(part)])
    return result.swapaxes(0, axis)
