"""Weight streams: our order against Vela's own encoder, and damaged streams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.judge.codec import decoding
from mizzen.targets.ethos_u.judge.sim import fast_weights, weights_u85
from mizzen.targets.ethos_u.judge.sim.weights import WeightOrder, arrange
from mizzen.targets.ethos_u.judge.sim.weights_u85 import LayoutU85


@st.composite
def orders(draw: st.DrawFn) -> WeightOrder:
    depthwise = draw(st.booleans())
    return WeightOrder(
        ofm_depth=draw(st.integers(1, 40)),
        ifm_depth=draw(st.integers(1, 40)),
        kernel_height=draw(st.integers(1, 10)),
        kernel_width=draw(st.integers(1, 10)),
        dilation_y=draw(st.sampled_from([1, 2])),
        dilation_x=draw(st.sampled_from([1, 2])),
        ofm_block_depth=8 * draw(st.integers(1, 4)),
        ofm_ublock_depth=draw(st.sampled_from([4, 8])),
        ifm_bits=draw(st.sampled_from([8, 16])),
        depthwise=depthwise,
        part_kernel=not depthwise and draw(st.booleans()),
    )


def vela_encoded(weights: np.ndarray, order: WeightOrder) -> bytes:
    codec = pytest.importorskip("ethosu.mlw_codec", reason="Vela is not installed")
    encoded, _ = codec.reorder_encode(
        8,
        order.ofm_ublock_depth,
        weights.astype(np.int16),
        order.ofm_block_depth,
        order.depthwise,
        order.part_kernel,
        order.ifm_bits,
        8 // order.dilation_y,
        8 // order.dilation_x,
    )
    return bytes(encoded)


@settings(max_examples=60, deadline=None)
@given(orders(), st.integers(0, 2**32 - 1))
def test_arrange_undoes_the_order_of_velas_encoder(order: WeightOrder, seed: int) -> None:
    ifm_depth = 1 if order.depthwise else order.ifm_depth
    shape = (order.ofm_depth, order.kernel_height, order.kernel_width, ifm_depth)
    weights = np.random.default_rng(seed).integers(-255, 256, shape)
    (decoded,) = decoding.decode([vela_encoded(weights, order)])
    assert np.array_equal(arrange(decoded, order), weights)


ORDER = WeightOrder(8, 8, 3, 3, 1, 1, 8, 8, 8, depthwise=False, part_kernel=False)


def test_a_damaged_stream_is_a_diagnostic_and_the_next_one_decodes() -> None:
    weights = np.arange(8 * 9 * 8).reshape(8, 3, 3, 8) % 200 - 100
    stream = vela_encoded(weights, ORDER)
    with pytest.raises(MizzenError, match=r"^error\[E624\]: a weight stream must be whole, and"):
        decoding.decode([b""])
    (decoded,) = decoding.decode([stream])
    assert np.array_equal(arrange(decoded, ORDER), weights)


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=64))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    try:
        (decoded,) = decoding.decode([data])
    except MizzenError as error:
        code = error.diagnostic.code
    else:
        code = "decoded" if abs(decoded.astype(int)).max(initial=0) <= 511 else "out of range"
    assert code in ("E624", "decoded")


def test_too_few_weights() -> None:
    with pytest.raises(MizzenError) as caught:
        arrange(np.zeros(7, np.int16), ORDER)
    assert str(caught.value) == (
        "error[E621]: a weight stream must hold 2304 weights here, not 7\n"
        "  rule order of weights in the stream, Ethos-U55/U65\n"
        "  help the stream was made for another block size, or its bytes are damaged"
    )


def test_a_weight_in_the_padding() -> None:
    with pytest.raises(MizzenError, match=r"^error\[E622\]: padding in a weight stream must be"):
        arrange(np.ones(2304, np.int16), ORDER)


@st.composite
def layouts(draw: st.DrawFn) -> LayoutU85:
    macs, streams = draw(st.sampled_from([(128, 1), (256, 1), (512, 2), (1024, 4), (2048, 4)]))
    kind = draw(st.sampled_from(["depthwise", "part kernel", "depth first"]))
    return LayoutU85(
        ofm_depth=draw(st.integers(1, 70)),
        ifm_depth=draw(st.integers(1, 70)),
        kernel_height=draw(st.integers(1, 10)),
        kernel_width=draw(st.integers(1, 10)),
        stride_y=draw(st.sampled_from([1, 2, 3])),
        stride_x=draw(st.sampled_from([1, 2, 3])),
        dilation_y=draw(st.sampled_from([1, 2])),
        dilation_x=draw(st.sampled_from([1, 2])),
        ofm_block_depth=draw(st.sampled_from([16, 32, 64])),
        ofm_ublock_depth=macs
        // 8
        // draw(st.sampled_from([a for a in (1, 2, 4) if macs / a > 127])),
        ifm_bits=draw(st.sampled_from([8, 16])),
        macs=macs,
        streams=streams,
        depthwise=kind == "depthwise",
        part_kernel=kind == "part kernel",
        sparse=kind != "depthwise" and draw(st.booleans()),
        is_fast=kind != "depthwise" and draw(st.booleans()),
    )


@settings(max_examples=60)
@given(layouts())
def test_streams_of_u85_hold_every_weight_once(layout: LayoutU85) -> None:
    places = np.concatenate(weights_u85.positions(layout))
    ifm_depth = 1 if layout.depthwise else layout.ifm_depth
    count = layout.ofm_depth * layout.kernel_height * layout.kernel_width * ifm_depth
    assert np.array_equal(np.sort(places[places >= 0]), np.arange(count))


class TestFastWeights:
    def test_bytes_less_the_adjustment(self) -> None:
        header = np.zeros(32, np.uint8)
        header[0], header[13] = 1, 0xFB  # raw; -5
        body = np.array([0, 1, -128, 127], np.int8).view(np.uint8)
        found = fast_weights.decode(np.concatenate([header, body]).tobytes())
        assert found.tolist() == [5, 6, -123, 132]

    @pytest.mark.parametrize(("bits", "flags"), [(4, 0), (2, 2)])
    def test_indices_of_a_table(self, bits: int, flags: int) -> None:
        table = [3, -7, 0, 255, *range(4, 16)]
        flat = [((abs(value) << 1) | (value < 0)) >> bit & 1 for value in table for bit in range(9)]
        header = np.zeros(32, np.uint8)
        header[0] = flags
        header[14:] = np.packbits(flat, bitorder="little")
        found = fast_weights.decode(header.tobytes() + bytes([0b11_10_01_00]))
        low = [0, 1, 2, 3] if bits == 2 else [0b0100, 0b1110]
        assert found.tolist() == [table[index] for index in low]

    def test_no_header(self) -> None:
        with pytest.raises(MizzenError, match=r"^error\[E624\]: a fast weight stream must have"):
            fast_weights.decode(b"short")
