"""Reads weight streams: headers, where each chunk's bits are, and what they say.

Where a chunk begins depends on the chunk before it, so the scan goes chunk by chunk, in plain
Python; what the bits say is found for all chunks of many streams at once afterwards.

Ref: Ethos-N driver stack 23.02, `WeightEncoder.cpp`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.weights import weight_format as form
from mizzen.targets.ethos_n.weights.weight_format import LARGEST_PALETTE, LARGEST_SYMBOL, ChunkSizes


@dataclass(frozen=True, slots=True)
class Scale:
    """What becomes of an accumulator; fields of the OFM header, without sign."""

    multiplier: int
    shift: int
    zero_point: int


@dataclass(frozen=True, slots=True)
class Coding:
    """How symbols are coded: the fields of the payload header.

    palette  the weights of its entries
    """

    zero_divisor: int
    weight_divisor: int
    truncated: bool
    offset: int
    palette: tuple[int, ...]
    palette_bits: int

    @property
    def has_runs(self) -> bool:
        """Whether zeros are coded as runs."""
        return self.zero_divisor != form.NO_RUNS

    @property
    def is_uncoded(self) -> bool:
        """Whether symbols have no unary bits."""
        return self.weight_divisor == form.UNCODED

    @property
    def remainder_bits(self) -> int:
        """Bits of a symbol after its unary bits."""
        if not self.is_uncoded:
            return self.weight_divisor
        if self.palette:
            return max(1, (len(self.palette) - 1).bit_length())
        return self.palette_bits + form.LEAST_ENTRY_BITS


@dataclass(slots=True)
class State:
    """What an output generator remembers from one stream to the next."""

    scale: Scale | None = None
    coding: Coding | None = None


@dataclass(slots=True)
class Chunks:
    """Chunks of one stream; `first` and `second` are empty for weights without a code.

    ended          symbols that end in each chunk
    remainders_at  the first bit of the remainders of each
    """

    first: list[int] = field(default_factory=list[int])
    second: list[int] = field(default_factory=list[int])
    ended: list[int] = field(default_factory=list[int])
    remainders_at: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class Scanned:
    """One OFM's stream, or one of its parts.

    name           for messages
    weights, runs  the chunks; of runs there is no `second`
    end            the first bit after the stream
    """

    name: str
    bias: int
    scale: Scale
    coding: Coding
    symbols: int
    weights: Chunks
    runs: Chunks
    end: int


class Scanner:
    """Reads streams in memory that begins at bit 0; after it there must be 64 zero bytes."""

    def __init__(self, data: bytes, sizes: ChunkSizes) -> None:
        self._data = data
        self._sizes = sizes

    def scan(self, at: int, begin: int, end: int, state: State, name: str) -> Scanned:
        """Read the stream of an OFM at bit `at` of an output generator's, from `begin` to `end`.

        E946 if it goes beyond `end`, E947 for a header that cannot be, E949 for one that says
        another length. `name` is the stream's, for messages.
        """
        header = _Bits(self._data, at)
        length = header.take(form.LENGTH)
        bias = header.take(form.BIAS)
        if header.take(form.SCALE_FOLLOWS):
            state.scale = Scale(
                header.take(form.MULTIPLIER),
                header.take(form.SHIFT),
                header.take(form.ZERO_POINT),
            )
        symbols = header.take(form.SYMBOL_COUNT)
        if header.take(form.PARAMETERS_FOLLOW):
            state.coding = _coding(header, state.coding, name)
        if state.scale is None or state.coding is None:
            missing = "a scale" if state.scale is None else "how it is coded"
            raise fail("E947", f"{name} must say {missing}: no earlier block did")
        weights, runs, finish = self._payload(header.at, symbols, state.coding)
        if finish > end:
            raise fail("E946", f"{name} must end within its stripe, and lacks {finish - end} bits")
        unit = 8 * form.LENGTH_UNIT_BYTES
        units = -(-(finish - begin) // unit) - (at - begin) // unit
        if length != units:
            raise fail("E949", f"{name} must say its length, {units} units, not {length}")
        signed = bias - (bias >> (form.BIAS - 1) << form.BIAS)
        return Scanned(name, signed, state.scale, state.coding, symbols, weights, runs, finish)

    def _payload(self, at: int, symbols: int, coding: Coding) -> tuple[Chunks, Chunks, int]:
        if coding.has_runs:
            return self._with_runs(at, symbols, coding)
        if coding.is_uncoded:
            chunks = Chunks(ended=[symbols], remainders_at=[at])
            return chunks, Chunks(), at + symbols * coding.remainder_bits
        return self._coded(at, symbols, coding)

    def _coded(self, at: int, symbols: int, coding: Coding) -> tuple[Chunks, Chunks, int]:
        data, size, truncated = self._data, self._sizes.three_quarters, coding.truncated
        mask, width = (1 << size) - 1, coding.remainder_bits
        first: list[int] = []
        second: list[int] = []
        ended: list[int] = []
        remainders_at: list[int] = []
        left, previous = symbols, 0
        while left:
            byte = at >> 3
            bits = int.from_bytes(data[byte : byte + 8], "little") >> (at & 7)
            ones = bits & mask
            seconds = ones.bit_count()
            more = bits >> size & ((1 << seconds) - 1)
            ending = size if truncated else size - more.bit_count()
            ending = min(ending, left)
            at += size + seconds
            first.append(ones)
            second.append(more)
            ended.append(ending)
            remainders_at.append(at)
            at += previous
            previous = width * ending
            left -= ending
        # The remainders of a chunk are after the unary bits of the next.
        chunks = Chunks(first, second, ended, [*remainders_at[1:], at][: len(first)])
        return chunks, Chunks(), at + previous

    def _with_runs(self, at: int, symbols: int, coding: Coding) -> tuple[Chunks, Chunks, int]:
        sizes, width, divisor = self._sizes, coding.remainder_bits, coding.zero_divisor
        plain = coding.is_uncoded
        wide = plain and width > form.WIDEST_IN_LARGE_CHUNK
        size = sizes.half if wide else sizes.three_quarters
        run_size = run_cells(divisor, sizes)
        weights, runs = Chunks(), Chunks()
        # Symbols and runs that have ended, and those of the step before.
        done = runs_done = ended = runs_ended = 0
        took_weights = took_runs = False
        while True:
            lead = done - runs_done
            takes_weights = done < symbols and lead < sizes.half
            takes_runs = runs_done <= symbols and lead >= 0
            byte = at >> 3
            bits = int.from_bytes(self._data[byte : byte + 8], "little") >> (at & 7)
            start, ones, ending, runs_ending = at, 0, 0, 0
            if takes_weights and not plain:
                ones = bits & ((1 << size) - 1)
                at += size
            if takes_runs:
                unary = bits >> (at - start) & ((1 << run_size) - 1)
                at += run_size
                runs_ending = min(run_size - unary.bit_count(), symbols + 1 - runs_done)
                runs.first.append(unary)
                runs.ended.append(runs_ending)
            if takes_weights:
                seconds = ones.bit_count()
                more = bits >> (at - start) & ((1 << seconds) - 1)
                at += seconds
                ending = size if plain or coding.truncated else size - more.bit_count()
                ending = min(ending, symbols - done)
                weights.first.append(ones)
                weights.second.append(more)
                weights.ended.append(ending)
            if took_weights:
                weights.remainders_at.append(at)
                at += width * ended
            if took_runs:
                runs.remainders_at.append(at)
                at += divisor * runs_ended
            if not takes_weights and not takes_runs:
                return weights, runs, at
            took_weights, ended = takes_weights, ending
            took_runs, runs_ended = takes_runs, runs_ending
            done += ending
            runs_done += runs_ending


def run_cells(divisor: int, sizes: ChunkSizes) -> int:
    """Return the unary bits of a chunk of runs."""
    return sizes.half if divisor == form.LARGEST_ZERO_DIVISOR else sizes.three_quarters


class _Bits:
    """Takes fields one after another."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def take(self, width: int) -> int:
        byte = self.at >> 3
        bits = int.from_bytes(self._data[byte : byte + 8], "little") >> (self.at & 7)
        self.at += width
        return bits & ((1 << width) - 1)


