"""Writes streams: the headers of an output feature map (OFM) and the symbols of its weights.

Unary codes are cut into chunks, rows of cells. A symbol takes the next cells, so many as its
quotient needs; the one that it ends in decides its chunk. Chunks of weights and of runs of zeros
take turns so that neither runs ahead. The LENGTH field is left 0: it is known once the streams of
an output generator are joined.

Ref: Ethos-N driver stack 23.02, `WeightEncoder.cpp` (`GRCCompressPackChunk`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.weights import weight_format as form
from mizzen.targets.ethos_n.weights.weight_codings import (
    WORD,
    Array,
    BitFields,
    Choice,
    ChosenCodings,
    Flags,
    Numbers,
    Streams,
    Words,
    code,
    coded_runs,
    exclusive_sum,
)
from mizzen.targets.ethos_n.weights.weight_format import ChunkSizes


@dataclass(frozen=True, slots=True)
class OutputScale:
    """What becomes of accumulators: (accumulator * multiplier >> shift) + zero point.

    multipliers  16 bits: one, or one for each OFM
    shifts       6 bits, as many
    """

    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    zero_point: int = 0


@dataclass(frozen=True, slots=True)
class OfmHeaders:
    """The fields of several headers, as unsigned numbers.

    scale_follows  whether multiplier, shift and zero point are sent
    """

    bias: Numbers
    multiplier: Numbers
    shift: Numbers
    zero_point: Numbers
    scale_follows: Flags

    def part(self, chosen: slice | Numbers) -> OfmHeaders:
        """Return the chosen headers."""
        return OfmHeaders(
            self.bias[chosen],
            self.multiplier[chosen],
            self.shift[chosen],
            self.zero_point[chosen],
            self.scale_follows[chosen],
        )


def ofm_headers(ofms: int, ogs: int, bias: Array, scale: OutputScale) -> OfmHeaders:
    """Make the headers of all OFMs, of which `ogs` are made at a time.

    E940 for another number of biases or scales, E942 for a number too large for its field.
    """
    count = len(scale.multipliers)
    if bias.shape != (ofms,) or count not in (1, ofms) or count != len(scale.shifts):
        raise fail(
            "E940",
            f"there must be {ofms} biases, and 1 or {ofms} multipliers and shifts; there are "
            f"{bias.size}, {count} and {len(scale.shifts)}",
        )
    low, high = -(1 << (form.BIAS - 1)), 1 << (form.BIAS - 1)
    _require("bias", bias, low, high - 1)
    _require("multiplier", np.array(scale.multipliers), 0, (1 << form.MULTIPLIER) - 1)
    _require("shift", np.array(scale.shifts), 0, (1 << form.SHIFT) - 1)
    # Signed or unsigned, as the output is.
    zero_byte = 1 << form.ZERO_POINT
    _require("zero point", np.array([scale.zero_point]), -zero_byte // 2, zero_byte - 1)
    # A generator keeps its scale, which is that of all OFMs unless each has its own.
    each_its_own = count > 1
    return OfmHeaders(
        bias=bias.astype(np.int64) % (2 * high),
        multiplier=np.broadcast_to(np.array(scale.multipliers), ofms),
        shift=np.broadcast_to(np.array(scale.shifts), ofms),
        zero_point=np.full(ofms, scale.zero_point % zero_byte),
        scale_follows=np.logical_or(each_its_own, np.arange(ofms) < ogs),
    )


def _require(what: str, values: Array, least: int, most: int) -> None:
    bad = values[(values < least) | (values > most)]
    if bad.size:
        raise fail("E942", f"a {what} must be {least} to {most}, not {bad[0]}")


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


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps of several streams, one stream after another; the last has only remainders.

    counts         steps of each stream
    weights, runs  the step, over all streams, of each chunk
    """

    counts: Numbers
    weights: Numbers
    runs: Numbers


