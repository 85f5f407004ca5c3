"""The range of a tensor of what it was in all samples: all of it, or without outliers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.calibration.scheme import Method
from mizzen.calibration.seen import Seen, Track

Array = npt.NDArray[Any]

BINS = 2048
CUT_OFF = 1e-5
"""The part of the numbers that a percentile leaves out, as ONNX Runtime's does."""

LEVELS = 128
"""Of a distribution that is to be kept: as many as 8 bits have for either sign."""

FINER = 16
"""How many times finer the distribution is that is compared."""

LEAST_SHARE = 1e-9
"""What a level counts that nothing is in; its logarithm is finite."""

TRIALS = 64
"""Ranges that are tried for the one whose distribution changes least."""

STILL = (0.0, 1.0)
"""The range of a tensor that was always zero: a step must have some size, and zero is a number."""


class Ranges:
    """Finds the range of each tensor; but for `Method.MINMAX` it is shown all of them again."""

    def __init__(self, seen: Seen, method: Method) -> None:
        self._tracks = seen.tracks
        self._method = method
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
            find = _percentile if self._method is Method.PERCENTILE else _entropy
            low, high = find(self._counts[name], low, high)
        low, high = min(low, 0.0), max(high, 0.0)
        return (low, high) if low < high else STILL


def _percentile(counts: Array, low: float, high: float) -> tuple[float, float]:
    """Return a range without the outermost numbers at either end."""
    edges = np.linspace(low, high, len(counts) + 1)
    share = np.cumsum(counts) / counts.sum()
    first = int(np.searchsorted(share, CUT_OFF, side="right"))
    last = int(np.searchsorted(share, 1 - CUT_OFF))
    return float(edges[first]), float(edges[min(last, len(counts) - 1) + 1])


def _entropy(counts: Array, low: float, high: float) -> tuple[float, float]:
    """Return the range about zero in which 8 bits change the distribution least.

    The Kullback-Leibler divergence of the cut distribution and of that one in so few levels.
    """
    edges = np.linspace(low, high, len(counts) + 1)
    middles = np.abs((edges[1:] + edges[:-1]) / 2)
    most = max(abs(low), abs(high))
    best = most, np.inf
    for trial in range(TRIALS, LEVELS // TRIALS, -1):
        limit = most * trial / TRIALS
        change = _divergence(counts, middles, limit)
        if change < best[1]:
            best = limit, change
    return max(low, -best[0]), min(high, best[0])


def _divergence(counts: Array, sizes: Array, limit: float) -> float:
    """Return how much a distribution changes that is cut at a size and has few levels below."""
    number = LEVELS * FINER
    places = np.minimum((sizes / limit * number).astype(int), number - 1)
    fine = np.bincount(places, counts, number)
    inside = np.bincount(places, np.where(sizes <= limit, counts, 0), number)
    groups = inside.reshape(LEVELS, FINER)
    filled = np.maximum((groups > 0).sum(axis=1, keepdims=True), 1)
    coarse = (np.where(groups > 0, groups.sum(axis=1, keepdims=True) / filled, 0)).ravel()
    total, kept = fine.sum(), coarse.sum()
    if not kept:
        return float("inf")
    p, q = fine / total, coarse / kept
    there = p > 0
    return float((p[there] * np.log(p[there] / np.maximum(q[there], LEAST_SHARE))).sum())
