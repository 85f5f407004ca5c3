"""Weights as symbols of several streams, and how each stream is coded in the fewest bits.

Two codings are costed, for all streams at once: of all weights, and of those that are not 0 with
the zeros as runs. Which of them is taken depends on the stream before it on the same output
generator: what is as it was, a palette for instance, need not be sent again.

Ref: Ethos-N driver stack 23.02, `WeightEncoder.cpp`; what ties and limits do is as there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mizzen.targets.ethos_n.weights import weight_format as form
from mizzen.targets.ethos_n.weights.weight_format import (
    LARGEST_OFFSET,
    LARGEST_PALETTE,
    LARGEST_QUOTIENT,
    LARGEST_SYMBOL,
    LARGEST_WEIGHT_DIVISOR,
    LARGEST_ZERO_DIVISOR,
    LEAST_ENTRY_BITS,
    NO_RUNS,
    UNCODED,
    ChunkSizes,
)

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
        """Return each stream's value for each of its elements."""
        return np.repeat(per_stream, self.counts)


def exclusive_sum(counts: Array) -> Numbers:
    """Sum up what is before each number."""
    return np.cumsum(counts) - counts


def symbols_of(weights: Array) -> Array:
    """Fold weights less their zero point, -255 to 255: twice the magnitude, less 1 if negative."""
    wide = weights.astype(np.int16)
    return np.abs(wide) * 2 - (wide < 0)


def zero_runs(symbols: Streams) -> Streams:
    """Count the zeros before each symbol that is not 0, and after the last of each stream."""
    streams = len(symbols.counts)
    # A mark after each stream ends its last run.
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


@dataclass(frozen=True, slots=True)
class Codings:
    """One coding of each stream; the fields are the header's.

    cost         bits of the symbols as the search estimates them
    palette      [streams, 32] symbols, 0 beyond the palette's size
    in_palette   entries that are used: one less than the palette's size if it was filled up with 0
    """

    cost: Numbers
    zero_divisor: Numbers
    weight_divisor: Numbers
    truncated: Flags
    offset: Numbers
    palette_size: Numbers
    palette_bits: Numbers
    palette: Numbers
    in_palette: Numbers


@dataclass(frozen=True, slots=True)
class _Table:
    """The different symbols of each stream, the most frequent first, of equals the larger.

    symbols, counts  [streams, K]; counts 0 beyond the stream's symbols
    distinct         number of different symbols, 1 or more
    """

    symbols: Numbers
    counts: Numbers
    distinct: Numbers

    @classmethod
    def of(cls, histogram: Numbers) -> _Table:
        symbols = histogram.shape[1]
        keys = histogram * symbols + np.arange(symbols)
        keys.sort(axis=1)
        distinct = np.count_nonzero(histogram, axis=1)
        keys = keys[:, : -max(1, int(distinct.max())) - 1 : -1]
        counts, ordered = np.divmod(keys, symbols)
        return cls(np.where(counts, ordered, 0), counts, distinct)

    @property
    def present(self) -> Flags:
        return self.counts > 0


def histogram_of(symbols: Streams) -> Numbers:
    """Count each symbol of each stream, [streams, largest symbol + 1]."""
    streams, width = len(symbols.counts), int(symbols.values.max(initial=0)) + 1
    base = np.repeat(np.arange(streams) * width, symbols.counts)
    return np.bincount(base + symbols.values, minlength=streams * width).reshape(streams, width)


def code_all(histogram: Numbers, sizes: ChunkSizes) -> Codings:
    """Cost the coding of all weights."""
    none = np.full(len(histogram), NO_RUNS)
    return _code(_Table.of(histogram), none, np.zeros_like(none), 0, sizes)


def code_runs(histogram: Numbers, runs: Streams, sizes: ChunkSizes) -> Codings:
    """Cost the coding of zeros as runs; of a stream of zeros alone only the runs' cost is meant."""
    divisor, cost = _code_run_lengths(runs, sizes)
    others = histogram.copy()
    others[:, 0] = 0
    return _code(_Table.of(others), divisor, cost, 1, sizes)


def _code_run_lengths(runs: Streams, sizes: ChunkSizes) -> tuple[Numbers, Numbers]:
    """Find the divisor of the runs and the bits that it costs."""
    lengths, starts = runs.values, runs.starts
    least = np.maximum(bit_length(np.minimum.reduceat(lengths, starts)), 2)
    most = np.maximum(bit_length(np.maximum.reduceat(lengths, starts)), 1)
    first = np.minimum(LARGEST_ZERO_DIVISOR, least - 2)
    last = np.minimum(LARGEST_ZERO_DIVISOR, most - 1)
    divisor = np.zeros_like(starts)
    best = np.full_like(starts, np.iinfo(np.int64).max)
    for tried in range(LARGEST_ZERO_DIVISOR + 1):
        size = sizes.half if tried == LARGEST_ZERO_DIVISOR else sizes.three_quarters
        unary = np.add.reduceat(lengths >> tried, starts) + runs.counts
        cost = _round_up(unary, size) + tried * runs.counts
        better = (first <= tried) & (tried <= last) & (cost < best)
        divisor[better] = tried
        best[better] = cost[better]
    return divisor, best