def schedule(weights: Chunks, runs: Chunks, half: int) -> Schedule:
    """Find the steps; a stream without chunks of runs has a chunk of weights in every step."""
    streams = len(weights.counts)
    both = np.flatnonzero(runs.counts)
    counts = weights.counts + 1
    turns = _take_turns(weights, runs, both, half)
    if turns is not None:
        counts[both] = turns.steps + 1
    starts = exclusive_sum(counts)
    step = np.arange(len(weights.cells)) - np.repeat(weights.starts, weights.counts)
    if turns is not None:
        step[np.repeat(np.isin(np.arange(streams), both), weights.counts)] = turns.weights
    weight_steps = step + np.repeat(starts, weights.counts)
    run_steps = np.zeros(0, np.int64)
    if turns is not None:
        run_steps = turns.runs + np.repeat(starts, runs.counts)
    return Schedule(counts, weight_steps, run_steps)


@dataclass(frozen=True, slots=True)
class _Turns:
    """For each stream its steps; for each chunk its step in the stream."""

    steps: Numbers
    weights: Numbers
    runs: Numbers


def _take_turns(weights: Chunks, runs: Chunks, both: Numbers, half: int) -> _Turns | None:
    """Go through the steps of all streams with runs at once."""
    if not len(both):
        return None
    weight_done, run_done = _done(weights), _done(runs)
    weight_at, run_at = weights.starts[both], runs.starts[both]
    # After each stream's last chunk `_done` has one more number, so streams are one apart.
    weight_at, run_at = weight_at + both, run_at + both
    weight_end, run_end = weight_at + weights.counts[both], run_at + runs.counts[both]
    weight_turns: list[Flags] = []
    run_turns: list[Flags] = []
    while True:
        lead = weight_done[weight_at] - run_done[run_at]
        takes_weights = (lead < half) & (weight_at < weight_end)
        takes_runs = (lead >= 0) & (run_at < run_end)
        if not (takes_weights | takes_runs).any():
            break
        weight_turns.append(takes_weights)
        run_turns.append(takes_runs)
        weight_at += takes_weights
        run_at += takes_runs
    of_weights, of_runs = np.array(weight_turns).T, np.array(run_turns).T
    steps = (of_weights | of_runs).sum(axis=1)
    return _Turns(steps, np.nonzero(of_weights)[1], np.nonzero(of_runs)[1])


def _done(chunks: Chunks) -> Numbers:
    """Return the symbols of a stream that ended before each of its chunks, and after the last."""
    done = np.zeros(len(chunks.counts) + len(chunks.ending), np.int64)
    ends = np.cumsum(chunks.counts) + np.arange(len(chunks.counts))
    inside = np.ones(len(done), np.bool_)
    inside[ends] = False
    done[inside] = chunks.ending
    total = exclusive_sum(done)
    begins = ends - chunks.counts
    return total - np.repeat(total[begins], chunks.counts + 1)


@dataclass(frozen=True, slots=True)
class Remainders:
    """What is after the unary bits: of each stream so many bits a symbol."""

    values: Streams
    width: Numbers

    @classmethod
    def of(cls, values: Streams, width: Numbers) -> Remainders:
        """Take the lowest bits of numbers."""
        mask = values.spread((1 << width) - 1)
        return cls(Streams(values.values & mask, values.counts), width)

    def bits(self, chunks: Chunks) -> Numbers:
        """Return the bits of each chunk's remainders together."""
        return chunks.ending * np.repeat(self.width, chunks.counts)

    def positions(self, chunks: Chunks, begin: Numbers) -> Numbers:
        """Return the position of each, where those of each chunk begin there."""
        return begin[chunks.chunk] + chunks.rank() * self.values.spread(self.width)


@dataclass(frozen=True, slots=True)
class Parts:
    """The chunks of weights and of runs.

    first_bits, run_bits  unary bits that are sent of each stream's chunks
    """

    weights: WeightChunks
    first_bits: Numbers
    weight_remainders: Remainders
    runs: RunChunks
    run_bits: Numbers
    run_remainders: Remainders


