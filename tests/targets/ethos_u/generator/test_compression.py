"""Streams of the encoder: they decode to what went in, by Arm's codec too, and are no longer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.targets.ethos_u.generator.weights import Compression, StreamOrder
from mizzen.targets.ethos_u.generator.weights.bitstream import write
from mizzen.targets.ethos_u.generator.weights.coding import (
    CODINGS,
    IMPOSSIBLE,
    LARGEST_SLICE,
    Mapping,
    Section,
    Slice,
    bits_of,
    codes_of,
)
from mizzen.targets.ethos_u.generator.weights.compression import EFFORTS, compress
from mizzen.targets.ethos_u.generator.weights.mappings import suited
from mizzen.targets.ethos_u.generator.weights.slices import choose
from mizzen.targets.ethos_u.judge.codec.decoding import decode

Values = npt.NDArray[np.int16]


@st.composite
def weights(draw: st.DrawFn, most: int = 500) -> Values:
    """Draw weights of some spread, some of them zero, and whole stretches of zeros."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.3, 2.0, 8.0, 30.0, 200.0]))
    values = generator.normal(
        draw(st.sampled_from([0, 5, -40])), spread, draw(st.integers(1, most))
    )
    values[generator.random(len(values)) < draw(st.sampled_from([0, 0.3, 0.95, 1]))] = 0
    start, stop = sorted(draw(st.tuples(*2 * [st.integers(0, most)])))
    values[start:stop] = 0
    return values.round().clip(-255, 255).astype(np.int16)


@st.composite
def sections(draw: st.DrawFn) -> tuple[Values, Section]:
    """Draw weights and any way to write them: a mapping, and slices in codings that have them."""
    values = draw(weights())
    codes = codes_of(values)
    zero_runs = draw(st.booleans())
    counts = np.bincount(codes, minlength=512)
    mapping = draw(st.sampled_from(suited(counts, zero_runs, 20)))
    symbols = max(1, int(np.count_nonzero(codes))) if zero_runs else len(codes)
    possible = [
        coding
        for coding, bits in zip(CODINGS, bits_of(mapping, codes.astype(np.int64)), strict=True)
        if bits.max() < IMPOSSIBLE
    ]
    cuts = draw(st.lists(st.integers(1, max(1, symbols - 1)), max_size=4))
    borders = sorted({0, symbols, *(cut for cut in cuts if cut < symbols)})
    slices = tuple(
        Slice(stop - start, draw(st.sampled_from(possible)), draw(st.integers(0, 3)))
        for start, stop in pairwise(borders)
    )
    return values, Section(len(values), mapping, slices)


@settings(max_examples=150, deadline=None)
@given(st.lists(sections(), min_size=1, max_size=4))
def test_what_is_written_decodes(parts: list[tuple[Values, Section]]) -> None:
    values = np.concatenate([part for part, _ in parts])
    stream = write(values, [section for _, section in parts])
    assert len(stream) % 16 == 0
    (decoded,) = decode([stream])
    assert np.array_equal(decoded, values)


@settings(max_examples=40, deadline=None)
@given(weights(3000), st.sampled_from(list(Compression)))
def test_chosen_sections_decode(values: Values, compression: Compression) -> None:
    (decoded,) = decode([write(values, choose(values, EFFORTS[compression]))])
    assert np.array_equal(decoded, values)


@settings(max_examples=60, deadline=None)
@given(st.lists(sections(), min_size=1, max_size=4), weights(2000))
def test_arms_codec_decodes_the_same(parts: list[tuple[Values, Section]], values: Values) -> None:
    codec = arms_codec()
    mixed = np.concatenate([part for part, _ in parts])
    for stream, expected in (
        (write(mixed, [section for _, section in parts]), mixed),
        (write(values, choose(values, EFFORTS[Compression.FAST])), values),
    ):
        assert codec.decode(bytearray(stream)) == expected.tolist()


def arms_codec() -> Any:
    """Return Arm's codec; skip the test where it is not installed."""
    return pytest.importorskip("ethosu.mlw_codec", reason="Vela is not installed")