def _code(
    table: _Table, zero_divisor: Numbers, cost: Numbers, whole_offset: int, sizes: ChunkSizes
) -> Codings:
    """Find palette, offset and divisor of each stream; `cost` is that of its runs."""
    size, real, offset = _fit_palette(table, whole_offset)
    smallest = np.where(table.present, table.symbols, LARGEST_SYMBOL).min(axis=1)
    alone = np.minimum(smallest, LARGEST_OFFSET)
    offset = np.where(size, offset, alone)
    rank = np.arange(table.symbols.shape[1])
    coded = np.where(rank < real[:, None], rank, table.symbols + (size - offset)[:, None])
    coded[~table.present] = 0
    # What the streams would be without a code: whole palettes stay, others are not worth it.
    whole = real == table.distinct
    most_coded: Numbers = coded.max(axis=1)
    most: Numbers = table.symbols.max(axis=1)
    largest = np.where(whole, most_coded, most - alone)
    bits = np.maximum(bit_length(largest), LEAST_ENTRY_BITS)
    plain_cost = table.counts.sum(axis=1) * bits
    divisor, truncated, coded_cost = _fit_divisor(table, coded, plain_cost, sizes)
    dropped = (divisor == UNCODED) & ~whole
    palette = _palette(table, np.where(dropped, 0, real))
    entry_bits = np.where(size, _entry_bits(palette) - LEAST_ENTRY_BITS, 0)
    return Codings(
        cost=cost + coded_cost,
        zero_divisor=zero_divisor,
        weight_divisor=divisor,
        truncated=truncated,
        offset=np.where(dropped, alone, offset),
        palette_size=np.where(dropped, 0, size),
        palette_bits=np.where(dropped, bits - LEAST_ENTRY_BITS, entry_bits),
        palette=palette,
        in_palette=np.where(dropped, 0, real),
    )


