"""Writes streams: the headers of an output feature map and the symbols of its weights.

The LENGTH field is left 0: it is known once the streams of an output generator are joined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.targets.ethos_n.weights import format as layout
from mizzen.targets.ethos_n.weights.bits import WORD, BitFields, Words
from mizzen.targets.ethos_n.weights.choose import Choice, palette_table
from mizzen.targets.ethos_n.weights.chunks import run_chunks, weight_chunks
from mizzen.targets.ethos_n.weights.format import ChunkSizes
from mizzen.targets.ethos_n.weights.headers import OfmHeaders
from mizzen.targets.ethos_n.weights.schedule import schedule
from mizzen.targets.ethos_n.weights.symbols import (
    Array,
    Flags,
    Numbers,
    Streams,
    bit_length,
    exclusive_sum,
)


@dataclass(frozen=True, slots=True)
class EncodedStreams:
    """Streams as bits, each from the lowest bit of a word on.

    words        of all streams
    word_counts  words of each stream
    bits         bits of each stream
    """

    words: Words
    word_counts: Numbers
    bits: Numbers


@dataclass(frozen=True, slots=True)
class _Coding:
    """The chosen codings, by stream."""

    zero_divisor: Numbers
    weight_divisor: Numbers
    truncated: Flags
    offset: Numbers
    palette_size: Numbers
    palette_bits: Numbers
    palette: Numbers
    in_palette: Numbers
    parameters_follow: Flags
    palette_follows: Flags

    @classmethod
    def of(cls, choices: list[Choice]) -> _Coding:
        table = palette_table(choices)
        rows = np.array([choice.parameters[:4] + choice[1:] for choice in choices], np.int64)
        return cls(
            zero_divisor=rows[:, 0],
            weight_divisor=rows[:, 1],
            truncated=rows[:, 2] > 0,
            offset=rows[:, 3],
            palette_size=table[:, 0],
            palette_bits=table[:, 1],
            palette=table[:, 2:],
            in_palette=rows[:, 4],
            parameters_follow=rows[:, 5] > 0,
            palette_follows=rows[:, 6] > 0,
        )

    @property
    def uses_runs(self) -> Flags:
        return self.zero_divisor != layout.NO_RUNS

    @property
    def is_uncoded(self) -> Flags:
        return self.weight_divisor == layout.UNCODED

    @property
    def remainder_bits(self) -> Numbers:
        index = np.maximum(bit_length(self.palette_size - 1), 1)
        plain = np.where(self.palette_size, index, self.palette_bits + layout.LEAST_ENTRY_BITS)
        return np.where(self.is_uncoded, plain, self.weight_divisor)


def write_streams(
    symbols: Streams, runs: Streams, choices: list[Choice], headers: OfmHeaders, sizes: ChunkSizes
) -> EncodedStreams:
    """Write streams of symbols, with the runs of zeros in each, as chosen."""
    coding = _Coding.of(choices)
    coded = _code(symbols, coding)
    payload = _Payload.of(coded, _with_runs(runs, coding), coding, sizes)
    header_bits = _header_bits(coding, headers)
    bits = header_bits + payload.bits
    word_counts = -(-bits // WORD)
    base = exclusive_sum(word_counts) * WORD
    fields = BitFields()
    _put_headers(fields, base, coded.counts, coding, headers)
    payload.put(fields, base + header_bits)
    return EncodedStreams(fields.words(int(word_counts.sum()) * WORD), word_counts, bits)


def _code(symbols: Streams, coding: _Coding) -> Streams:
    """Replace symbols by what the stream has for them; leave out zeros that are coded as runs."""
    width = int(symbols.values.max(initial=0)) + 1
    streams = len(symbols.counts)
    table = np.arange(width) + (coding.palette_size - coding.offset)[:, None]
    row, rank = np.nonzero(np.arange(layout.LARGEST_PALETTE) < coding.in_palette[:, None])
    table[row, coding.palette[row, rank]] = rank
    values = table.ravel()[symbols.values + symbols.spread(np.arange(streams) * width)]
    if not coding.uses_runs.any():
        return Streams(values, symbols.counts)
    kept = (symbols.values != 0) | ~symbols.spread(coding.uses_runs)
    bounds = np.concatenate([[0], np.cumsum(kept)])
    counts = bounds[symbols.starts + symbols.counts] - bounds[symbols.starts]
    return Streams(values[kept], counts)


def _with_runs(runs: Streams, coding: _Coding) -> Streams:
    return Streams(runs.values[runs.spread(coding.uses_runs)], runs.counts * coding.uses_runs)


@dataclass(frozen=True, slots=True)
class _Payload:
    """Fields behind the header: positions are in the stream's payload, `owner` its stream.

    bits  of each stream's payload
    """

    bits: Numbers
    positions: list[Numbers]
    owners: list[Numbers]
    values: list[Array]

    @classmethod
    def of(cls, coded: Streams, runs: Streams, coding: _Coding, sizes: ChunkSizes) -> _Payload:
        width = coding.remainder_bits
        plain = coding.is_uncoded
        large = sizes.three_quarters
        size = np.where(plain & (width > layout.WIDEST_IN_LARGE_CHUNK), sizes.half, large)
        quotients = np.where(coded.spread(plain), 0, coded.values >> coded.spread(width))
        weights = weight_chunks(Streams(quotients, coded.counts), coding.truncated & ~plain, size)
        divisor = np.where(coding.uses_runs, coding.zero_divisor, 0)
        run_size = np.where(divisor == layout.LARGEST_ZERO_DIVISOR, sizes.half, large)
        zeros = run_chunks(Streams(runs.values >> runs.spread(divisor), runs.counts), run_size)
        steps = schedule(weights.chunks, zeros.chunks, sizes.half)

        # Each step has five fields; lengths of those that are not there stay 0.
        lengths = np.zeros((int(steps.counts.sum()), 5), np.int64)
        of_weights = np.repeat(np.arange(len(width)), weights.chunks.counts)
        of_zeros = np.repeat(np.arange(len(width)), zeros.chunks.counts)
        lengths[steps.weights, 0] = np.where(plain, 0, size)[of_weights]
        lengths[steps.runs, 1] = run_size[of_zeros]
        lengths[steps.weights, 2] = weights.seconds
        lengths[steps.weights + 1, 3] = weights.chunks.ending * width[of_weights]
        lengths[steps.runs + 1, 4] = zeros.chunks.ending * divisor[of_zeros]
        at = exclusive_sum(lengths.ravel()).reshape(lengths.shape)
        first = exclusive_sum(steps.counts)
        start = at[first, 0]
        bits = np.add.reduceat(lengths.sum(axis=1), first)

        symbol_owner = np.repeat(np.arange(len(width)), coded.counts)
        run_owner = np.repeat(np.arange(len(width)), runs.counts)
        symbol_at = at[steps.weights + 1, 3][weights.chunks.chunk]
        run_at = at[steps.runs + 1, 4][zeros.chunks.chunk]
        owners = [of_weights, of_zeros, of_weights, symbol_owner, run_owner]
        positions = [
            at[steps.weights, 0],
            at[steps.runs, 1],
            at[steps.weights, 2],
            symbol_at + weights.chunks.rank() * width[symbol_owner],
            run_at + zeros.chunks.rank() * divisor[run_owner],
        ]
        values = [
            weights.first,
            zeros.unary,
            weights.second,
            coded.values & ((1 << width) - 1)[symbol_owner],
            runs.values & ((1 << divisor) - 1)[run_owner],
        ]
        in_stream = [at - start[by] for at, by in zip(positions, owners, strict=True)]
        return cls(bits, in_stream, owners, values)

    def put(self, fields: BitFields, base: Numbers) -> None:
        for position, owner, value in zip(self.positions, self.owners, self.values, strict=True):
            fields.put(position + base[owner], value)


_SCALE = layout.MULTIPLIER + layout.SHIFT + layout.ZERO_POINT
_PARAMETERS = (
    layout.ZERO_DIVISOR
    + layout.WEIGHT_DIVISOR
    + layout.TRUNCATED
    + layout.OFFSET
    + layout.PALETTE_FOLLOWS
)
_PALETTE = layout.PALETTE_SIZE_LESS_1 + layout.PALETTE_BITS
_ALWAYS = (
    layout.LENGTH
    + layout.BIAS
    + layout.SCALE_FOLLOWS
    + layout.SYMBOL_COUNT
    + layout.PARAMETERS_FOLLOW
)


def _header_bits(coding: _Coding, headers: OfmHeaders) -> Numbers:
    entries = coding.palette_size * (coding.palette_bits + layout.LEAST_ENTRY_BITS)
    palette = (_PALETTE + entries) * coding.palette_follows
    return (
        _ALWAYS
        + _SCALE * headers.scale_follows
        + (_PARAMETERS + palette) * coding.parameters_follow
    )


def _put_headers(
    fields: BitFields, base: Numbers, symbols: Numbers, coding: _Coding, headers: OfmHeaders
) -> None:
    """Put the fields one after another, those that follow conditionally where they do."""
    cursor = base + layout.LENGTH

    def put(width: int, values: Array, where: Flags | None = None) -> None:
        chosen = np.arange(len(cursor)) if where is None else np.flatnonzero(where)
        fields.put(cursor[chosen], values[chosen])
        cursor[chosen] += width

    put(layout.BIAS, headers.bias)
    put(layout.SCALE_FOLLOWS, headers.scale_follows)
    put(layout.MULTIPLIER, headers.multiplier, headers.scale_follows)
    put(layout.SHIFT, headers.shift, headers.scale_follows)
    put(layout.ZERO_POINT, headers.zero_point, headers.scale_follows)
    put(layout.SYMBOL_COUNT, symbols)
    follows = coding.parameters_follow
    put(layout.PARAMETERS_FOLLOW, follows)
    put(layout.ZERO_DIVISOR, coding.zero_divisor, follows)
    put(layout.WEIGHT_DIVISOR, coding.weight_divisor, follows)
    put(layout.TRUNCATED, coding.truncated, follows)
    put(layout.OFFSET, coding.offset, follows)
    put(layout.PALETTE_FOLLOWS, coding.palette_follows, follows)
    follows = follows & coding.palette_follows
    put(layout.PALETTE_SIZE_LESS_1, np.maximum(coding.palette_size - 1, 0), follows)
    put(layout.PALETTE_BITS, coding.palette_bits, follows)
    _put_entries(fields, cursor, coding, follows)


def _put_entries(fields: BitFields, cursor: Numbers, coding: _Coding, follows: Flags) -> None:
    sizes = coding.palette_size * follows
    row, rank = np.nonzero(np.arange(layout.LARGEST_PALETTE) < sizes[:, None])
    symbol, bits = coding.palette[row, rank], coding.palette_bits[row]
    sign = (symbol & 1) << (bits + layout.LEAST_ENTRY_BITS - 1)
    position = cursor[row] + rank * (bits + layout.LEAST_ENTRY_BITS)
    fields.put(position, (symbol + 1) // 2 | sign)