@pytest.mark.parametrize("zeros", [False, True])
def test_slices_end_where_their_length_does(zeros: bool) -> None:
    values = np.full(2 * LARGEST_SLICE + 5, 0 if zeros else 3, np.int16)
    chosen = choose(values, EFFORTS[Compression.FAST])
    assert max(part.symbols for section in chosen for part in section.slices) <= LARGEST_SLICE
    (decoded,) = decode([write(values, chosen)])
    assert np.array_equal(decoded, values)


def test_each_code_has_a_symbol_of_its_own() -> None:
    values = np.arange(-255, 256, dtype=np.int16)
    codes = codes_of(values)
    for zero_runs in (False, True):
        for mapping in suited(np.bincount(codes, minlength=512), zero_runs, 20):
            found = mapping.symbols()[codes[codes > 0] if zero_runs else codes]
            assert len(set(found.tolist())) == len(found)
            assert found.max() < 512
    assert Mapping((), 0, 9, zero_runs=False).symbols()[511] == 511


ORDER = StreamOrder((32, 3, 3, 24), (1, 1), 32, 8, 8, depthwise=False, part_kernel=False)


def bell(spread: float) -> Values:
    values = np.random.default_rng(7).normal(0, spread, ORDER.shape)
    return values.round().clip(-127, 127).astype(np.int16)


def by_arms_encoder(weights: Values, order: StreamOrder) -> bytes:
    """Return the stream that Arm's encoder makes; the kernel is not dilated."""
    stream, _ = arms_codec().reorder_encode(
        8,
        order.microblock,
        weights,
        order.block_depth,
        order.depthwise,
        order.part_kernel,
        order.ifm_bits,
        8,
        8,
    )
    return bytes(stream)


@pytest.mark.parametrize("spread", [0.4, 4, 20, 60])
def test_streams_decode_to_weights_in_their_order(spread: float) -> None:
    expected = np.append(bell(spread).ravel(), 0)[ORDER.places]
    streams = [compress(bell(spread), ORDER, each) for each in Compression]
    for stream, decoded in zip(streams, decode(streams), strict=True):
        assert len(stream) % 16 == 0
        assert np.array_equal(decoded, expected)


@pytest.mark.parametrize("spread", [0.4, 4, 20, 60])
def test_streams_are_no_longer_than_those_of_arms_encoder(spread: float) -> None:
    """Padding, 8 of 32 channels here, is where Arm's encoder gives most away."""
    arms = len(by_arms_encoder(bell(spread), ORDER))
    quick, fast, thorough = (len(compress(bell(spread), ORDER, each)) for each in Compression)
    assert quick <= arms
    assert fast <= 0.97 * arms
    assert thorough <= 1.002 * fast


@pytest.mark.parametrize(
    "shape", [(16, 3, 3, 8), (64, 1, 1, 64), (40, 1, 1, 100), (1001, 1, 1, 16), (24, 5, 5, 3)]
)
@pytest.mark.parametrize("part_kernel", [False, True])
def test_quick_streams_are_hardly_longer_than_those_of_arms_encoder(
    shape: tuple[int, int, int, int], part_kernel: bool
) -> None:
    order = StreamOrder(shape, (1, 1), 32, 8, 8, depthwise=False, part_kernel=part_kernel)
    values = np.random.default_rng(5).laplace(0, 9, shape).round().clip(-127, 127)
    weights = values.astype(np.int16)
    arms = by_arms_encoder(weights, order)
    assert len(compress(weights, order, Compression.QUICK)) <= 1.02 * len(arms)


def test_streams_come_near_their_entropy() -> None:
    """Symbols that are independent cannot take less; codes of whole bits take a little more."""
    order = StreamOrder((64, 1, 1, 256), (1, 1), 64, 8, 8, depthwise=False, part_kernel=False)
    values = np.random.default_rng(3).laplace(0, 6, order.shape).round().clip(-127, 127)
    counts = np.unique(values, return_counts=True)[1] / values.size
    entropy_bytes = -(counts * np.log2(counts)).sum() * values.size / 8
    size = len(compress(values.astype(np.int16), order, Compression.FAST))
    assert entropy_bytes < size < 1.03 * entropy_bytes