def cut_apart(coded: Streams, runs: Streams, coding: ChosenCodings, sizes: ChunkSizes) -> Parts:
    """Cut coded symbols and runs into quotients, in chunks, and remainders."""
    width, plain = coding.remainder_bits, coding.is_uncoded
    wide = plain & (width > form.WIDEST_IN_LARGE_CHUNK)
    size = np.where(wide, sizes.half, sizes.three_quarters)
    quotients = np.where(coded.spread(plain), 0, coded.values >> coded.spread(width))
    divisor = np.where(coding.uses_runs, coding.zero_divisor, 0)
    largest = divisor == form.LARGEST_ZERO_DIVISOR
    run_size = np.where(largest, sizes.half, sizes.three_quarters)
    run_quotients = runs.values >> runs.spread(divisor)
    return Parts(
        weight_chunks(Streams(quotients, coded.counts), coding.truncated & ~plain, size),
        np.where(plain, 0, size),
        Remainders.of(coded, width),
        run_chunks(Streams(run_quotients, runs.counts), run_size),
        run_size,
        Remainders.of(runs, divisor),
    )


@dataclass(frozen=True, slots=True)
class Payload:
    """Where the bits of each stream's payload are; positions count from the stream's own.

    bits              of each stream's payload
    positions, ...    fields, in groups: their positions, streams and values
    """

    bits: Numbers
    positions: list[Numbers]
    owners: list[Numbers]
    values: list[Array]

    @classmethod
    def of(cls, parts: Parts, sizes: ChunkSizes) -> Payload:
        """Lay out the steps of each stream."""
        weights, runs = parts.weights.chunks, parts.runs.chunks
        steps = schedule(weights, runs, sizes.half)
        lengths = _lengths(parts, steps)
        at = exclusive_sum(lengths.ravel()).reshape(lengths.shape)
        first = exclusive_sum(steps.counts)
        positions = [
            at[steps.weights, 0],
            at[steps.runs, 1],
            at[steps.weights, 2],
            parts.weight_remainders.positions(weights, at[steps.weights + 1, 3]),
            parts.run_remainders.positions(runs, at[steps.runs + 1, 4]),
        ]
        coded, lengths_of_runs = parts.weight_remainders.values, parts.run_remainders.values
        counts = [weights.counts, runs.counts, weights.counts, coded.counts, lengths_of_runs.counts]
        owners = [np.repeat(np.arange(len(first)), count) for count in counts]
        start = at[first, 0]
        return cls(
            np.add.reduceat(lengths.sum(axis=1), first),
            [place - start[by] for place, by in zip(positions, owners, strict=True)],
            owners,
            [
                parts.weights.first,
                parts.runs.unary,
                parts.weights.second,
                coded.values,
                lengths_of_runs.values,
            ],
        )

    def put(self, fields: BitFields, base: Numbers) -> None:
        """Put the fields of streams whose payloads begin at `base`."""
        for position, owner, value in zip(self.positions, self.owners, self.values, strict=True):
            fields.put(position + base[owner], value)


def _lengths(parts: Parts, steps: Schedule) -> Numbers:
    """Return the bits of the five fields of each step; of those that are not there, 0.

    The remainders of a chunk are in the step after its own.
    """
    weights, runs = parts.weights.chunks, parts.runs.chunks
    lengths = np.zeros((int(steps.counts.sum()), 5), np.int64)
    lengths[steps.weights, 0] = np.repeat(parts.first_bits, weights.counts)
    lengths[steps.runs, 1] = np.repeat(parts.run_bits, runs.counts)
    lengths[steps.weights, 2] = parts.weights.seconds
    lengths[steps.weights + 1, 3] = parts.weight_remainders.bits(weights)
    lengths[steps.runs + 1, 4] = parts.run_remainders.bits(runs)
    return lengths


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