def _coding(header: _Bits, before: Coding | None, name: str) -> Coding:
    """Read the parameters; a palette that is not sent is that from before."""
    zero_divisor = header.take(form.ZERO_DIVISOR)
    weight_divisor = header.take(form.WEIGHT_DIVISOR)
    if form.LARGEST_ZERO_DIVISOR < zero_divisor != form.NO_RUNS:
        raise fail("E947", f"{name} must have a divisor of runs of 0 to 3 or 7, not {zero_divisor}")
    if form.LARGEST_WEIGHT_DIVISOR < weight_divisor != form.UNCODED:
        raise fail(
            "E947", f"{name} must have a divisor of weights of 0 to 5 or 7, not {weight_divisor}"
        )
    truncated = bool(header.take(form.TRUNCATED))
    offset = header.take(form.OFFSET)
    if header.take(form.PALETTE_FOLLOWS):
        # 0 stands for no palette, not for one of a single entry.
        size = header.take(form.PALETTE_SIZE_LESS_1) + 1
        bits = header.take(form.PALETTE_BITS)
        palette = tuple(_entry(header, bits) for _ in range(size if size > 1 else 0))
    elif before is not None:
        palette, bits = before.palette, before.palette_bits
    else:
        raise fail("E947", f"{name} must send a palette, or none: there is none from before")
    return Coding(zero_divisor, weight_divisor, truncated, offset, palette, bits)


