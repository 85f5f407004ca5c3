"""Weight streams that cannot be decoded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands_values import Algorithm
from mizzen.targets.ethos_n.config import VARIANTS, capabilities_of
from mizzen.targets.ethos_n.program import StripePlace
from mizzen.targets.ethos_n.sim.weight_decoding import decode
from mizzen.targets.ethos_n.weights.weight_encoding import EncodedWeights, encode
from mizzen.targets.ethos_n.weights.weight_format import WeightLayout
from mizzen.targets.ethos_n.weights.weight_streams import OutputScale

HARDWARE = capabilities_of(VARIANTS["ethos-n78-1tops-2ple"])
LAYOUT = WeightLayout((1, 1, 16, 12), 8, 8)
"""Two stripes of 8 and 4 OFMs, each in two parts of 8 input channels."""


def encoded() -> EncodedWeights:
    """Weights that all have 4 bits, in streams of 16 bytes; bank n has OFM n and n + 8."""
    weights = np.arange(16 * 12).reshape(LAYOUT.shape) * 5 % 16 - 8
    return encode(
        weights,
        LAYOUT,
        zero_point=0,
        bias=np.arange(12),
        scale=OutputScale((40000,), (20,)),
        capabilities=HARDWARE,
    )


def refused(
    code: str,
    message: str,
    data: bytes,
    stripes: tuple[StripePlace, ...],
    layout: WeightLayout = LAYOUT,
) -> None:
    with pytest.raises(MizzenError) as raised:
        decode(data, stripes, layout, HARDWARE)
    assert (raised.value.diagnostic.code, raised.value.diagnostic.message) == (code, message)


def changed(data: bytes, at: int, width: int, value: int) -> bytes:
    """Replace a field at bit `at`."""
    number = int.from_bytes(data, "little")
    number &= ~(((1 << width) - 1) << at)
    return (number | value << at).to_bytes(len(data), "little")


def test_stripes_that_do_not_fit_are_refused() -> None:
    whole = encoded()
    size = whole.stripes[0].size
    message = "there must be 4 weight stripes, not 3"
    refused("E945", message, whole.data, whole.stripes[1:])
    cut = whole.data[:-1]
    message = f"a weight stripe must be in {len(cut)} bytes and have rows of 128, not {size} bytes "
    refused("E945", f"{message}from {3 * size} on", cut, whole.stripes)
    odd = (StripePlace(0, 100), *whole.stripes[1:])
    message = f"a weight stripe must be in {len(whole.data)} bytes and have rows of 128, "
    refused("E945", f"{message}not 100 bytes from 0 on", whole.data, odd)


def test_layouts_that_the_hardware_does_not_have_are_refused() -> None:
    whole = encoded()
    message = "the stripe depth must be a multiple of the 8 SRAM banks, not 4"
    refused("E945", message, whole.data, whole.stripes, replace(LAYOUT, stripe_depth=4))
    message = "an iteration must take whole slices of 8 input channels, not 12 channels"
    refused("E945", message, whole.data, whole.stripes, replace(LAYOUT, iteration_size=12))


# Bits of the first OFM's header.
BIAS = 16
SCALE_FOLLOWS = BIAS + 32
SYMBOLS = SCALE_FOLLOWS + 1 + 30
PARAMETERS_FOLLOW = SYMBOLS + 17
ZERO_DIVISOR = PARAMETERS_FOLLOW + 1
WEIGHT_DIVISOR = ZERO_DIVISOR + 3
PALETTE_FOLLOWS = WEIGHT_DIVISOR + 3 + 1 + 5
FIRST = "the weight stream of OFM 0, part 0"


@pytest.mark.parametrize(
    ("code", "message", "at", "width", "value"),
    [
        ("E949", "must say its length, {units} units, not 9", 0, 16, 9),
        ("E947", "must say a scale: no earlier block did", SCALE_FOLLOWS, 1, 0),
        ("E947", "must have a divisor of runs of 0 to 3 or 7, not 4", ZERO_DIVISOR, 3, 4),
        ("E947", "must have a divisor of weights of 0 to 5 or 7, not 6", WEIGHT_DIVISOR, 3, 6),
        ("E947", "must send a palette, or none: there is none from before", PALETTE_FOLLOWS, 1, 0),
        ("E947", "must say how it is coded: no earlier block did", PARAMETERS_FOLLOW, 1, 0),
    ],
)
def test_headers_that_cannot_be_are_refused(
    code: str, message: str, at: int, width: int, value: int
) -> None:
    whole = encoded()
    message = message.format(units=int.from_bytes(whole.data[:2], "little"))
    refused(code, f"{FIRST} {message}", changed(whole.data, at, width, value), whole.stripes)


def test_parts_of_an_ofm_that_contradict_each_other_are_refused() -> None:
    whole = encoded()
    data = changed(whole.data, 8 * whole.stripes[1].offset + BIAS, 32, 7)
    message = "the weight stream of OFM 0, part 1 must have bias and scale of the parts before, "
    refused("E949", f"{message}(0, 40000, 20, 0), not (7, 40000, 20, 0)", data, whole.stripes)


ONE = WeightLayout((1, 1, 1, 1), 8, 1)
"""One weight, a plain symbol of 2 bits."""
PALETTE_BITS = PALETTE_FOLLOWS + 1 + 5
OFFSET = WEIGHT_DIVISOR + 3 + 1
SYMBOL = PALETTE_BITS + 3


def one_weight() -> EncodedWeights:
    return encode(
        np.ones(ONE.shape, np.int64),
        ONE,
        zero_point=0,
        bias=np.zeros(1, np.int64),
        scale=OutputScale((1,), (1,)),
        capabilities=HARDWARE,
    )


def test_a_stream_that_goes_on_behind_its_stripe_is_refused() -> None:
    whole = one_weight()
    message = "the weight stream of OFM 0 must end within its stripe, and lacks 1990 bits"
    refused("E946", message, changed(whole.data, SYMBOLS, 17, 1000), whole.stripes, ONE)


def test_another_number_of_weights_is_refused() -> None:
    whole = one_weight()
    message = "the weight stream of OFM 0 must have 1 weights, not 2"
    refused("E948", message, changed(whole.data, SYMBOLS, 17, 2), whole.stripes, ONE)


def test_a_symbol_beyond_every_weight_is_refused() -> None:
    whole = one_weight()
    data = changed(changed(whole.data, OFFSET, 5, 31), PALETTE_BITS, 3, 7)
    message = "the weight stream of OFM 0 must have symbols less than 511, not 531"
    refused("E947", message, changed(data, SYMBOL, 9, 500), whole.stripes, ONE)


def test_weights_that_no_tap_has_are_refused() -> None:
    larger = WeightLayout((3, 3, 1, 1), 8, 1, algorithm=Algorithm.WINOGRAD)
    smaller = replace(larger, shape=(2, 2, 1, 1))
    whole = encode(
        np.ones(larger.shape, np.int64),
        larger,
        zero_point=0,
        bias=np.zeros(1, np.int64),
        scale=OutputScale((1,), (1,)),
        capabilities=HARDWARE,
    )
    message = "weights that fill up must be 0; 5 are not"
    refused("E948", message, whole.data, whole.stripes, smaller)
