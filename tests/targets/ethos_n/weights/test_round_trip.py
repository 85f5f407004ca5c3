"""Whatever is encoded decodes to itself; whatever is damaged decodes or is told."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.program import StripePlace
from mizzen.targets.ethos_n.sim.weight_decoding import DecodedWeights, decode

from .layouts import Drawn, drawn


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(drawn())
def test_weights_biases_and_scales_come_back(case: Drawn) -> None:
    encoded = case.encoded()
    found = decode(encoded.data, encoded.stripes, case.layout, case.capabilities)
    assert np.array_equal(found.weights, case.weights.astype(int) - case.zero_point)
    assert np.array_equal(found.bias, case.bias)
    ofms = np.ones(case.layout.ofms, int)
    assert np.array_equal(found.multipliers, ofms * case.scale.multipliers)
    assert np.array_equal(found.shifts, ofms * case.scale.shifts)
    assert np.array_equal(found.zero_points, ofms * (case.scale.zero_point % 256))


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(drawn())
def test_weight_stripes_lie_one_behind_the_other_and_fill_the_data(case: Drawn) -> None:
    encoded = case.encoded()
    ends = [stripe.offset + stripe.size for stripe in encoded.stripes]
    assert [0, *ends] == [*(stripe.offset for stripe in encoded.stripes), len(encoded.data)]
    assert encoded.max_stripe_bytes == max(stripe.size for stripe in encoded.stripes)


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Flip bits, most of them near the start, where the headers are; perhaps cut the end off."""
    damage = bytearray(data)
    near = st.integers(0, min(len(data), 256) - 1)
    for place in draw(st.lists(near | st.integers(0, len(data) - 1), min_size=1, max_size=6)):
        damage[place] ^= draw(st.integers(1, 255))
    cut = draw(st.sampled_from([0, 0, 0, 1, 16, len(data) // 2]))
    return bytes(damage[: len(data) - cut])


DECODER_CODES = {"E945", "E946", "E947", "E948", "E949"}


def decoded_or_told(
    data: bytes, stripes: tuple[StripePlace, ...], case: Drawn
) -> DecodedWeights | str:
    """Return the weights, or the code of the diagnostic; any other exception is a failure."""
    try:
        return decode(data, stripes, case.layout, case.capabilities)
    except MizzenError as error:
        return error.diagnostic.code


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(drawn(), st.data())
def test_a_damaged_stream_decodes_to_weights_or_is_told(case: Drawn, data: st.DataObject) -> None:
    encoded = case.encoded()
    found = decoded_or_told(data.draw(damaged(encoded.data)), encoded.stripes, case)
    if isinstance(found, DecodedWeights):
        assert found.weights.shape == case.layout.shape
        assert np.abs(found.weights).max() <= 255
    else:
        assert found in DECODER_CODES


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(drawn(), st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 1 << 12)), max_size=4))
def test_any_stripes_decode_or_are_told(case: Drawn, places: list[tuple[int, int]]) -> None:
    stripes = tuple(StripePlace(16 * offset, 16 * size) for offset, size in places)
    found = decoded_or_told(case.encoded().data, stripes, case)
    assert isinstance(found, DecodedWeights) or found in DECODER_CODES
