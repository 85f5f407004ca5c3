"""Lays out the payload of streams: the chunks of weights and of runs, step after step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.targets.ethos_n.weights import format as form
from mizzen.targets.ethos_n.weights.bits import BitFields
from mizzen.targets.ethos_n.weights.chunks import (
    Chunks,
    RunChunks,
    WeightChunks,
    run_chunks,
    weight_chunks,
)
from mizzen.targets.ethos_n.weights.coding import ChosenCodings
from mizzen.targets.ethos_n.weights.format import ChunkSizes
from mizzen.targets.ethos_n.weights.schedule import Schedule, schedule
from mizzen.targets.ethos_n.weights.symbols import Array, Numbers, Streams, exclusive_sum


@dataclass(frozen=True, slots=True)
class Remainders:
    """What is behind the unary bits: of each stream so many bits a symbol."""

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

    The remainders of a chunk are in the step behind its own.
    """
    weights, runs = parts.weights.chunks, parts.runs.chunks
    lengths = np.zeros((int(steps.counts.sum()), 5), np.int64)
    lengths[steps.weights, 0] = np.repeat(parts.first_bits, weights.counts)
    lengths[steps.runs, 1] = np.repeat(parts.run_bits, runs.counts)
    lengths[steps.weights, 2] = parts.weights.seconds
    lengths[steps.weights + 1, 3] = parts.weight_remainders.bits(weights)
    lengths[steps.runs + 1, 4] = parts.run_remainders.bits(runs)
    return lengths
