"""Decodes a pass's weights: the numbers that the compute engine multiplies with.

Where in the stream of an output feature map (OFM) the weight of each tap is follows from the
layout. Of the encoder it knows only the table of fields that both follow.

Ref: Ethos-N driver stack 23.02, `WeightEncoder.cpp`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import Algorithm, MceOperation
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.program import StripePlace
from mizzen.targets.ethos_n.sim.weight_symbols import (
    Destination,
    Scanned,
    Scanner,
    State,
    Windows,
    put_weights,
)
from mizzen.targets.ethos_n.weights.weight_format import (
    BANK_ROW_BYTES,
    BRICK,
    PATCH,
    WIDE_TAPS,
    ChunkSizes,
    WeightLayout,
)

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one OFM's weights; those of every OFM are the same.

    iteration, place  [H, W, I] (depthwise: [H, W]): in which stream, and where in it
    counts            weights of each iteration, with zeros that fill up
    """

    iteration: Numbers
    place: Numbers
    counts: tuple[int, ...]


def places_of(layout: WeightLayout, capabilities: Capabilities) -> Places:
    """Find the places; E945 if the iterations do not begin with whole slices of channels."""
    if layout.is_depthwise:
        return _depthwise(layout)
    if layout.operation is MceOperation.FULLY_CONNECTED:
        return _fully_connected(layout, capabilities)
    if layout.algorithm is Algorithm.WINOGRAD:
        return _winograd(layout)
    return _direct(layout, capabilities)


