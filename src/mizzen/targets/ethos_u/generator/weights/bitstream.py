"""Writes sections of weights as bits.

A slice is chunks: the unary parts of 12 symbols at once (8, or 12, where symbols are raw) and of
zero runs, each chunk's remainders after the unary parts of the next. The decoder reads symbols or
runs, or both, by how many of each it has; what writes has to do as it does. All slices of a stream
are laid out at once.

Ref: the decoder of `ethosu.mlw_codec`, Vela 5.2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_u.generator.weights.coding import (
    END_OF_STREAM,
    MAPPING_BITS,
    NO_ZERO_RUNS,
    RAW_DIVISOR,
    SLICE_BITS,
    Mapping,
    Section,
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
END_BITS = 3
STREAM_ALIGNMENT_BITS = 128
WORD_BITS = 32

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def write(values: npt.NDArray[np.int16], sections: Sequence[Section]) -> bytes:
    """Return the stream of weights, padded to 16 bytes; sections cover the weights, in order."""
    return write_codes(codes_of(values), sections)


def write_codes(codes: npt.NDArray[np.int16], sections: Sequence[Section]) -> bytes:
    """Return the stream of the codes of weights, as `write` does."""
    slices = _Slices.of(sections)
    numbers = _numbers(codes, sections)
    symbols = _chunks_of_symbols(numbers.symbols, slices)
    runs = _chunks_of_runs(numbers.runs, slices)
    turns = _turns(slices, symbols, runs)
    sizes = np.zeros((turns.count, 6), np.int64)
    sizes[turns.first_of_slice, 0] = slices.header_bits
    for kind, (chunks, turn) in enumerate(((symbols, turns.symbols), (runs, turns.runs))):
        sizes[turn, 1 + kind] = chunks.first_bits
        sizes[turn, 3] += chunks.second_bits
        sizes[turn + 1, 4 + kind] = chunks.ended * chunks.width_of_chunk
    starts = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
    bits = _Bits()
    _place_headers(bits, slices, starts[turns.first_of_slice, 0])
    for kind, (chunks, turn) in enumerate(((symbols, turns.symbols), (runs, turns.runs))):
        bits.place(chunks.first, starts[turn, 1 + kind])
        bits.place(chunks.second, starts[turn, 3])
        bits.place(chunks.remainders, chunks.places_of_remainders(starts[turn + 1, 4 + kind]))
    size = int(sizes.sum())
    bits.place(np.array([END_OF_STREAM]), np.array([size]))
    return bits.finish(size + END_BITS)


@dataclass(slots=True)
class _Bits:
    """Fields and where they begin, in bits."""

    values: list[Numbers] = field(default_factory=list[Numbers])
    positions: list[Numbers] = field(default_factory=list[Numbers])

    def place(self, values: Numbers, positions: Numbers) -> None:
        """Put values of at most 32 bits at positions."""
        self.values.append(values)
        self.positions.append(positions)

    def finish(self, size: int) -> bytes:
        """Return all bytes; what is after the last field, `size` bits from the first, is ones."""
        values, positions = np.concatenate(self.values), np.concatenate(self.positions)
        end = -(-size // STREAM_ALIGNMENT_BITS) * STREAM_ALIGNMENT_BITS
        shifted = values << positions % WORD_BITS
        words = positions // WORD_BITS
        # No two fields share a bit: their sum is their union, exact in 53 bits.
        low = np.bincount(words, shifted & 0xFFFF_FFFF, end // WORD_BITS + 1)
        high = np.bincount(words + 1, shifted >> WORD_BITS, end // WORD_BITS + 1)
        whole = (low + high).astype(np.uint32)[: end // WORD_BITS]
        data = np.unpackbits(whole.astype("<u4").view(np.uint8), bitorder="little")
        data[size:] = 1
        return np.packbits(data, bitorder="little").tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class _Slices:
    """All slices of a stream, each array with an entry for each.

    counts, run_counts  symbols, and zero runs
    widths, run_widths  bits of a remainder of theirs
    truncated, raw      of the coding
    begins              whether a mapping begins with it
    mappings            the slice's
    headers             its header, but for a mapping
    """

    counts: Numbers
    run_counts: Numbers
    widths: Numbers
    run_widths: Numbers
    truncated: Flags
    raw: Flags
    begins: Flags
    mappings: Sequence[Mapping]
    headers: Numbers
    header_bits: Numbers

    @staticmethod
    def of(sections: Sequence[Section]) -> _Slices:
        """Return those of sections."""
        parts = [part for section in sections for part in section.slices]
        mappings = [section.mapping for section in sections for _ in section.slices]
        begins = np.array(
            [not index for section in sections for index in range(len(section.slices))]
        )
        raw = np.array([part.coding.raw for part in parts])
        runs = np.array([each.zero_runs for each in mappings])
        counts = np.array([part.symbols for part in parts])
        divisors = np.where(raw, RAW_DIVISOR, [part.coding.divisor for part in parts])
        truncated = np.array([part.coding.truncated for part in parts])
        run_divisors = np.where(runs, [part.run_divisor for part in parts], NO_ZERO_RUNS)
        fields = (run_divisors, 3), (counts - 1, 15), (divisors, 3), (truncated, 1), (begins, 1)
        header_bits = np.array([each.header_bits for each in mappings])
        return _Slices(
            counts,
            np.where(runs, counts + begins, 0),
            np.where(raw, [each.raw_bits for each in mappings], divisors),
            np.where(runs, run_divisors, 0),
            truncated,
            raw,
            begins,
            mappings,
            _packed(fields),
            np.where(begins, header_bits, SLICE_BITS),
        )


def _packed(fields: Sequence[tuple[npt.NDArray[np.generic], int]]) -> Numbers:
    """Return numbers of fields, each of so many bits, the first the lowest."""
    whole = np.zeros(len(fields[0][0]), np.int64)
    at = 0
    for values, width in fields:
        whole |= values.astype(np.int64) << at
        at += width
    return whole


def _place_headers(bits: _Bits, slices: _Slices, starts: Numbers) -> None:
    bits.place(slices.headers, starts)
    begins = np.flatnonzero(slices.begins)
    mappings = [slices.mappings[index] for index in begins.tolist()]
    offsets = np.array([each.offset for each in mappings])
    sizes = np.array([len(each.palette) for each in mappings])
    widths = np.array([each.bits for each in mappings])
    fields = (offsets, 5), (np.maximum(sizes - 1, 0), 5), (widths - 2, 3)
    bits.place(_packed(fields), starts[begins] + SLICE_BITS)
    entries = np.array([code for each in mappings for code in each.palette], np.int64)
    at = np.repeat(starts[begins] + SLICE_BITS + MAPPING_BITS, sizes)
    bits.place(entries, at + _index_in(sizes) * np.repeat(widths, sizes))


def _index_in(counts: Numbers) -> Numbers:
    """Return 0, 1, ... anew for each count."""
    return np.arange(int(counts.sum())) - np.repeat(_before(counts), counts)


def _before(counts: Numbers) -> Numbers:
    """Return the sum of the counts before each."""
    return np.cumsum(counts) - counts


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """Symbols and zero runs of all sections, in the order of their slices."""

    symbols: Numbers
    runs: Numbers


def _numbers(codes: npt.NDArray[np.int16], sections: Sequence[Section]) -> _Numbers:
    sizes = np.array([section.weights for section in sections])
    runs = np.array([section.mapping.zero_runs for section in sections])
    starts = _before(sizes)
    is_symbol = (codes != 0) | np.repeat(~runs, sizes)
    symbols_before = np.concatenate(([0], np.cumsum(is_symbol)))
    empty = symbols_before[starts + sizes] == symbols_before[starts]
    is_symbol[starts[empty]] = True  # a slice has one symbol at least
    places = np.flatnonzero(is_symbol)
    of_symbol = np.repeat(np.arange(len(sections)), sizes)[places]
    mappings = list(dict.fromkeys(section.mapping for section in sections))
    index = {each: number for number, each in enumerate(mappings)}
    tables = np.stack([each.symbols() for each in mappings])
    of_section = np.array([index[section.mapping] for section in sections])
    symbols = tables[of_section[of_symbol], codes[places]].astype(np.int64)
    if not runs.any():
        return _Numbers(symbols, np.zeros(0, np.int64))
    return _Numbers(symbols, _zero_runs(places, of_symbol, starts, sizes, runs))


def _zero_runs(
    places: Numbers, of_symbol: Numbers, starts: Numbers, sizes: Numbers, runs: Flags
) -> Numbers:
    """Return the zeros before the first symbol, and after each, of the sections that have runs."""
    counts = np.bincount(of_symbol, minlength=len(sizes))
    firsts = _before(counts)
    ends = np.append(places[1:], 0)
    ends[firsts + counts - 1] = starts + sizes
    chosen = runs[of_symbol]
    after = (ends - places - 1)[chosen]
    leading = (places[firsts] - starts)[runs]
    return np.insert(after, _before(counts[runs]), leading)


@dataclass(frozen=True, slots=True, eq=False)
class _Chunks:
    """Chunks of symbols or of runs: unary parts, numbers that end in each, and remainders.

    of_slice        chunks of each slice
    ended           numbers that end in each chunk
    first, second   unary parts: a chunk's first bits, and the second bits of those that have one
    width_of_chunk  bits of a remainder
    remainders      of each number
    """

    of_slice: Numbers
    ended: Numbers
    first: Numbers
    first_bits: Numbers
    second: Numbers
    second_bits: Numbers
    width_of_chunk: Numbers
    remainders: Numbers

    def places_of_remainders(self, starts: Numbers) -> Numbers:
        """Return where each remainder begins, where those of each chunk do."""
        widths = np.repeat(self.width_of_chunk, self.ended)
        return np.repeat(starts, self.ended) + _index_in(self.ended) * widths


@dataclass(frozen=True, slots=True, eq=False)
class _Unary:
    """Unary bits in chunks: each number's last bit has a place of its own.

    used      whether a bit is one of a number's: [chunks, bits of a chunk]
    of_slice  chunks of each slice
    last      places of the last bits
    """

    used: Flags
    of_slice: Numbers
    last: Numbers


def _unary(lengths: Numbers, counts: Numbers, sizes: Numbers) -> _Unary:
    """Lay out numbers of so many unary bits, `counts` in each slice, in chunks of `sizes` bits.

    All chunks get room for `CHUNK` bits; those of fewer leave the last ones unused.
    """
    sums = np.concatenate(([0], np.cumsum(lengths)))
    firsts = sums[_before(counts)]
    totals = sums[np.cumsum(counts)] - firsts
    chunks = -(-totals // sizes)
    in_slice = sums[1:] - 1 - np.repeat(firsts, counts)
    of_number = np.repeat(sizes, counts)
    chunk = np.repeat(_before(chunks), counts) + in_slice // of_number
    bits = np.repeat(sizes, chunks)
    left = np.minimum(np.repeat(totals, chunks) - _index_in(chunks) * bits, bits)
    used = np.arange(CHUNK) < left[:, None]
    return _Unary(used, chunks, chunk * CHUNK + in_slice % of_number)


_POWERS = 1 << np.arange(CHUNK)


def _chunks_of_symbols(symbols: Numbers, slices: _Slices) -> _Chunks:
    """Return chunks of symbols; raw ones are remainders of as many bits as they have."""
    widths = np.repeat(slices.widths, slices.counts)
    truncated = np.repeat(slices.truncated, slices.counts)
    quotients = symbols >> widths
    short = slices.raw & (slices.widths > SHORT_RAW_BITS)
    lengths = np.where(truncated, 1, (quotients >> 1) + 1)
    unary = _unary(lengths, slices.counts, np.where(short, SHORT_CHUNK, CHUNK))
    bits = 2 * unary.used.astype(np.uint8)
    bits.ravel()[unary.last] = np.where(truncated, quotients, quotients & 1)
    more = bits > 0
    rank = np.maximum(np.cumsum(more, axis=1), 1) - 1
    of_chunk = np.repeat(np.arange(len(slices.counts)), unary.of_slice)
    return _Chunks(
        unary.of_slice,
        np.bincount(unary.last // CHUNK, minlength=len(bits)),
        more @ _POWERS,
        np.where(slices.raw, 0, CHUNK)[of_chunk],
        ((bits == 2) << rank).sum(axis=1),
        np.count_nonzero(more, axis=1),
        slices.widths[of_chunk],
        symbols & ((1 << widths) - 1),
    )


def _chunks_of_runs(runs: Numbers, slices: _Slices) -> _Chunks:
    widths = np.repeat(slices.run_widths, slices.run_counts)
    sizes = np.where(slices.run_widths == SHORT_RUN_DIVISOR, SHORT_CHUNK, CHUNK)
    unary = _unary((runs >> widths) + 1, slices.run_counts, sizes)
    bits = unary.used.copy()
    bits.ravel()[unary.last] = False
    none = np.zeros(len(bits), np.int64)
    return _Chunks(
        unary.of_slice,
        np.bincount(unary.last // CHUNK, minlength=len(bits)),
        bits @ _POWERS,
        np.repeat(sizes, unary.of_slice),
        none,
        none,
        np.repeat(slices.run_widths, unary.of_slice),
        runs & ((1 << widths) - 1),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Turns:
    """In which turn of the stream the decoder takes each chunk.

    Remainders come in the turn after their chunk, the last turn of a slice has nothing else.
    """

    symbols: Numbers
    runs: Numbers
    first_of_slice: Numbers
    count: int


def _turns(slices: _Slices, symbols: _Chunks, runs: _Chunks) -> _Turns:
    of_symbols, of_runs = _index_in(symbols.of_slice), np.zeros(len(runs.ended), np.int64)
    counts = symbols.of_slice + 1
    ends = [
        (np.cumsum(each.ended) - np.repeat(_before(numbers), each.of_slice)).tolist()
        for each, numbers in ((symbols, slices.counts), (runs, slices.run_counts))
    ]
    borders = [np.append(0, np.cumsum(each.of_slice)).tolist() for each in (symbols, runs)]
    for index in np.flatnonzero(slices.run_counts).tolist():
        mine, its = (slice(*border[index : index + 2]) for border in borders)
        of_symbols[mine], of_runs[its] = taken = _taken(ends[0][mine], ends[1][its])
        counts[index] = max(taken[0][-1], taken[1][-1]) + 2
    firsts = _before(counts)
    return _Turns(
        of_symbols + np.repeat(firsts, symbols.of_slice),
        of_runs + np.repeat(firsts, runs.of_slice),
        firsts,
        int(counts.sum()),
    )


def _taken(symbol_ends: Sequence[int], run_ends: Sequence[int]) -> tuple[list[int], list[int]]:
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
    return turns
