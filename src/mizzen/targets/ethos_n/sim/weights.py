"""Decodes a pass's weights: the numbers that the compute engine multiplies with.

It knows of the encoder only the table of fields that both follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.config import Capabilities
from mizzen.targets.ethos_n.program import StripePlace
from mizzen.targets.ethos_n.sim.weight_places import Places, places_of
from mizzen.targets.ethos_n.sim.weight_scan import Scanned, Scanner, State
from mizzen.targets.ethos_n.sim.weight_symbols import Destination, Windows, put_weights
from mizzen.targets.ethos_n.weights.format import BANK_ROW_BYTES, ChunkSizes, WeightLayout

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

_BATCH = 1 << 18
"""Weights that are found at a time, so that what is made of them stays in the cache."""
_MARGIN = bytes(64)
"""Behind the streams, so that reading ahead stays in memory."""


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

    E945 for stripes that do not fit the layout or the data, E946 for a stream that goes on behind
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
            rows = region.reshape(ogs // banks, -1, banks, BANK_ROW_BYTES)
            regions.append(rows.transpose(0, 2, 1, 3).tobytes())
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
    found = part.scanned
    head = (found.bias, found.scale.multiplier, found.scale.shift, found.scale.zero_point)
    if part.iteration and tuple(heads[:, part.ofm]) != head:
        raise fail(
            "E949",
            f"{found.name} must have bias and scale of the parts before, "
            f"{tuple(heads[:, part.ofm].tolist())}, not {head}",
        )
    heads[:, part.ofm] = head


def _arranged(streams: Array, layout: WeightLayout, places: Places) -> Array:
    """Return each tap its weight; E948 where there is one that no tap has."""
    offsets = np.cumsum((0, *places.counts))
    taps = (places.place + offsets[places.iteration]).ravel()
    found = streams[:, taps]
    surplus = np.count_nonzero(streams) - np.count_nonzero(found)
    if surplus:
        raise fail("E948", f"weights that fill up must be 0; {surplus} are not")
    height, width, inputs, outputs = layout.shape
    if layout.is_depthwise:
        by_ofm = found.reshape(outputs, inputs, height, width)
        return np.ascontiguousarray(by_ofm.transpose(2, 3, 1, 0))
    by_ofm = found.reshape(outputs, height, width, inputs)
    return np.ascontiguousarray(by_ofm.transpose(1, 2, 3, 0))
