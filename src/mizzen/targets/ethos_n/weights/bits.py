"""Puts fields of a few bits each into words, many at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mizzen.targets.ethos_n.weights.symbols import Array

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