def _fit_palette(table: _Table, whole_offset: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return palettes' sizes (0: none), the symbols in them, and the offset of the others.

    Symbols that come more than once are in the palette as far as there is room, which there is
    while symbols outside have no more than 9 bits. One alone needs a second entry, 0.
    """
    repeated = np.count_nonzero(table.counts > 1, axis=1)
    filled = (repeated == 1) & (table.symbols[:, 0] > 0) & (table.counts[:, 0] > 2)
    size = np.where(repeated > 1, np.minimum(repeated, LARGEST_PALETTE), np.where(filled, 2, 0))
    smallest, largest = _outside(table)
    each = np.arange(len(size))
    room = LARGEST_SYMBOL - size
    offset = np.zeros_like(size)
    active = size > 0
    while active.any():
        size = np.where(active, np.minimum(size, room), size)
        real = np.maximum(size - filled, 0)
        whole = real == table.distinct
        offset = np.where(whole, whole_offset, np.minimum(smallest[each, real], LARGEST_OFFSET))
        room = LARGEST_SYMBOL - np.where(whole, 0, largest[each, real] - offset)
        active &= (size > 2) & (size > room)
    size[size < 2] = 0
    return size, np.where(size, size - filled, 0), offset


def _outside(table: _Table) -> tuple[Numbers, Numbers]:
    """Return the smallest and the largest symbol after the first 0, 1, ... 32."""
    streams = len(table.symbols)
    low = np.where(table.present, table.symbols, LARGEST_SYMBOL)
    high = np.where(table.present, table.symbols, 0)
    least = np.full((streams, LARGEST_PALETTE + 1), LARGEST_SYMBOL)
    most = np.zeros((streams, LARGEST_PALETTE + 1), np.int64)
    kept = min(LARGEST_PALETTE, low.shape[1])
    least[:, :kept], most[:, :kept] = low[:, :kept], high[:, :kept]
    least[:, LARGEST_PALETTE] = low[:, kept:].min(axis=1, initial=LARGEST_SYMBOL)
    most[:, LARGEST_PALETTE] = high[:, kept:].max(axis=1, initial=0)
    return (
        np.minimum.accumulate(least[:, ::-1], axis=1)[:, ::-1],
        np.maximum.accumulate(most[:, ::-1], axis=1)[:, ::-1],
    )


def _palette(table: _Table, used: Numbers) -> Numbers:
    palette = np.zeros((len(used), LARGEST_PALETTE), np.int64)
    kept = min(LARGEST_PALETTE, table.symbols.shape[1])
    palette[:, :kept] = table.symbols[:, :kept]
    palette[np.arange(LARGEST_PALETTE) >= used[:, None]] = 0
    return palette


def _entry_bits(palette: Numbers) -> Numbers:
    """Return the bits of a palette's entries: a magnitude, and a sign if one is more than 1."""
    magnitude = (palette.max(axis=1) + 1) // 2
    return np.maximum(bit_length(magnitude), LEAST_ENTRY_BITS) + (magnitude > 1)


def _fit_divisor(
    table: _Table, coded: Numbers, plain_cost: Numbers, sizes: ChunkSizes
) -> tuple[Numbers, Flags, Numbers]:
    """Return the divisors (UNCODED where no code is shorter), whether truncated, and the bits."""
    total: Numbers = table.counts.sum(axis=1)
    least = np.maximum(
        bit_length(np.where(table.present, coded, LARGEST_SYMBOL).min(axis=1)), LEAST_ENTRY_BITS
    )
    largest = coded.max(axis=1)
    most = np.maximum(bit_length(largest), 1)
    limit = LARGEST_WEIGHT_DIVISOR
    first = np.maximum(np.maximum(most - limit, 0), np.minimum(limit, least - LEAST_ENTRY_BITS))
    last = np.minimum(limit, most - 1)
    divisor = np.full_like(total, UNCODED)
    truncated = np.zeros(len(total), np.bool_)
    best = plain_cost.copy()
    for tried in range(limit + 1):
        quotient = coded >> tried
        short = (table.distinct <= 3) & (largest >> tried < 3)
        seconds = _weigh((quotient + 1) >> 1, table)
        firsts = _weigh(quotient, table) + total - seconds
        seconds = np.where(short, _weigh(quotient[:, :3] > 0, table), seconds)
        firsts = np.where(short, total, firsts)
        cost = _round_up(firsts, sizes.three_quarters) + seconds + tried * total
        feasible = (first <= tried) & (tried <= last) & (largest >> tried <= LARGEST_QUOTIENT)
        better = feasible & (cost < best)
        divisor[better] = tried
        truncated[better] = short[better]
        best[better] = cost[better]
    return divisor, truncated, best


def _weigh(values: Array, table: _Table) -> Numbers:
    """Sum up a number of each symbol over all its occurrences."""
    return np.einsum("sk,sk->s", values, table.counts[:, : values.shape[1]])


def _round_up(values: Numbers, unit: int) -> Numbers:
    return -(-values // unit) * unit


_PALETTE = struct.Struct(f"<{2 + LARGEST_PALETTE}H")
_BITS_BEFORE_ALL = 7


class Parameters(NamedTuple):
    """How one stream is coded; `palette` is size, bits and entries as bytes, to be compared."""

    zero_divisor: int
    weight_divisor: int
    truncated: bool
    offset: int
    palette: bytes


class Candidate(NamedTuple):
    """A coding that a stream may have.

    cost          bits without the palette
    in_palette    entries of the palette that stand for weights
    palette_cost  bits of the palette
    """

    cost: int
    in_palette: int
    palette_cost: int
    parameters: Parameters


class Choice(NamedTuple):
    """The coding that a stream has, and what of it must be sent."""

    parameters: Parameters
    in_palette: int
    parameters_follow: bool
    palette_follows: bool

    @property
    def has_runs(self) -> bool:
        """Whether zeros are coded as runs."""
        return self.parameters.zero_divisor != NO_RUNS


def candidates(codings: Codings) -> list[Candidate]:
    """Return each stream's coding as an object."""
    size, bits = codings.palette_size[:, None], codings.palette_bits[:, None]
    packed = np.concatenate([size, bits, codings.palette], axis=1).astype("<u2").tobytes()
    palettes = [packed[at : at + _PALETTE.size] for at in range(0, len(packed), _PALETTE.size)]
    parameters = zip(
        codings.zero_divisor.tolist(), codings.weight_divisor.tolist(),
        codings.truncated.tolist(), codings.offset.tolist(), palettes, strict=True,
    )  # fmt: skip
    palette_cost = codings.palette_size * (codings.palette_bits + LEAST_ENTRY_BITS)
    return [
        Candidate(cost, used, palette_bits, Parameters._make(numbers))
        for cost, used, palette_bits, numbers in zip(
            codings.cost.tolist(), codings.in_palette.tolist(), palette_cost.tolist(), parameters,
            strict=True,
        )
    ]  # fmt: skip


def palette_table(choices: list[Choice]) -> Numbers:
    """Return size, bits and entries of each stream's palette, [streams, 34]."""
    packed = b"".join(choice.parameters.palette for choice in choices)
    return np.frombuffer(packed, "<u2").reshape(len(choices), -1).astype(np.int64)


@dataclass(slots=True)
class Chooser:
    """Remembers the last coding of each output generator."""

    _last: dict[int, Parameters] = field(default_factory=dict[int, Parameters])

    def choose(
        self, og: int, afresh: bool, plain: Candidate, runs: Candidate | None, only_zeros: bool
    ) -> Choice:
        """Choose the cheaper coding; of equals the one without runs.

        `afresh`: nothing of the stream before is known when this one is read. A stream of zeros
        alone may keep all of the coding before it but the divisor of the runs.
        """
        before = self._last.get(og)
        afresh = afresh or before is None
        before = before or _BEFORE_ALL
        choice, cost = _as_found(plain, before, afresh)
        if runs is not None:
            kept = _as_before if only_zeros else _as_found
            other, other_cost = kept(runs, before, afresh)
            choice = other if other_cost < cost else choice
        self._last[og] = choice.parameters
        return choice


_BEFORE_ALL = Parameters(
    NO_RUNS, UNCODED, False, 0, _PALETTE.pack(0, _BITS_BEFORE_ALL, *[0] * LARGEST_PALETTE)
)


def _as_found(candidate: Candidate, before: Parameters, afresh: bool) -> tuple[Choice, int]:
    parameters = candidate.parameters
    palette_follows = afresh or parameters.palette != before.palette
    choice = Choice(
        parameters, candidate.in_palette, afresh or parameters != before, palette_follows
    )
    return choice, candidate.cost + (candidate.palette_cost if palette_follows else 0)


def _as_before(candidate: Candidate, before: Parameters, afresh: bool) -> tuple[Choice, int]:
    kept = before._replace(zero_divisor=candidate.parameters.zero_divisor)
    return Choice(kept, 0, afresh or kept != before, afresh), candidate.cost


@dataclass(frozen=True, slots=True)
class ChosenCodings:
    """The fields of the header, by stream, and what of them is sent.

    palette     [streams, 32] symbols
    in_palette  entries that stand for weights
    """

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
    def of(cls, choices: list[Choice]) -> ChosenCodings:
        """Put choices side by side."""
        table = palette_table(choices)
        columns = np.array([choice.parameters[:4] + choice[1:] for choice in choices], np.int64)
        return cls(
            zero_divisor=columns[:, 0],
            weight_divisor=columns[:, 1],
            truncated=columns[:, 2] > 0,
            offset=columns[:, 3],
            palette_size=table[:, 0],
            palette_bits=table[:, 1],
            palette=table[:, 2:],
            in_palette=columns[:, 4],
            parameters_follow=columns[:, 5] > 0,
            palette_follows=columns[:, 6] > 0,
        )

    @property
    def uses_runs(self) -> Flags:
        """Whether zeros are coded as runs."""
        return self.zero_divisor != form.NO_RUNS

    @property
    def is_uncoded(self) -> Flags:
        """Whether symbols have no unary bits."""
        return self.weight_divisor == form.UNCODED

    @property
    def remainder_bits(self) -> Numbers:
        """Bits of a symbol after its unary bits."""
        index = np.maximum(bit_length(self.palette_size - 1), 1)
        plain = np.where(self.palette_size, index, self.palette_bits + form.LEAST_ENTRY_BITS)
        return np.where(self.is_uncoded, plain, self.weight_divisor)


def code(symbols: Streams, coding: ChosenCodings) -> Streams:
    """Replace symbols by what the stream has for them; leave out zeros that are coded as runs."""
    width = int(symbols.values.max(initial=0)) + 1
    streams = len(symbols.counts)
    table = np.arange(width) + (coding.palette_size - coding.offset)[:, None]
    stream, rank = np.nonzero(np.arange(form.LARGEST_PALETTE) < coding.in_palette[:, None])
    table[stream, coding.palette[stream, rank]] = rank
    values = table.ravel()[symbols.values + symbols.spread(np.arange(streams) * width)]
    if not coding.uses_runs.any():
        return Streams(values, symbols.counts)
    kept = (symbols.values != 0) | ~symbols.spread(coding.uses_runs)
    bounds = np.concatenate([[0], np.cumsum(kept)])
    counts = bounds[symbols.starts + symbols.counts] - bounds[symbols.starts]
    return Streams(values[kept], counts)


def coded_runs(runs: Streams, coding: ChosenCodings) -> Streams:
    """Keep the runs of those streams whose zeros are coded as runs."""
    return Streams(runs.values[runs.spread(coding.uses_runs)], runs.counts * coding.uses_runs)
