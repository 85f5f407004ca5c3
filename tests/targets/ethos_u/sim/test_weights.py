"""Weight streams: our order against Vela's own encoder, and damaged streams."""

from __future__ import annotations

import numpy as np
import pytest
from ethosu import mlw_codec
from hypothesis import given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.sim import codec
from mizzen.targets.ethos_u.sim.weights import WeightOrder, arrange


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
    encoded, _ = mlw_codec.reorder_encode(
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
    (decoded,) = codec.decode([vela_encoded(weights, order)])
    assert np.array_equal(arrange(decoded, order), weights)


ORDER = WeightOrder(8, 8, 3, 3, 1, 1, 8, 8, 8, depthwise=False, part_kernel=False)


def test_a_damaged_stream_is_a_diagnostic_and_the_next_one_decodes() -> None:
    weights = np.arange(8 * 9 * 8).reshape(8, 3, 3, 8) % 200 - 100
    stream = vela_encoded(weights, ORDER)
    with pytest.raises(MizzenError, match=r"^error\[E624\]: a weight stream must be whole, and"):
        codec.decode([b""])
    (decoded,) = codec.decode([stream])
    assert np.array_equal(arrange(decoded, ORDER), weights)


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=64))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    try:
        (decoded,) = codec.decode([data])
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
