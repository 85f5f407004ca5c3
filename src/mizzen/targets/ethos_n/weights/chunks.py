"""Cuts unary codes into chunks: which symbols end in which chunk, and what its bits are.

A chunk is a row of cells. A symbol takes the next cells, so many as its quotient needs; the one
that it ends in decides its chunk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.targets.ethos_n.weights.symbols import Array, Flags, Numbers, Streams, exclusive_sum


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of several streams, one stream after another.

    counts      chunks of each stream
    chunk, bit  of each symbol: the chunk and the cell in it that it ends in
    ending      symbols that end in each chunk
    cells       cells of each chunk that symbols are in, as bits
    """

    counts: Numbers
    chunk: Numbers
    bit: Numbers
    ending: Numbers
    cells: Numbers

    @property
    def starts(self) -> Numbers:
        """The first chunk of each stream."""
        return exclusive_sum(self.counts)

    def marks(self, chosen: Array) -> Numbers:
        """Return for each chunk the end cells of the symbols with `chosen` 1, as bits."""
        weights = (1 << self.bit) * chosen
        return np.bincount(self.chunk, weights, len(self.cells)).astype(np.int64)

    def rank(self) -> Numbers:
        """Return each symbol's number among those that end in its chunk."""
        return np.arange(len(self.chunk)) - exclusive_sum(self.ending)[self.chunk]


def cut(needed: Streams, size: Numbers) -> Chunks:
    """Lay symbols that need so many cells (1 or more) into chunks of `size` cells, by stream."""
    ends = np.cumsum(needed.values, dtype=np.int64)
    bounds = np.concatenate([[0], ends])
    first = bounds[needed.starts]
    total = bounds[needed.starts + needed.counts] - first
    counts = -(-total // size)
    starts = exclusive_sum(counts)
    sizes = needed.spread(size)
    chunk, bit = np.divmod(ends - 1 - needed.spread(first), sizes)
    chunk += needed.spread(starts)
    chunks = int(counts.sum())
    cells = np.repeat((1 << size) - 1, counts)
    filled = np.flatnonzero(counts)
    last = total - (counts - 1) * size
    cells[(starts + counts - 1)[filled]] = (1 << last[filled]) - 1
    return Chunks(counts, chunk, bit, np.bincount(chunk, minlength=chunks), cells)


@dataclass(frozen=True, slots=True)
class WeightChunks:
    """Weights in chunks.

    first, second  unary bits of each chunk
    seconds        the number of second bits
    """

    chunks: Chunks
    first: Numbers
    second: Numbers
    seconds: Numbers


def weight_chunks(quotients: Streams, truncated: Flags, size: Numbers) -> WeightChunks:
    """Code the quotients of weights; `truncated` and `size` by stream."""
    value = quotients.values
    short = quotients.spread(truncated)
    cells = np.where(short, 1, (value >> 1) + 1)
    chunks = cut(Streams(cells, quotients.counts), size)
    last_first = np.where(short, value > 0, value & 1)
    last_second = short & (value > 1)
    first = chunks.cells - chunks.marks(1 - last_first)
    ones = first - chunks.marks(last_first & ~last_second)
    second, seconds = _at_ones(ones, first)
    return WeightChunks(chunks, first, second, seconds)


def _at_ones(values: Numbers, mask: Numbers) -> tuple[Numbers, Numbers]:
    """Push the bits of `values` where `mask` has a 1 together, and count them."""
    pushed, count = np.zeros_like(values), np.zeros_like(values)
    for bit in range(int(mask.max(initial=0)).bit_length()):
        pushed |= ((values >> bit) & 1) << count
        count += (mask >> bit) & 1
    return pushed, count


@dataclass(frozen=True, slots=True)
class RunChunks:
    """Runs of zeros in chunks, and each chunk's unary bits."""

    chunks: Chunks
    unary: Numbers


def run_chunks(quotients: Streams, size: Numbers) -> RunChunks:
    """Code the quotients of runs; `size` by stream."""
    chunks = cut(Streams(quotients.values + 1, quotients.counts), size)
    ends = chunks.marks(np.ones_like(chunks.bit))
    return RunChunks(chunks, chunks.cells - ends)
