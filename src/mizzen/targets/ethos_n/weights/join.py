"""Joins the streams of each output generator, and deals them out to the SRAM banks.

Ref: Ethos-N driver stack 23.02, `WeightEncoder.cpp` (`MergeStreamsOg`, `MergeStreams`,
`InterleaveStreams`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.weights.bits import WORD, BitFields, Words
from mizzen.targets.ethos_n.weights.format import (
    BANK_ROW_BYTES,
    LENGTH,
    LENGTH_UNIT_BYTES,
    WeightLayout,
)
from mizzen.targets.ethos_n.weights.stream import EncodedStreams
from mizzen.targets.ethos_n.weights.symbols import Flags, Numbers, Streams, exclusive_sum

_ROW_BITS = 8 * BANK_ROW_BYTES
_LENGTH_UNIT_BITS = 8 * LENGTH_UNIT_BYTES


@dataclass(frozen=True, slots=True)
class Dealing:
    """Which OFM is computed where and when.

    depth       OFMs of a stripe
    ogs         output generators in use, a multiple of the banks
    stripes     groups of OFMs, one group after another
    iterations  parts of the input channels; each stripe has so many weight stripes
    banks       SRAM banks, that output generators share
    """

    depth: int
    ogs: int
    stripes: int
    iterations: int
    banks: int

    @classmethod
    def of(cls, layout: WeightLayout, capabilities: Capabilities) -> Dealing:
        """Deal out the OFMs; E943 if the DMA could not load the result stripe by stripe."""
        depth, banks = layout.stripe_depth, capabilities.srams
        most = banks if layout.is_depthwise else capabilities.ogs
        ogs = min(most, depth)
        if ogs % banks:
            raise fail(
                "E943",
                f"a stripe must have OFMs for each of the {banks} SRAM banks, or all of them for "
                f"each of the {most} output generators; the stripe depth is {depth}",
                help=f"round the stripe depth up to a multiple of {banks}",
            )
        if layout.iterations > 1 and depth != most:
            raise fail(
                "E943",
                f"a stripe whose input channels are read in {layout.iterations} parts must have "
                f"an OFM for each output generator; the stripe depth is {depth}",
                help=f"use a stripe depth of {most}",
            )
        return cls(depth, ogs, -(-layout.ofms // depth), layout.iterations, banks)

    @property
    def weight_stripes(self) -> int:
        """Parts of the weights that are loaded one after another."""
        return self.stripes * self.iterations

    @property
    def streams(self) -> int:
        """The number of streams after joining."""
        return self.weight_stripes * self.ogs

    def og_of(self, ofms: Numbers) -> Numbers:
        """Return the output generator of each OFM."""
        return ofms % self.depth % self.ogs

    def stream_of(self, ofms: Numbers, iterations: Numbers) -> Numbers:
        """Return the joined stream of each OFM's iteration."""
        stripe = ofms // self.depth
        return (stripe * self.iterations + iterations) * self.ogs + self.og_of(ofms)

    def begins_stripe(self, ofms: Numbers) -> Flags:
        """Whether OFMs are the first of their stripe on their output generator."""
        return ofms % self.depth < self.ogs

    @property
    def has_several(self) -> bool:
        """Whether a stripe has several OFMs for an output generator."""
        return self.depth > self.ogs


def join(parts: EncodedStreams, stream: Numbers, dealing: Dealing) -> tuple[Words, int]:
    """Put parts that have the same stream behind each other, bit by bit, and fill in LENGTH.

    Give the words of all streams and the number of bytes that each of them has.
    """
    order = np.argsort(stream, kind="stable")
    sums = np.concatenate([[0], np.cumsum(parts.bits[order])])
    per_stream = np.bincount(stream, parts.bits, dealing.streams).astype(np.int64)
    size_bytes = -(-int(per_stream.max()) // _ROW_BITS) * BANK_ROW_BYTES
    start = np.empty_like(stream)
    start[order] = sums[:-1] - exclusive_sum(per_stream)[stream[order]]
    base = start + stream * (8 * size_bytes)
    units = -(-(start + parts.bits) // _LENGTH_UNIT_BITS) - start // _LENGTH_UNIT_BITS
    if units.max() >> LENGTH:
        raise fail(
            "E941",
            f"the stream of an OFM must have less than {1 << LENGTH} units of "
            f"{LENGTH_UNIT_BYTES} bytes; one has {units.max()}",
        )
    fields = BitFields()
    words = Streams(parts.words, parts.word_counts)
    index = np.arange(len(parts.words)) - words.spread(words.starts)
    fields.put(words.spread(base) + index * WORD, parts.words)
    fields.put(base, units)
    return fields.words(8 * size_bytes * dealing.streams), size_bytes


def interleave(words: Words, size_bytes: int, dealing: Dealing) -> bytes:
    """Return each bank in turn a row of 16 bytes, weight stripe after weight stripe."""
    groups, rows = dealing.streams // dealing.banks, size_bytes // BANK_ROW_BYTES
    streams = words.astype("<u4").view(np.uint8)
    shape = (groups, dealing.banks, rows, BANK_ROW_BYTES)
    return streams.reshape(shape).transpose(0, 2, 1, 3).tobytes()
