"""Encodes a pass's weights, byte for byte as Arm's Support Library 23.02 does.

The weights of each OFM are brought into the order of its stream; the streams of each output
generator are joined, and dealt out to the SRAM banks.

Ref: Ethos-N driver stack 23.02, `WeightEncoder.cpp` (`MergeStreamsOg`, `MergeStreams`,
`InterleaveStreams`) and `SubmapFilter.cpp`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import Algorithm, MceOperation
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.program import StripePlace
from mizzen.targets.ethos_n.weights.weight_codings import (
    WORD,
    Array,
    BitFields,
    Choice,
    Chooser,
    Flags,
    Numbers,
    Streams,
    Words,
    candidates,
    code_all,
    code_runs,
    exclusive_sum,
    histogram_of,
    symbols_of,
    zero_runs,
)
from mizzen.targets.ethos_n.weights.weight_format import (
    BANK_ROW_BYTES,
    BRICK,
    LARGEST_SYMBOL,
    LENGTH,
    LENGTH_UNIT_BYTES,
    PATCH,
    SYMBOL_COUNT,
    WIDE_TAPS,
    ChunkSizes,
    WeightLayout,
)
from mizzen.targets.ethos_n.weights.weight_streams import (
    EncodedStreams,
    OutputScale,
    ofm_headers,
    write_streams,
)

Indices = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class WeightOrder:
    """The order of one OFM's weights; that of every OFM is the same.

    taps    index into the OFM's weights, [H, W, I] flattened (depthwise: [H, W]); the index after
            the last stands for a zero that fills up
    counts  of `taps` to each iteration
    """

    taps: Indices
    counts: tuple[int, ...]


def weight_order(layout: WeightLayout, capabilities: Capabilities) -> WeightOrder:
    """Return the order of the weights; E943 if the iterations do not begin with whole slices."""
    if layout.is_depthwise:
        parts = [_depthwise(layout)]
    elif layout.operation is MceOperation.FULLY_CONNECTED:
        parts = _fully_connected(layout, capabilities)
    elif layout.algorithm is Algorithm.WINOGRAD:
        parts = [_winograd(layout)]
    else:
        parts = _direct(layout, capabilities)
    return WeightOrder(np.concatenate(parts), tuple(len(part) for part in parts))


def _taps(layout: WeightLayout, channels: int, padded: int) -> Indices:
    """Number the taps, [H, W, padded]; channels beyond `channels` are zeros that fill up."""
    height, width = layout.shape[:2]
    grid = np.full((height, width, padded), height * width * channels, np.int64)
    grid[:, :, :channels] = np.arange(height * width * channels).reshape(height, width, channels)
    return grid


def _submaps(layout: WeightLayout) -> list[tuple[slice, slice]]:
    """Return rows and columns of the kernel that meet each submap of the input, in its order."""
    y, x = layout.stride_y, layout.stride_x
    return [
        (
            slice((line + layout.pad_top) % y, None, y),
            slice((column + layout.pad_left) % x, None, x),
        )
        for line in range(y)
        for column in range(x)
    ]


def _depthwise(layout: WeightLayout) -> Indices:
    grid = _taps(layout, 1, 1)
    return np.concatenate([grid[part].ravel() for part in _submaps(layout)])


def _tiles(grid: Indices, filler: int) -> list[Indices]:
    """Cut a kernel into tiles of 3 rows and columns, of 1 where it has 1; zeros fill up."""
    height, width, channels = grid.shape
    lines = WIDE_TAPS if height > 1 else 1
    columns = WIDE_TAPS if width > 1 else 1
    shape = (-(-height // lines) * lines, -(-width // columns) * columns, channels)
    whole = np.full(shape, filler, np.int64)
    whole[:height, :width] = grid
    return [
        whole[y : y + lines, x : x + columns]
        for y in range(0, shape[0], lines)
        for x in range(0, shape[1], columns)
    ]


def _winograd(layout: WeightLayout) -> Indices:
    grid = _taps(layout, layout.shape[2], layout.shape[2])
    tiles = _tiles(grid, grid.size) if layout.is_wide else [grid]
    return np.concatenate([tile.transpose(2, 0, 1).ravel() for tile in tiles])


def _direct(layout: WeightLayout, capabilities: Capabilities) -> list[Indices]:
    channels = layout.shape[2]
    slice_size = capabilities.igs
    per_iteration = layout.iteration_size // layout.submaps
    if layout.iterations > 1 and per_iteration % slice_size:
        raise fail(
            "E943",
            f"iterations must begin with whole slices of {slice_size} input channels, and take "
            f"{per_iteration}",
            help=f"use an iteration size that is a multiple of {slice_size * layout.submaps}",
        )
    padded = -(-channels // slice_size) * slice_size
    grid = _taps(layout, channels, padded)
    filler = layout.shape[0] * layout.shape[1] * channels
    tiles = _tiles(grid, filler) if layout.is_wide else [grid]
    step = padded if layout.iterations == 1 else per_iteration
    return [
        np.concatenate(
            [
                _slice(tile[:, :, start : start + slice_size], layout, filler, channels - start)
                for tile in tiles
                for start in range(first, min(first + step, padded), slice_size)
            ]
        )
        for first in range(0, padded, step)
    ]


def _slice(grid: Indices, layout: WeightLayout, filler: int, channels: int) -> Indices:
    """Return one slice's weights, row by row, the channels of a tap together.

    The last submap alone has no weights for channels that do not exist.
    """
    *filled, last = (grid[part].reshape(-1, grid.shape[2]) for part in _submaps(layout))
    nothing = np.full((1, grid.shape[2]), filler, np.int64)
    parts = [taps if len(taps) else nothing for taps in (*filled, last)]
    parts[-1] = parts[-1][:, :channels]
    return np.concatenate([part.ravel() for part in parts])


def _fully_connected(layout: WeightLayout, capabilities: Capabilities) -> list[Indices]:
    """Order each brick of 1024 by the SRAM banks that its patches of 16 are in.

    Every bank gives one element a step. Where there are half as many banks as elements in a patch,
    the first banks' worth of every second group of patches comes first.
    """
    inputs, banks = layout.shape[2], capabilities.srams
    groups = BRICK // (PATCH * banks)
    halves = PATCH // banks
    brick = np.arange(BRICK).reshape(groups // halves, halves, banks, PATCH)
    order = brick.transpose(1, 0, 3, 2).ravel()
    bricks = np.arange(0, layout.iterations * layout.iteration_size, BRICK)
    taps = np.minimum(bricks[:, None] + order, inputs).reshape(layout.iterations, -1)
    return list(taps)


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
    """Put parts that have the same stream one after the other, bit by bit, and fill in LENGTH.

    Return the words of all streams and the number of bytes that each of them has.
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
    groups, lines = dealing.streams // dealing.banks, size_bytes // BANK_ROW_BYTES
    streams = words.astype("<u4").view(np.uint8)
    shape = (groups, dealing.banks, lines, BANK_ROW_BYTES)
    return streams.reshape(shape).transpose(0, 2, 1, 3).tobytes()


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
