"""Encodes a pass's weights, byte for byte as Arm's Support Library 23.02 does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.program import StripePlace
from mizzen.targets.ethos_n.weights.choose import Choice, Chooser, candidates
from mizzen.targets.ethos_n.weights.format import (
    LARGEST_SYMBOL,
    SYMBOL_COUNT,
    ChunkSizes,
    WeightLayout,
)
from mizzen.targets.ethos_n.weights.headers import OutputScale, ofm_headers
from mizzen.targets.ethos_n.weights.join import Dealing, interleave, join
from mizzen.targets.ethos_n.weights.order import WeightOrder, weight_order
from mizzen.targets.ethos_n.weights.search import code_all, code_runs, histogram_of
from mizzen.targets.ethos_n.weights.stream import EncodedStreams, write_streams
from mizzen.targets.ethos_n.weights.symbols import (
    Array,
    Flags,
    Numbers,
    Streams,
    symbols_of,
    zero_runs,
)

_BLOCK = 1 << 18
"""Weights that are encoded at a time, so that what is made of them stays in the cache."""
_LONGEST_RUN = (1 << 16) - 1
"""Zeros of a run: the library counts them in 16 bits."""
_MOST_SYMBOLS = (1 << SYMBOL_COUNT) - 1


@dataclass(frozen=True, slots=True)
class EncodedWeights:
    """The weight stream of a pass, and where in it each weight stripe is."""

    data: bytes
    stripes: tuple[StripePlace, ...]

    @property
    def max_stripe_bytes(self) -> int:
        """The size of the largest weight stripe."""
        return max(stripe.size for stripe in self.stripes)


def encode(
    weights: Array,
    layout: WeightLayout,
    *,
    zero_point: int,
    bias: Array,
    scale: OutputScale,
    capabilities: Capabilities,
) -> EncodedWeights:
    """Encode integer weights of the shape that `layout` says, and biases, one for each OFM.

    E940 for arguments that do not fit together, E941 for more symbols, longer runs or streams than
    the format can say, E942 for a number too large for its field, E943 for a stripe depth or
    iteration size that the hardware cannot load.
    """
    dealing = Dealing.of(layout, capabilities)
    order = weight_order(layout, capabilities)
    symbols = _symbols(weights, layout, zero_point)
    headers = ofm_headers(layout.ofms, dealing.ogs, bias, scale)
    sizes = ChunkSizes.of(capabilities)
    chooser = Chooser()
    encoded: list[EncodedStreams] = []
    for ofms in _blocks(layout.ofms, len(order.taps)):
        block = _block(symbols[ofms], order)
        runs = zero_runs(block)
        choices = _choose(block, runs, _Place.of(ofms, dealing), chooser, sizes)
        part = headers.part(np.repeat(ofms, dealing.iterations))
        encoded.append(write_streams(block, runs, choices, part, sizes))
    words, size_bytes = join(
        _together(encoded), _Place.of(np.arange(layout.ofms), dealing).stream, dealing
    )
    stripe_bytes = size_bytes * dealing.ogs
    return EncodedWeights(
        interleave(words, size_bytes, dealing),
        tuple(StripePlace(n * stripe_bytes, stripe_bytes) for n in range(dealing.weight_stripes)),
    )


def _symbols(weights: Array, layout: WeightLayout, zero_point: int) -> Array:
    """Return the symbols of each OFM's weights, [OFMs, taps + 1]; the last is a zero to fill up."""
    if weights.shape != layout.shape or weights.dtype.kind not in "iu":
        raise fail(
            "E940",
            f"weights must be integers of shape {layout.shape}, not {weights.dtype} of shape "
            f"{weights.shape}",
        )
    most = LARGEST_SYMBOL // 2
    low, high = int(weights.min()) - zero_point, int(weights.max()) - zero_point
    if low < -most or high > most:
        raise fail(
            "E942",
            f"weights less their zero point must be -{most} to {most}; with zero point "
            f"{zero_point} they are {low} to {high}",
        )
    axes = (3, 2, 0, 1) if layout.is_depthwise else (3, 0, 1, 2)
    by_ofm = np.ascontiguousarray(weights.transpose(axes)).reshape(layout.ofms, -1)
    return np.pad(symbols_of(by_ofm.astype(np.int16) - np.int16(zero_point)), ((0, 0), (0, 1)))


def _blocks(ofms: int, taps: int) -> Iterator[Numbers]:
    """Return the OFMs of each block."""
    step = max(1, _BLOCK // taps)
    for start in range(0, ofms, step):
        yield np.arange(start, min(start + step, ofms))


def _block(symbols: Array, order: WeightOrder) -> Streams:
    """Put the symbols of OFMs in their order, each iteration a stream of its own."""
    counts = np.tile(np.array(order.counts), len(symbols))
    return Streams(np.take(symbols, order.taps, axis=1).ravel(), counts)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where each stream of some OFMs is read.

    og      its output generator
    stream  the joined stream that it is in
    afresh  whether what was read before it is not known
    """

    og: Numbers
    stream: Numbers
    afresh: Flags

    @classmethod
    def of(cls, ofms: Numbers, dealing: Dealing) -> _Place:
        ofm = np.repeat(ofms, dealing.iterations)
        iteration = np.tile(np.arange(dealing.iterations), len(ofms))
        if dealing.iterations > 1:
            afresh = iteration == 0
        else:
            # Where each stripe has one OFM for a generator, the library takes it that stripes are
            # read in order; where it has several, that each may be read again.
            afresh = dealing.has_several & dealing.begins_stripe(ofm)
        return cls(dealing.og_of(ofm), dealing.stream_of(ofm, iteration), afresh)


def _choose(
    symbols: Streams, runs: Streams, place: _Place, chooser: Chooser, sizes: ChunkSizes
) -> list[Choice]:
    """Choose each stream's coding; E941 for what the format cannot say."""
    histogram = histogram_of(symbols)
    zeros = histogram[:, 0]
    plain = candidates(code_all(histogram, sizes))
    with_runs = candidates(code_runs(histogram, runs, sizes))
    choices = [
        chooser.choose(og, afresh, candidate, other if zero else None, zero == count)
        for og, afresh, candidate, other, zero, count in zip(
            place.og.tolist(), place.afresh.tolist(), plain, with_runs, zeros.tolist(),
            symbols.counts.tolist(), strict=True,
        )
    ]  # fmt: skip
    has_runs = np.array([choice.has_runs for choice in choices])
    most = int((symbols.counts - zeros * has_runs).max())
    if most > _MOST_SYMBOLS:
        raise fail("E941", f"an OFM must have at most {_MOST_SYMBOLS} symbols, not {most}")
    longest = int(runs.values.max(initial=0, where=runs.spread(has_runs)))
    if longest > _LONGEST_RUN:
        raise fail("E941", f"a run of zeros must be at most {_LONGEST_RUN} long, not {longest}")
    return choices


def _together(encoded: list[EncodedStreams]) -> EncodedStreams:
    return EncodedStreams(
        np.concatenate([block.words for block in encoded]),
        np.concatenate([block.word_counts for block in encoded]),
        np.concatenate([block.bits for block in encoded]),
    )
