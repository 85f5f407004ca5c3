"""The sums of the compute engine: exact integers by products of floats where these are exact.

Inputs and weights are integers below 2**9; a float32 sum of their products is exact while the sum
of absolute values stays below 2**24, a float64 sum below 2**53, in any order of addition. The bound
is computed from the real weights, so the choice is never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from mizzen.targets.ethos_n.sim.geometry import Geometry

Array = npt.NDArray[Any]
Weights = npt.NDArray[np.int16]

FLOAT32_EXACT = 1 << 24
BLOCK_ELEMENTS = 1 << 17
"""Elements of unrolled input that are multiplied at once."""


class Summer(Protocol):
    """Makes sums of padded planes."""

    images: int
    """Images to give at once."""

    def blocks(self, padded: Array) -> Iterator[tuple[slice, Array]]:
        """Return rows of the output and their sums, `[n, rows, W, O]`."""
        ...


def exact_float(bound: int) -> type[np.float32 | np.float64]:
    """Return the type whose sums of integers up to `bound` are exact."""
    return np.float32 if bound < FLOAT32_EXACT else np.float64


class MatrixSums:
    """Sums over all input channels, of weights `[H, W, I, O]`: a product of matrices."""

    def __init__(self, geometry: Geometry, weights: Weights, dtype: npt.DTypeLike) -> None:
        self._geometry = geometry
        depth = weights.shape[3]
        self._matrix = np.ascontiguousarray(weights.reshape(-1, depth).astype(dtype))
        row = geometry.output_width * max(len(self._matrix), depth)
        self._rows = min(geometry.output_height, max(1, BLOCK_ELEMENTS // row))
        self.images = max(1, BLOCK_ELEMENTS // (row * geometry.output_height))

    def blocks(self, padded: Array) -> Iterator[tuple[slice, Array]]:
        """Return rows of the output and their sums, `[n, rows, W, O]`."""
        height, width = self._geometry.output_height, self._geometry.output_width
        for top in range(0, height, self._rows):
            rows = slice(top, min(top + self._rows, height))
            shape = (len(padded), rows.stop - top, width, self._matrix.shape[1])
            columns = self._columns(padded, rows).reshape(-1, len(self._matrix))
            yield rows, np.matmul(columns, self._matrix).reshape(shape)

    def _columns(self, padded: Array, rows: slice) -> Array:
        """Return windows `[n, rows, W, kh, kw, C]`; a view where they are elements."""
        way = self._geometry
        if (way.kernel_height, way.kernel_width, way.stride) == (1, 1, 1):
            return padded[:, rows]
        batch, row, column, element = padded.strides
        seen = padded[:, rows.start * way.stride :]
        shape = (len(padded), rows.stop - rows.start, way.output_width)
        windows = as_strided(
            seen,
            (*shape, way.kernel_height, way.kernel_width, way.channels),
            (batch, row * way.stride, column * way.stride, row, column, element),
            writeable=False,
        )
        return np.ascontiguousarray(windows)


class DepthwiseSums:
    """Sums of each channel alone, of weights `[H, W, C]`: row by row, weight by weight."""

    def __init__(self, geometry: Geometry, weights: Weights, dtype: npt.DTypeLike) -> None:
        self._geometry = geometry
        self._weights = weights.astype(dtype)
        plane = geometry.output_height * geometry.output_width * geometry.channels
        self.images = max(1, BLOCK_ELEMENTS // plane)

    def blocks(self, padded: Array) -> Iterator[tuple[slice, Array]]:
        """Return all rows of the output and their sums, `[n, H, W, C]`."""
        way, step = self._geometry, self._geometry.stride
        total: Array | None = None
        for y in range(way.kernel_height):
            for x in range(way.kernel_width):
                last_y = y + (way.output_height - 1) * step + 1
                last_x = x + (way.output_width - 1) * step + 1
                product = padded[:, y:last_y:step, x:last_x:step] * self._weights[y, x]
                total = product if total is None else np.add(total, product, out=total)
        assert total is not None  # a kernel has at least one weight
        yield slice(0, way.output_height), total