def write_streams(
    symbols: Streams, runs: Streams, choices: list[Choice], headers: OfmHeaders, sizes: ChunkSizes
) -> EncodedStreams:
    """Write streams of symbols, with the runs of zeros in each, as chosen."""
    coding = ChosenCodings.of(choices)
    coded = code(symbols, coding)
    payload = Payload.of(cut_apart(coded, coded_runs(runs, coding), coding, sizes), sizes)
    header_bits = _header_bits(coding, headers)
    bits = header_bits + payload.bits
    word_counts = -(-bits // WORD)
    base = exclusive_sum(word_counts) * WORD
    fields = BitFields()
    _put_headers(fields, base, coded.counts, coding, headers)
    payload.put(fields, base + header_bits)
    return EncodedStreams(fields.words(int(word_counts.sum()) * WORD), word_counts, bits)


_SCALE = form.MULTIPLIER + form.SHIFT + form.ZERO_POINT
_PARAMETERS = (
    form.ZERO_DIVISOR + form.WEIGHT_DIVISOR + form.TRUNCATED + form.OFFSET + form.PALETTE_FOLLOWS
)
_PALETTE = form.PALETTE_SIZE_LESS_1 + form.PALETTE_BITS
_ALWAYS = form.LENGTH + form.BIAS + form.SCALE_FOLLOWS + form.SYMBOL_COUNT + form.PARAMETERS_FOLLOW


def _header_bits(coding: ChosenCodings, headers: OfmHeaders) -> Numbers:
    entries = coding.palette_size * (coding.palette_bits + form.LEAST_ENTRY_BITS)
    palette = (_PALETTE + entries) * coding.palette_follows
    return (
        _ALWAYS
        + _SCALE * headers.scale_follows
        + (_PARAMETERS + palette) * coding.parameters_follow
    )


def _put_headers(
    fields: BitFields, base: Numbers, symbols: Numbers, coding: ChosenCodings, headers: OfmHeaders
) -> None:
    """Put the fields one after another, those that follow conditionally where they do."""
    cursor = base + form.LENGTH

    def put(width: int, values: Array, where: Flags | None = None) -> None:
        chosen = np.arange(len(cursor)) if where is None else np.flatnonzero(where)
        fields.put(cursor[chosen], values[chosen])
        cursor[chosen] += width

    put(form.BIAS, headers.bias)
    put(form.SCALE_FOLLOWS, headers.scale_follows)
    put(form.MULTIPLIER, headers.multiplier, headers.scale_follows)
    put(form.SHIFT, headers.shift, headers.scale_follows)
    put(form.ZERO_POINT, headers.zero_point, headers.scale_follows)
    put(form.SYMBOL_COUNT, symbols)
    follows = coding.parameters_follow
    put(form.PARAMETERS_FOLLOW, follows)
    put(form.ZERO_DIVISOR, coding.zero_divisor, follows)
    put(form.WEIGHT_DIVISOR, coding.weight_divisor, follows)
    put(form.TRUNCATED, coding.truncated, follows)
    put(form.OFFSET, coding.offset, follows)
    put(form.PALETTE_FOLLOWS, coding.palette_follows, follows)
    follows = follows & coding.palette_follows
    put(form.PALETTE_SIZE_LESS_1, np.maximum(coding.palette_size - 1, 0), follows)
    put(form.PALETTE_BITS, coding.palette_bits, follows)
    _put_entries(fields, cursor, coding, follows)


def _put_entries(fields: BitFields, cursor: Numbers, coding: ChosenCodings, follows: Flags) -> None:
    sizes = coding.palette_size * follows
    stream, rank = np.nonzero(np.arange(form.LARGEST_PALETTE) < sizes[:, None])
    symbol, bits = coding.palette[stream, rank], coding.palette_bits[stream]
    sign = (symbol & 1) << (bits + form.LEAST_ENTRY_BITS - 1)
    position = cursor[stream] + rank * (bits + form.LEAST_ENTRY_BITS)
    fields.put(position, (symbol + 1) // 2 | sign)
