"""Weights as symbols, several streams one after another, and the runs of zeros between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Streams:
    """The numbers of several streams, one stream after another.

    values  symbols or lengths of runs
    counts  numbers of each stream
    """

    values: Array
    counts: Numbers

    @property
    def starts(self) -> Numbers:
        """Where in `values` each stream begins."""
        return exclusive_sum(self.counts)

    def spread(self, per_stream: Array) -> Array:
        """Return each value that of its stream."""
        return np.repeat(per_stream, self.counts)


def exclusive_sum(counts: Array) -> Numbers:
    """Sum up what is before each number."""
    return np.cumsum(counts) - counts


def symbols_of(weights: Array) -> Array:
    """Fold weights less their zero point, -255 to 255: twice the magnitude, less 1 if negative."""
    wide = weights.astype(np.int16)
    return np.abs(wide) * 2 - (wide < 0)


def zero_runs(symbols: Streams) -> Streams:
    """Count the zeros before each symbol that is not 0, and behind the last of each stream."""
    streams = len(symbols.counts)
    # A mark behind each stream ends its last run.
    numbers = np.flatnonzero(symbols.values)
    marks = symbols.starts + symbols.counts + np.arange(streams)
    owners = np.repeat(np.arange(streams), symbols.counts)[numbers]
    ends = np.empty(len(numbers) + streams, np.int64)
    counts = np.bincount(owners, minlength=streams) + 1
    last = np.cumsum(counts) - 1
    ends[last] = marks
    others = np.ones(len(ends), np.bool_)
    others[last] = False
    ends[others] = numbers + owners
    return Streams(np.diff(ends, prepend=-1) - 1, counts)


def bit_length(values: Array) -> Numbers:
    """Count the bits of numbers that are 0 or more and less than 2 ** 53."""
    return np.frexp(values.astype(np.float64))[1].astype(np.int64)