def _entry(header: _Bits, bits: int) -> int:
    value = header.take(bits + form.LEAST_ENTRY_BITS)
    sign = 1 << (bits + form.LEAST_ENTRY_BITS - 1)
    return sign - value if value & sign else value


Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


class Windows:
    """Bits of a memory, 9 or fewer at a time."""

    def __init__(self, data: bytes) -> None:
        low = np.frombuffer(data, np.uint8)
        self._pairs = low[:-1] | low[1:].astype(np.uint16) << 8

    def take(self, at: Numbers, width: Numbers) -> Numbers:
        """Return the numbers of so many bits from those bits on."""
        pairs = self._pairs[at >> 3].astype(np.int64)
        return pairs >> (at & 7) & ((1 << width) - 1)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the weights of streams go: into `memory`, int16 zeros, `counts` from `starts` on."""

    memory: Array
    starts: Numbers
    counts: Numbers


def put_weights(
    streams: Sequence[Scanned], windows: Windows, sizes: ChunkSizes, destination: Destination
) -> None:
    """Write the weights of each stream to its destination.

    E947 for a symbol of a weight beyond 255, E948 for another number of weights.
    """
    symbols = np.array([stream.symbols for stream in streams])
    values = _weights(streams, symbols, _symbols(streams, windows, sizes))
    first = np.cumsum(symbols) - symbols
    place = np.arange(len(values)) + np.repeat(destination.starts - first, symbols)
    zeros = np.zeros_like(symbols)
    with_runs = np.array([stream.coding.has_runs for stream in streams])
    if with_runs.any():
        runs = _runs([stream for stream in streams if stream.coding.has_runs], windows, sizes)
        counts = symbols[with_runs] + 1
        until = np.cumsum(runs)
        last = np.cumsum(counts) - 1
        before = np.concatenate([[0], until])[last + 1 - counts]
        zeros[with_runs] = until[last] - before
        # The run after a stream's last weight moves none.
        moving = np.delete(until - np.repeat(before, counts), last)
        place[np.repeat(with_runs, symbols)] += moving
    for stream, decoded, needed in zip(streams, symbols + zeros, destination.counts, strict=True):
        if decoded != needed:
            raise fail("E948", f"{stream.name} must have {needed} weights, not {decoded}")
    destination.memory[place] = values


def _flat(lists: Iterable[list[int]]) -> Numbers:
    return np.fromiter(chain.from_iterable(lists), np.int64)


def _counts(chunks: list[Chunks]) -> Numbers:
    return np.array([len(chunk.ended) for chunk in chunks], np.int64)


def _spread(chunks: list[Chunks], per_stream: list[int]) -> Numbers:
    """Return the number of each chunk's stream."""
    return np.repeat(np.array(per_stream, np.int64), _counts(chunks))


def _remainders(chunks: list[Chunks], widths: list[int], windows: Windows) -> tuple[Numbers, ...]:
    """Return each symbol's remainder, and the bits that it has."""
    ended = _flat(chunk.ended for chunk in chunks)
    begin = _flat(chunk.remainders_at for chunk in chunks)
    width = np.repeat(_spread(chunks, widths), ended)
    rank = np.arange(len(width)) - np.repeat(np.cumsum(ended) - ended, ended)
    return windows.take(np.repeat(begin, ended) + rank * width, width), width


def _symbols(streams: Sequence[Scanned], windows: Windows, sizes: ChunkSizes) -> Numbers:
    """Return the symbols of weights."""
    widths = [stream.coding.remainder_bits for stream in streams]
    remainder, width = _remainders([stream.weights for stream in streams], widths, windows)
    coded = [stream for stream in streams if not stream.coding.is_uncoded]
    quotients = _weight_quotients(coded, sizes.three_quarters)
    if len(coded) == len(streams):
        return quotients << width | remainder
    of_coded = np.repeat(
        [not stream.coding.is_uncoded for stream in streams],
        [stream.symbols for stream in streams],
    )
    remainder[of_coded] |= quotients << width[of_coded]
    return remainder


