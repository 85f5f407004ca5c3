"""Finds what the bits of scanned chunks say, for many streams at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.sim.weight_scan import Chunks, Scanned, run_cells
from mizzen.targets.ethos_n.weights.format import LARGEST_PALETTE, LARGEST_SYMBOL, ChunkSizes

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
        # The run behind a stream's last weight moves none.
        moving = np.delete(until - np.repeat(before, counts), last)
        place[np.repeat(with_runs, symbols)] += moving
    for stream, found, needed in zip(streams, symbols + zeros, destination.counts, strict=True):
        if found != needed:
            raise fail("E948", f"{stream.name} must have {needed} weights, not {found}")
    destination.memory[place] = values


def _flat(lists: Iterable[list[int]]) -> Numbers:
    return np.fromiter(chain.from_iterable(lists), np.int64)


def _counts(chunks: list[Chunks]) -> Numbers:
    return np.array([len(row.ended) for row in chunks], np.int64)


def _spread(chunks: list[Chunks], per_stream: list[int]) -> Numbers:
    """Return each chunk the number of its stream."""
    return np.repeat(np.array(per_stream, np.int64), _counts(chunks))


def _remainders(chunks: list[Chunks], widths: list[int], windows: Windows) -> tuple[Numbers, ...]:
    """Return each symbol's remainder, and the bits that it has."""
    ended = _flat(row.ended for row in chunks)
    begin = _flat(row.remainders_at for row in chunks)
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


def _cells(rows: Numbers, size: int) -> Flags:
    """Return numbers' bits, [numbers, size], the lowest first."""
    pairs = rows.astype("<u2").view(np.uint8).reshape(-1, 2)
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
    symbols = np.array([sum(row.ended) for row in streams], np.int64)
    begin = np.cumsum(symbols) - symbols
    there = symbols > 0
    before[begin[there]] = first_cell[there] - 1
    return cell - before - 1


def _weight_quotients(streams: list[Scanned], size: int) -> Numbers:
    chunks = [stream.weights for stream in streams]
    first = _cells(_flat(row.first for row in chunks), size)
    second = _cells(_flat(row.second for row in chunks), size)
    # Each first bit that is 1 has the next second bit.
    counts = first.sum(axis=1)
    goes_on = np.zeros_like(first)
    goes_on[first] = second[np.arange(size) < counts[:, None]]
    truncated = _spread(chunks, [stream.coding.truncated for stream in streams]) > 0
    ends = ~goes_on
    ends[truncated] = True
    _require_ended(ends, _flat(row.ended for row in chunks))
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
    ends = ~_cells(_flat(row.first for row in chunks), most) & (np.arange(most) < size[:, None])
    _require_ended(ends, _flat(row.ended for row in chunks))
    row, column = np.divmod(np.flatnonzero(ends), most)
    base = np.cumsum(size) - size
    lengths = _counts(chunks)
    quotient = _since_last(base[row] + column, chunks, base[np.cumsum(lengths) - lengths])
    return quotient << width | remainder


def _weights(streams: Sequence[Scanned], symbols: Numbers, coded: Numbers) -> Array:
    """Replace coded symbols, so many of each stream, by the weights that they stand for."""
    palettes = np.zeros((len(streams), LARGEST_PALETTE), np.int16)
    for row, stream in zip(palettes, streams, strict=True):
        row[: len(stream.coding.palette)] = stream.coding.palette
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
