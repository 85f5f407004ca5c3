"""The weights of slices whose chunks are known, for many slices at once.

A number, a symbol or the length of a zero run, is a quotient and a remainder of so many bits.
Unary bits make quotients; of a symbol, each bit that is set has a second one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.judge.codec.chunks import (
    SHORT,
    SHORT_RUN_DIVISOR,
    UNARY,
    Chunks,
    DamagedError,
    Slice,
)

Integers = npt.NDArray[np.int64]
Weights = npt.NDArray[np.int16]
Words = npt.NDArray[np.uint32]

LARGEST_PALETTE = 32
LARGEST_STREAM = 1 << 28
"""Weights that are decoded at once, or of one stream. A damaged one can say symbols of no bits, and
32 zeros in each."""


def _unary_bits() -> npt.NDArray[np.uint8]:
    """Return the bits of each word of unary bits, the lowest first: [words, UNARY]."""
    words = np.arange(1 << UNARY, dtype=np.uint16)
    return (words[:, None] >> np.arange(UNARY, dtype=np.uint16) & 1).astype(np.uint8)


BITS = _unary_bits()
RANKS = (np.cumsum(BITS, axis=1) - BITS).astype(np.uint8)
"""Of each bit, how many before it are set; its second bit has this place, if it is set."""


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The chunks of symbols, or of runs, of slices in a row.

    first, second, remainders, ended  as in `Chunks`
    counts                            numbers of each slice
    widths                            bits of the remainders of each slice
    chunks                            of each slice
    """

    first: Integers
    second: Integers
    remainders: Integers
    ended: Integers
    counts: Integers
    widths: Integers
    chunks: Integers


def _table(parts: Sequence[Chunks], counts: Sequence[int], widths: Sequence[int]) -> _Table:
    return _Table(
        _joined([part.first for part in parts]),
        _joined([part.second for part in parts]),
        _joined([part.remainders for part in parts]),
        _joined([part.ended for part in parts]),
        np.array(counts, np.int64),
        np.array(widths, np.int64),
        np.array([len(part.ended) for part in parts], np.int64),
    )


def _joined(parts: Sequence[Sequence[int]]) -> Integers:
    return np.fromiter(chain.from_iterable(parts), np.int64)


def within_limit(count: int) -> int:
    """Return so many weights; raise DamagedError for more than a stream has."""
    if count > LARGEST_STREAM:
        raise DamagedError(f"has more than {LARGEST_STREAM} weights")
    return count


def weights_of(slices: Sequence[Slice], words: Words) -> tuple[Weights, Integers]:
    """Return the weights of slices, one after another, and how many each has.

    words  the word that begins at each byte that positions count from

    Raises DamagedError for more weights than a stream has.
    """
    symbols = np.zeros(sum(part.count for part in slices), np.int64)
    of_slice = np.repeat(np.arange(len(slices)), [part.count for part in slices])
    for raw in (False, True):
        chosen = [part for part in slices if part.raw == raw]
        if chosen:
            here = np.array([part.raw for part in slices])[of_slice] == raw
            symbols[here] = _symbols(chosen, words, raw)
    values = _values(slices, symbols, of_slice)
    if all(part.run_divisor is None for part in slices):
        return values, np.array([part.count for part in slices])
    return _with_zeros(slices, values, of_slice, words)


def _symbols(slices: Sequence[Slice], words: Words, raw: bool) -> Integers:
    """Return the symbols of slices that are all raw, or none of them."""
    table = _table(
        [part.symbols for part in slices],
        [part.count for part in slices],
        [part.divisor for part in slices],
    )
    remainders = _remainders(table, words)
    if raw:
        return remainders
    first = _bits_at(words, table.first, UNARY)
    second = _bits_at(words, table.second, UNARY)
    bits = BITS[first]
    twos = (second[:, None] >> RANKS[first]).astype(np.uint8) & bits
    truncated = np.repeat([part.truncated for part in slices], table.chunks)
    quotients = _quotients(bits + twos, (twos == 0) | truncated[:, None], table)
    return (quotients << np.repeat(table.widths, table.counts)) | remainders