def _cells(numbers: Numbers, size: int) -> Flags:
    """Return numbers' bits, [numbers, size], the lowest first."""
    pairs = numbers.astype("<u2").view(np.uint8).reshape(-1, 2)
    return np.unpackbits(pairs, axis=1, bitorder="little")[:, :size].view(np.bool_)


def _require_ended(ends: Flags, ended: Numbers) -> None:
    """Take away the ends in cells that fill up a stream's last chunk."""
    surplus = np.flatnonzero(ends.sum(axis=1) > ended)
    part = ends[surplus]
    ends[surplus] = part & (np.cumsum(part, axis=1) <= ended[surplus, None])


def _since_last(cell: Numbers, streams: list[Chunks], first_cell: Numbers) -> Numbers:
    """Count the cells between each symbol's last and that before it in its stream."""
    before = np.empty_like(cell)
    before[1:] = cell[:-1]
    symbols = np.array([sum(stream.ended) for stream in streams], np.int64)
    begin = np.cumsum(symbols) - symbols
    there = symbols > 0
    before[begin[there]] = first_cell[there] - 1
    return cell - before - 1


def _weight_quotients(streams: list[Scanned], size: int) -> Numbers:
    chunks = [stream.weights for stream in streams]
    first = _cells(_flat(chunk.first for chunk in chunks), size)
    second = _cells(_flat(chunk.second for chunk in chunks), size)
    # Each first bit that is 1 has the next second bit.
    counts = first.sum(axis=1)
    goes_on = np.zeros_like(first)
    goes_on[first] = second[np.arange(size) < counts[:, None]]
    truncated = _spread(chunks, [stream.coding.truncated for stream in streams]) > 0
    ends = ~goes_on
    ends[truncated] = True
    _require_ended(ends, _flat(chunk.ended for chunk in chunks))
    cell = np.flatnonzero(ends)
    lengths = _counts(chunks)
    first_cell = (np.cumsum(lengths) - lengths) * size
    ones = first.ravel()[cell].astype(np.int64)
    full = 2 * _since_last(cell, chunks, first_cell) + ones
    if not truncated.any():
        return full
    return np.where(truncated[cell // size], ones + goes_on.ravel()[cell], full)


def _runs(streams: list[Scanned], windows: Windows, sizes: ChunkSizes) -> Numbers:
    """Return the lengths of runs of zeros, one more than there are symbols in each stream."""
    chunks = [stream.runs for stream in streams]
    divisors = [stream.coding.zero_divisor for stream in streams]
    remainder, width = _remainders(chunks, divisors, windows)
    most = sizes.three_quarters
    size = _spread(chunks, [run_cells(divisor, sizes) for divisor in divisors])
    ends = ~_cells(_flat(chunk.first for chunk in chunks), most) & (np.arange(most) < size[:, None])
    _require_ended(ends, _flat(chunk.ended for chunk in chunks))
    line, column = np.divmod(np.flatnonzero(ends), most)
    base = np.cumsum(size) - size
    lengths = _counts(chunks)
    quotient = _since_last(base[line] + column, chunks, base[np.cumsum(lengths) - lengths])
    return quotient << width | remainder


def _weights(streams: Sequence[Scanned], symbols: Numbers, coded: Numbers) -> Array:
    """Replace coded symbols, so many of each stream, by the weights that they stand for."""
    palettes = np.zeros((len(streams), LARGEST_PALETTE), np.int16)
    for palette, stream in zip(palettes, streams, strict=True):
        palette[: len(stream.coding.palette)] = stream.coding.palette
    sizes = np.array([len(stream.coding.palette) for stream in streams])
    offsets = np.array([stream.coding.offset for stream in streams])
    symbol = coded + np.repeat(offsets - sizes, symbols)
    in_palette = coded < np.repeat(sizes, symbols)
    symbol[in_palette] = 0
    if symbol.max(initial=0) >= LARGEST_SYMBOL:
        bad = int(np.searchsorted(np.cumsum(symbols), symbol.argmax(), side="right"))
        raise fail(
            "E947",
            f"{streams[bad].name} must have symbols less than {LARGEST_SYMBOL}, not {symbol.max()}",
        )
    weights = np.where(symbol & 1, -1, 1) * (symbol + 1 >> 1)
    owner = np.repeat(np.arange(len(streams)) * LARGEST_PALETTE, symbols)
    weights[in_palette] = palettes.ravel()[owner[in_palette] + coded[in_palette]]
    return weights.astype(np.int16)
