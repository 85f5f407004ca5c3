"""Weights as symbols of several streams, runs of zeros between them, fields of bits."""

from __future__ import annotations

from dataclasses import dataclass, field
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


WORD = 32
"""Bits of a word; bit 0 of the stream is the lowest of the first word."""

Words = np.ndarray[tuple[int, ...], np.dtype[np.uint32]]


@dataclass(slots=True)
class BitFields:
    """Fields that do not overlap, each of at most a word's bits."""

    _positions: list[Array] = field(default_factory=list[Array])
    _values: list[Array] = field(default_factory=list[Array])

    def put(self, positions: Array, values: Array) -> None:
        """Add fields: the position of their lowest bit, and their value, less than 2 ** 32."""
        self._positions.append(positions)
        self._values.append(values)

    def words(self, bits: int) -> Words:
        """Return all fields as words, `bits` rounded up to whole ones."""
        count = -(-bits // WORD)
        total = np.zeros(count + 1)
        for positions, values in zip(self._positions, self._values, strict=True):
            word, shift = positions >> 5, positions & 31
            shifted = values.astype(np.int64) << shift
            # Sums of fields that do not overlap are less than 2 ** 32, so doubles hold them.
            total += np.bincount(word, shifted & 0xFFFFFFFF, count + 1)
            total += np.bincount(word + 1, shifted >> WORD, count + 2)[: count + 1]
        return total[:count].astype(np.uint32)
