"""Writes sections of weights as bits.

A slice is chunks: the unary parts of 12 symbols at once (8, or 12, where symbols are raw) and of
zero runs, each chunk's remainders after the unary parts of the next. The decoder reads symbols or
runs, or both, by which is behind the other; the encoder has to do as it does.

Ref: the decoder of `ethosu.mlw_codec`, Vela 5.2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.weights.coding import (
    END_OF_STREAM,
    NO_ZERO_RUNS,
    RAW_DIVISOR,
    Coding,
    Mapping,
    Section,
    Slice,
    codes_of,
)

CHUNK = 12
"""Unary symbols of a chunk."""
SHORT_CHUNK = 8
"""... of zero runs with the largest divisor, and of raw symbols wider than `SHORT_RAW_BITS`."""
SHORT_RAW_BITS = 5
SHORT_RUN_DIVISOR = 3
AHEAD = 8
"""Symbols read ahead of their runs before symbols wait."""
STREAM_ALIGNMENT_BITS = 128
WORD_BITS = 32

Numbers = npt.NDArray[np.int64]


def write(values: npt.NDArray[np.int16], sections: Sequence[Section]) -> bytes:
    """Return the stream of weights, padded to 16 bytes; sections cover the weights, in order."""
    return write_codes(codes_of(values), sections)


def write_codes(codes: npt.NDArray[np.int16], sections: Sequence[Section]) -> bytes:
    """Return the stream of the codes of weights, as `write` does."""
    bits = _Bits()
    start = 0
    for section in sections:
        _write_section(bits, codes[start : start + section.weights], section)
        start += section.weights
    bits.add(END_OF_STREAM, 3)
    return bits.finish()


@dataclass(slots=True)
class _Bits:
    """Fields and where they begin, in bits."""

    size: int = 0
    values: list[Numbers] = field(default_factory=list[Numbers])
    positions: list[Numbers] = field(default_factory=list[Numbers])

    def add(self, value: int, width: int) -> None:
        self.place(np.array([value]), np.array([self.size]))
        self.size += width

    def place(self, values: Numbers, positions: Numbers) -> None:
        self.values.append(values)
        self.positions.append(positions)

    def finish(self) -> bytes:
        """Return all bytes; what is after the last field is ones."""
        values, positions = np.concatenate(self.values), np.concatenate(self.positions)
        end = -(-self.size // STREAM_ALIGNMENT_BITS) * STREAM_ALIGNMENT_BITS
        shifted = values << positions % WORD_BITS
        words = positions // WORD_BITS
        # No two fields share a bit: their sum is their union, exact in 53 bits.
        low = np.bincount(words, shifted & 0xFFFF_FFFF, end // WORD_BITS + 1)
        high = np.bincount(words + 1, shifted >> WORD_BITS, end // WORD_BITS + 1)
        whole = (low + high).astype(np.uint32)[: end // WORD_BITS]
        data = np.unpackbits(whole.astype("<u4").view(np.uint8), bitorder="little")
        data[self.size :] = 1
        return np.packbits(data, bitorder="little").tobytes()


def _write_section(bits: _Bits, codes: npt.NDArray[np.int16], section: Section) -> None:
    mapping = section.mapping
    symbols, runs = _symbols_and_runs(codes, mapping)
    start = 0
    for index, part in enumerate(section.slices):
        new = index == 0
        _write_header(bits, part, mapping, new)
        stop = start + part.symbols
        # Runs follow their symbols; the first slice of a section has one before them.
        mine = runs[start + (not new) : stop + 1]
        _write_slice(bits, symbols[start:stop], mine, part, mapping)
        start = stop


def _symbols_and_runs(codes: npt.NDArray[np.int16], mapping: Mapping) -> tuple[Numbers, Numbers]:
    """Return the symbols, and the zeros before, between, and after them."""
    if not mapping.zero_runs:
        return mapping.symbols()[codes].astype(np.int64), np.zeros(0, np.int64)
    places = np.flatnonzero(codes)
    if not len(places):  # a slice has one symbol at least
        places = np.zeros(1, np.int64)
    borders = np.concatenate(([-1], places, [len(codes)]))
    return mapping.symbols()[codes[places]].astype(np.int64), np.diff(borders) - 1


def _write_header(bits: _Bits, part: Slice, mapping: Mapping, new: bool) -> None:
    bits.add(part.run_divisor if mapping.zero_runs else NO_ZERO_RUNS, 3)
    bits.add(part.symbols - 1, 15)
    bits.add(RAW_DIVISOR if part.coding.raw else part.coding.divisor, 3)
    bits.add(int(part.coding.truncated), 1)
    bits.add(int(new), 1)
    if new:
        bits.add(mapping.offset, 5)
        bits.add(max(0, len(mapping.palette) - 1), 5)
        bits.add(mapping.bits - 2, 3)
        for code in mapping.palette:
            bits.add(code, mapping.bits)


@dataclass(frozen=True, slots=True)
class _Chunks:
    """Chunks of symbols or of runs: numbers that end in each, unary parts, and remainders.

    first, second  unary parts: a chunk's first bits, and the second bits of those that have one
    chunk_of       of each number
    """

    ends: Numbers
    first: Numbers
    first_bits: int
    second: Numbers
    second_bits: Numbers
    chunk_of: Numbers
    remainders: Numbers
    remainder_bits: int


def _chunks_of_symbols(symbols: Numbers, coding: Coding, raw_bits: int) -> _Chunks:
    if coding.raw:
        size = SHORT_CHUNK if raw_bits > SHORT_RAW_BITS else CHUNK
        chunk_of = np.arange(len(symbols)) // size
        none = np.zeros(chunk_of[-1] + 1, np.int64)
        return _Chunks(_ends(chunk_of), none, 0, none, none, chunk_of, symbols, raw_bits)
    quotients = symbols >> coding.divisor
    lengths = np.ones_like(quotients) if coding.truncated else (quotients >> 1) + 1
    last = np.cumsum(lengths) - 1
    unary = np.full((last[-1] // CHUNK + 1) * CHUNK, 2)
    unary[last[-1] :] = 0
    unary[last] = quotients if coding.truncated else quotients & 1
    unary = unary.reshape(-1, CHUNK)
    more = unary > 0
    rank = np.cumsum(more, axis=1) - 1
    chunk_of = last // CHUNK
    return _Chunks(
        _ends(chunk_of),
        (more << np.arange(CHUNK)).sum(1),
        CHUNK,
        ((unary == 2) << np.maximum(rank, 0)).sum(1),
        more.sum(1),
        chunk_of,
        symbols & ((1 << coding.divisor) - 1),
        coding.divisor,
    )


def _chunks_of_runs(runs: Numbers, divisor: int) -> _Chunks:
    size = SHORT_CHUNK if divisor == SHORT_RUN_DIVISOR else CHUNK
    last = np.cumsum((runs >> divisor) + 1) - 1
    unary = np.ones((last[-1] // size + 1) * size, np.int64)
    unary[last[-1] :] = 0
    unary[last] = 0
    chunk_of = last // size
    first = (unary.reshape(-1, size) << np.arange(size)).sum(1)
    none = np.zeros(len(first), np.int64)
    remainders = runs & ((1 << divisor) - 1)
    return _Chunks(_ends(chunk_of), first, size, none, none, chunk_of, remainders, divisor)


def _ends(chunk_of: Numbers) -> Numbers:
    """Return how many numbers have ended with each chunk."""
    return np.cumsum(np.bincount(chunk_of))


def _write_slice(
    bits: _Bits, symbols: Numbers, runs: Numbers, part: Slice, mapping: Mapping
) -> None:
    chunks = [_chunks_of_symbols(symbols, part.coding, mapping.raw_bits)]
    if mapping.zero_runs:
        chunks.append(_chunks_of_runs(runs, part.run_divisor))
        turns = _turns(chunks[0].ends.tolist(), chunks[1].ends.tolist())
    else:
        turns = [np.arange(len(chunks[0].ends))]
    count = max(int(each[-1]) for each in turns) + 2
    sizes = np.zeros((count, 5), np.int64)  # of first parts, second parts, remainders
    for kind, (chunk, turn) in enumerate(zip(chunks, turns, strict=True)):
        sizes[turn, kind] = chunk.first_bits
        sizes[turn, 2] += chunk.second_bits
        sizes[turn + 1, 3 + kind] = np.diff(chunk.ends, prepend=0) * chunk.remainder_bits
    starts = (bits.size + np.cumsum(sizes) - sizes.ravel()).reshape(count, 5)
    for kind, (chunk, turn) in enumerate(zip(chunks, turns, strict=True)):
        if chunk.first_bits:
            bits.place(chunk.first, starts[turn, kind])
            bits.place(chunk.second, starts[turn, 2])
        if chunk.remainder_bits:
            before = np.concatenate(([0], chunk.ends[:-1]))
            index = np.arange(len(chunk.remainders)) - before[chunk.chunk_of]
            at = starts[turn + 1, 3 + kind][chunk.chunk_of] + index * chunk.remainder_bits
            bits.place(chunk.remainders, at)
    bits.size += int(sizes.sum())


def _turns(symbol_ends: list[int], run_ends: list[int]) -> list[Numbers]:
    """Return the turn of each chunk of symbols and of each of runs, as the decoder takes them."""
    turns: tuple[list[int], list[int]] = [], []
    symbols = runs = turn = 0
    while symbols < symbol_ends[-1] or runs < run_ends[-1]:
        ahead = symbols - runs
        if ahead < AHEAD and symbols < symbol_ends[-1]:
            symbols = symbol_ends[len(turns[0])]
            turns[0].append(turn)
        if ahead >= 0 and runs < run_ends[-1]:
            runs = run_ends[len(turns[1])]
            turns[1].append(turn)
        turn += 1
    return [np.array(each) for each in turns]