@dataclass(frozen=True, slots=True)
class _Submaps:
    """Which submap of a strided convolution each tap belongs to.

    submap, tap  [H, W, 1]: the submap, and the number of the tap in it
    taps         of each submap
    """

    submap: Numbers
    tap: Numbers
    taps: Numbers

    @classmethod
    def of(cls, layout: WeightLayout) -> _Submaps:
        height, width = layout.shape[:2]
        y, x = np.arange(height)[:, None, None], np.arange(width)[None, :, None]
        sy, sx = layout.stride_y, layout.stride_x
        # A submap's columns are those whose distance from the padded edge has its remainder.
        submap = (y - layout.pad_top) % sy * sx + (x - layout.pad_left) % sx
        columns = -(-(width - x % sx) // sx)
        tap = y // sy * columns + x // sx
        return cls(submap, tap, np.bincount(submap.ravel(), minlength=sy * sx))


def _depthwise(layout: WeightLayout) -> Places:
    submaps = _Submaps.of(layout)
    before = np.cumsum(submaps.taps) - submaps.taps
    place = (before[submaps.submap] + submaps.tap)[:, :, 0]
    return Places(np.zeros_like(place), place, (place.size,))


def _tile(layout: WeightLayout) -> tuple[Numbers, Numbers, int, int]:
    """Return each tap's tile and number in it, [H, W, 1], the number of tiles and of their taps."""
    height, width = layout.shape[:2]
    lines = WIDE_TAPS if height > 1 else 1
    columns = WIDE_TAPS if width > 1 else 1
    across = -(-width // columns)
    y, x = np.arange(height)[:, None, None], np.arange(width)[None, :, None]
    tile = y // lines * across + x // columns
    return tile, y % lines * columns + x % columns, across * -(-height // lines), lines * columns


def _winograd(layout: WeightLayout) -> Places:
    channels = layout.shape[2]
    tile, tap, tiles, taps = _tile(layout)
    place = (tile * channels + np.arange(channels)) * taps + tap
    return Places(np.zeros_like(place), place, (tiles * channels * taps,))


def _direct(layout: WeightLayout, capabilities: Capabilities) -> Places:
    channels, lanes = layout.shape[2], capabilities.igs
    taken = layout.iteration_size // layout.submaps if layout.iterations > 1 else channels
    if layout.iterations > 1 and taken % lanes:
        raise fail(
            "E945",
            f"an iteration must take whole slices of {lanes} input channels, not {taken} channels",
        )
    channel = np.arange(channels)
    iteration, inner = channel // taken, channel % taken
    # Each submap takes at least the place of one tap; the last alone has no absent channels.
    submaps = _Submaps.of(layout)
    submap, tap, taps = submaps.submap, submaps.tap, np.maximum(submaps.taps, 1)
    tile, tiles = np.zeros_like(tap), 1
    if layout.is_wide:
        tile, tap, tiles, size = _tile(layout)
        taps = np.array([size])
    before = np.cumsum(taps) - taps
    in_iteration = np.minimum(taken, channels - iteration * taken)
    present = np.minimum(lanes, channels - channel // lanes * lanes)
    tile_size = _slices_size(taps, in_iteration, lanes)
    place = (
        tile * tile_size
        + inner // lanes * lanes * taps.sum()
        + before[submap] * lanes
        + tap * np.where(submap == len(taps) - 1, present, lanes)
        + inner % lanes
    )
    firsts = range(0, channels, taken)
    counts = (_slices_size(taps, np.array(min(taken, channels - f)), lanes) for f in firsts)
    shape = place.shape
    return Places(np.broadcast_to(iteration, shape), place, tuple(tiles * int(n) for n in counts))


def _slices_size(taps: Numbers, channels: Numbers, lanes: int) -> Numbers:
    """Count the weights of slices of so many channels together."""
    whole = -(-channels // lanes) * lanes
    return taps[:-1].sum() * whole + taps[-1] * channels


def _fully_connected(layout: WeightLayout, capabilities: Capabilities) -> Places:
    """Each bank in turn gives one element of its patch; half-filled groups come in two rounds."""
    banks = capabilities.srams
    rounds = PATCH // banks
    per_round = BRICK // PATCH // banks // rounds
    element = np.arange(layout.shape[2])
    brick, patch = element // BRICK, element % BRICK // PATCH
    group, bank = np.divmod(patch, banks)
    step = group % rounds * per_round + group // rounds
    place = brick * BRICK + (step * PATCH + element % PATCH) * banks + bank
    iteration, place = np.divmod(place, layout.iteration_size)
    counts = (layout.iteration_size,) * layout.iterations
    return Places(iteration[None, None], place[None, None], counts)


Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

_BATCH = 1 << 18
"""Weights that are found at a time, so that what is made of them stays in the cache."""
_MARGIN = bytes(64)
"""After the streams, so that reading ahead stays in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class DecodedWeights:
    """What a weight stream says.

    weights      [H, W, I, O], depthwise [H, W, I, M], int16, less their zero point
    bias         of each OFM, int64, within 32 bits
    multipliers  of each OFM, 16 bits; shifts 6 bits; int64
    zero_points  of the output by OFM, 8 bits without sign: modulo 256; int64
    """

    weights: Array
    bias: Array
    multipliers: Array
    shifts: Array
    zero_points: Array


def decode(
    data: bytes, stripes: Sequence[StripePlace], layout: WeightLayout, capabilities: Capabilities
) -> DecodedWeights:
    """Decode the weight stream of a pass, of which `stripes` are the weight stripes.

    E945 for stripes that do not fit the layout or the data, E946 for a stream that goes on after
    its stripe, E947 for what cannot be in a header or a symbol, E948 for another number of weights
    or one where there is none, E949 for lengths or parts of an OFM that contradict each other.
    """
    places = places_of(layout, capabilities)
    streams = _Streams.of(data, stripes, layout, capabilities)
    total = sum(places.counts)
    offsets = np.cumsum((0, *places.counts))
    memory = np.zeros(layout.ofms * total, np.int16)
    heads = np.zeros((4, layout.ofms), np.int64)
    for batch in _batches(streams.scan(layout, ChunkSizes.of(capabilities))):
        ofms = np.array([part.ofm for part in batch])
        iterations = np.array([part.iteration for part in batch])
        destination = Destination(
            memory, ofms * total + offsets[iterations], np.array(places.counts)[iterations]
        )
        scanned = [part.scanned for part in batch]
        put_weights(scanned, streams.windows, ChunkSizes.of(capabilities), destination)
        for part in batch:
            _note(heads, part)
    weights = _arranged(memory.reshape(layout.ofms, total), layout, places)
    return DecodedWeights(weights, *heads)


class _Part(NamedTuple):
    """What was scanned of an OFM in an iteration."""

    ofm: int
    iteration: int
    scanned: Scanned


@dataclass(frozen=True, slots=True)
class _Streams:
    """The streams of all output generators.

    memory   one after another, and a margin
    windows  the same
    begins   the first bit of each weight stripe's first stream
    bits     of each stream of a weight stripe
    ogs      output generators in use
    """

    memory: bytes
    windows: Windows
    begins: list[int]
    bits: list[int]
    ogs: int

    @classmethod
    def of(
        cls,
        data: bytes,
        stripes: Sequence[StripePlace],
        layout: WeightLayout,
        hardware: Capabilities,
    ) -> _Streams:
        """Take the streams out of the rows that the DMA gives the SRAM banks in turn."""
        banks = hardware.srams
        ogs = min(banks if layout.is_depthwise else hardware.ogs, layout.stripe_depth)
        if ogs % banks:
            raise fail(
                "E945",
                f"the stripe depth must be a multiple of the {banks} SRAM banks, "
                f"not {layout.stripe_depth}",
            )
        expected = -(-layout.ofms // layout.stripe_depth) * layout.iterations
        if len(stripes) != expected:
            raise fail("E945", f"there must be {expected} weight stripes, not {len(stripes)}")
        regions: list[bytes] = []
        for stripe in stripes:
            region = np.frombuffer(data[stripe.offset : stripe.offset + stripe.size], np.uint8)
            if len(region) != stripe.size or stripe.size % (ogs * BANK_ROW_BYTES):
                raise fail(
                    "E945",
                    f"a weight stripe must be in {len(data)} bytes and have rows of "
                    f"{ogs * BANK_ROW_BYTES}, not {stripe.size} bytes from {stripe.offset} on",
                )
            banked = region.reshape(ogs // banks, -1, banks, BANK_ROW_BYTES)
            regions.append(banked.transpose(0, 2, 1, 3).tobytes())
        sizes = [8 * len(region) for region in regions]
        memory = b"".join([*regions, _MARGIN])
        begins = [0, *accumulate(sizes)]
        return cls(memory, Windows(memory), begins, [size // ogs for size in sizes], ogs)

    def scan(self, layout: WeightLayout, sizes: ChunkSizes) -> Iterator[_Part]:
        """Scan the streams in the order in which the hardware reads them."""
        scanner = Scanner(self.memory, sizes)
        states = [State() for _ in range(self.ogs)]
        depth, ofms, iterations = layout.stripe_depth, layout.ofms, layout.iterations
        for number, bits in enumerate(self.bits):
            stripe, iteration = divmod(number, iterations)
            part = f", part {iteration}" if iterations > 1 else ""
            for og, state in enumerate(states):
                at = begin = self.begins[number] + og * bits
                for ofm in range(stripe * depth + og, min((stripe + 1) * depth, ofms), self.ogs):
                    name = f"the weight stream of OFM {ofm}{part}"
                    scanned = scanner.scan(at, begin, begin + bits, state, name)
                    at = scanned.end
                    yield _Part(ofm, iteration, scanned)


def _batches(parts: Iterator[_Part]) -> Iterator[list[_Part]]:
    batch: list[_Part] = []
    waiting = 0
    for part in parts:
        batch.append(part)
        waiting += part.scanned.symbols
        if waiting >= _BATCH:
            yield batch
            batch, waiting = [], 0
    if batch:
        yield batch


def _note(heads: Array, part: _Part) -> None:
    """Remember an OFM's bias and scale; each of its parts must say the same."""
    scanned = part.scanned
    head = (scanned.bias, scanned.scale.multiplier, scanned.scale.shift, scanned.scale.zero_point)
    if part.iteration and tuple(heads[:, part.ofm]) != head:
        raise fail(
            "E949",
            f"{scanned.name} must have bias and scale of the parts before, "
            f"{tuple(heads[:, part.ofm].tolist())}, not {head}",
        )
    heads[:, part.ofm] = head


def _arranged(streams: Array, layout: WeightLayout, places: Places) -> Array:
    """Return the weight of each tap; E948 where there is one that no tap has."""
    offsets = np.cumsum((0, *places.counts))
    taps = (places.place + offsets[places.iteration]).ravel()
    taken = streams[:, taps]
    surplus = np.count_nonzero(streams) - np.count_nonzero(taken)
    if surplus:
        raise fail("E948", f"weights that fill up must be 0; {surplus} are not")
    height, width, inputs, outputs = layout.shape
    if layout.is_depthwise:
        by_ofm = taken.reshape(outputs, inputs, height, width)
        return np.ascontiguousarray(by_ofm.transpose(2, 3, 1, 0))
    by_ofm = taken.reshape(outputs, height, width, inputs)
    return np.ascontiguousarray(by_ofm.transpose(1, 2, 3, 0))