def _runs(slices: Sequence[Slice], words: Words) -> Integers:
    """Return the lengths of the zero runs of slices that have them."""
    widths = [part.run_divisor or 0 for part in slices]
    table = _table([part.runs for part in slices], [part.run_count for part in slices], widths)
    bits = BITS[_bits_at(words, table.first, UNARY)]
    short = table.widths >= SHORT_RUN_DIVISOR
    bits[np.repeat(short, table.chunks), SHORT:] = 0
    quotients = _quotients(bits, bits == 0, table)
    of_run = np.repeat(table.widths, table.counts)
    return (quotients << of_run) | _remainders(table, words)


def _bits_at(words: Words, positions: Integers, width: int) -> npt.NDArray[np.uint32]:
    """Return the bits from each position on; more than 25 cannot be had."""
    return words[positions >> 3] >> (positions & 7).astype(np.uint32) & np.uint32((1 << width) - 1)


def _quotients(
    parts: npt.NDArray[np.uint8], ends: npt.NDArray[np.bool_], table: _Table
) -> Integers:
    """Return quotients: the sums of parts up to each end, in slices of their own.

    parts  what each unary bit adds: [chunks, UNARY]
    ends   whether a number ends with it; what comes after the last number of a slice is none
    """
    spare = np.flatnonzero(np.count_nonzero(ends, axis=1) > table.ended)
    ends[spare] &= np.cumsum(ends[spare], axis=1) <= table.ended[spare, None]
    sums = np.cumsum(parts, dtype=np.int64)
    at_ends = sums[np.flatnonzero(ends)]
    starts = np.cumsum(table.chunks) - table.chunks
    before = np.concatenate(([0], at_ends[:-1]))
    before[np.cumsum(table.counts) - table.counts] = np.where(
        starts > 0, sums[UNARY * starts - 1], 0
    )
    return at_ends - before


def _remainders(table: _Table, words: Words) -> Integers:
    """Return the remainder of each number."""
    widths = np.repeat(table.widths, table.counts)
    index = np.arange(len(widths))
    earlier = np.cumsum(table.ended) - table.ended
    of_chunk = np.repeat(table.widths, table.chunks)
    start = np.repeat(table.remainders - earlier * of_chunk, table.ended)
    positions = start + index * widths
    shifted = words[positions >> 3] >> (positions & 7).astype(np.uint32)
    return (shifted & ((1 << widths) - 1)).astype(np.int64)


def _values(slices: Sequence[Slice], symbols: Integers, of_slice: Integers) -> Weights:
    """Return the weights that symbols stand for."""
    sizes = np.array([len(part.mapping.palette) for part in slices])
    offsets = np.array([part.mapping.offset for part in slices])
    codes = symbols + (offsets - sizes)[of_slice]
    listed = np.flatnonzero(symbols < sizes[of_slice])
    if len(listed):
        palettes = np.zeros((len(slices), LARGEST_PALETTE), np.int64)
        for entries, part in zip(palettes, slices, strict=True):
            entries[: len(part.mapping.palette)] = part.mapping.palette
        codes[listed] = palettes[of_slice[listed], symbols[listed]]
    magnitudes = codes >> 1
    return np.where(codes & 1, -magnitudes, magnitudes).astype(np.int16)


def _with_zeros(
    slices: Sequence[Slice], values: Weights, of_slice: Integers, words: Words
) -> tuple[Weights, Integers]:
    """Return the weights with the zeros between them, and how many each slice has."""
    having = np.array([part.run_divisor is not None for part in slices])
    counts = np.array([part.run_count for part in slices], np.int64)
    begins = np.array([part.begins for part in slices]) & having
    runs = _runs([part for part in slices if part.run_divisor is not None], words)
    # The first run of a mapping is before its first symbol, all others after theirs.
    leading = (np.cumsum(counts) - counts)[begins]
    before = np.zeros(len(slices), np.int64)
    before[begins] = runs[leading]
    after = np.zeros(len(values), np.int64)
    after[having[of_slice]] = np.delete(runs, leading)
    symbols = np.array([part.count for part in slices], np.int64)
    firsts = np.cumsum(symbols) - symbols
    steps = np.concatenate(([0], 1 + after[:-1]))
    steps[firsts] += before
    totals = np.add.reduceat(1 + after, firsts) + before
    whole = np.zeros(within_limit(int(totals.sum())), np.int16)
    whole[np.cumsum(steps)] = values
    return whole, totals
