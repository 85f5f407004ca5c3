"""The range of a tensor of what it was in all samples: all of it, or without outliers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.calibration.seen import Seen, Track

Array = npt.NDArray[Any]

BINS = 2048
CUT_OFF = 1e-5
"""The part of the numbers that a percentile leaves out, as ONNX Runtime's does."""

STILL = (0.0, 1.0)
"""The range of a tensor that was always zero: a step must have some size, and zero is a number."""


class Ranges:
    """Finds the range of each tensor: of those that it is shown again, without outliers."""

    def __init__(self, seen: Seen) -> None:
        self._tracks = seen.tracks
        self._counts: dict[str, Array] = {}

    def add(self, tensors: Mapping[str, Array]) -> None:
        """Count the numbers of one sample."""
        for name, array in tensors.items():
            track = self._tracks.get(name)
            if track is None or track.is_constant:
                continue
            ends = track.low, track.high
            counts, _ = np.histogram(array[np.isfinite(array)], BINS, ends)
            self._counts[name] = self._counts.get(name, 0) + counts

    def chosen(self) -> dict[str, tuple[float, float]]:
        """Return the least and the greatest number that each tensor is to have; zero is within."""
        return {name: self._range(name, track) for name, track in self._tracks.items()}

    def _range(self, name: str, track: Track) -> tuple[float, float]:
        low, high = track.low, track.high
        if name in self._counts:
            low, high = _percentile(self._counts[name], low, high)
        low, high = min(low, 0.0), max(high, 0.0)
        return (low, high) if low < high else STILL


def _percentile(counts: Array, low: float, high: float) -> tuple[float, float]:
    """Return a range without the outermost numbers at either end."""
    edges = np.linspace(low, high, len(counts) + 1)
    share = np.cumsum(counts) / counts.sum()
    first = int(np.searchsorted(share, CUT_OFF, side="right"))
    last = int(np.searchsorted(share, 1 - CUT_OFF))
    return float(edges[first]), float(edges[min(last, len(counts) - 1) + 1])
