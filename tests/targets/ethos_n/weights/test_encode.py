"""Streams put together by hand, and what cannot be encoded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_n.commands_values import Algorithm, MceOperation
from mizzen.targets.ethos_n.config import VARIANTS, capabilities_of
from mizzen.targets.ethos_n.program import StripePlace
from mizzen.targets.ethos_n.weights.weight_encoding import EncodedWeights, encode
from mizzen.targets.ethos_n.weights.weight_format import WeightLayout
from mizzen.targets.ethos_n.weights.weight_streams import OutputScale

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
Field = tuple[int, int]

SMALL = capabilities_of(VARIANTS["ethos-n78-1tops-2ple"])
"""8 banks, 8 output generators, 8 input generators: chunks of 6, half of 4."""
LARGE = capabilities_of(VARIANTS["ethos-n78-8tops-2ple"])
"""16 banks, 32 output generators."""
SCALE = OutputScale((0xABCD,), (21,), -3)
SCALE_FIELDS: list[Field] = [(0xABCD, 16), (21, 6), (253, 8)]


def encoded(weights: Array, layout: WeightLayout, **rest: Any) -> EncodedWeights:
    """Encode with biases 5, 6, 7..."""
    arguments: dict[str, Any] = {
        "zero_point": 0,
        "bias": np.arange(layout.ofms) + 5,
        "scale": SCALE,
        "capabilities": SMALL,
    } | rest
    return encode(weights, layout, **arguments)


def bits(fields: list[Field]) -> bytes:
    """Put fields (value, width) behind each other, the first lowest, and fill up a row."""
    total = shift = 0
    for value, width in fields:
        total |= value << shift
        shift += width
    return total.to_bytes(-(-shift // 128) * 16, "little")


def test_one_weight_is_a_plain_symbol() -> None:
    layout = WeightLayout((1, 1, 1, 1), 8, 1)
    # Weight 3 is symbol 6; the offset makes it 0, which has the least bits, 2.
    header = [(1, 16), (5, 32), (1, 1), *SCALE_FIELDS]
    payload = [(1, 17), (1, 1), (7, 3), (7, 3), (0, 1), (6, 5), (1, 1), (0, 5), (0, 3), (0, 2)]
    ours = encoded(np.full(layout.shape, 3), layout)
    assert ours.data == bits([*header, *payload]) + bytes(7 * 16)
    assert ours.stripes == (StripePlace(0, 8 * 16),)


def test_zeros_are_runs_whose_remainders_come_a_chunk_later() -> None:
    layout = WeightLayout((1, 1, 8, 1), 8, 8)
    header = [(1, 16), (5, 32), (1, 1), *SCALE_FIELDS]
    parameters = [(1, 17), (1, 1), (1, 3), (7, 3), (0, 1), (10, 5), (1, 1), (0, 5), (0, 3)]
    # Runs 7 and 0 by 2: 1110 and 0, one cell is empty; the symbol, 10 - offset; remainders 1, 0.
    chunks = [(0b000111, 6), (0, 2), (1, 1), (0, 1)]
    weights = np.array([0, 0, 0, 0, 0, 0, 0, 5]).reshape(layout.shape)
    assert encoded(weights, layout).data[:16] == bits([*header, *parameters, *chunks])


def test_what_the_generator_knows_is_not_sent_again() -> None:
    layout = WeightLayout((1, 1, 1, 16), 16, 1)
    weights = np.full(layout.shape, 3)
    first = [(1, 16), (5, 32), (1, 1), *SCALE_FIELDS]
    first += [(1, 17), (1, 1), (7, 3), (7, 3), (0, 1), (6, 5), (1, 1), (0, 5), (0, 3), (0, 2)]
    # OFM 8 begins at bit 120 of the same stream and ends in its second 16 bytes.
    second = [(2, 16), (13, 32), (0, 1), (1, 17), (0, 1), (0, 2)]
    ours = encoded(weights, layout)
    assert ours.data[:16] + ours.data[128:144] == bits([*first, *second])


def test_scales_by_ofm_are_sent_with_each() -> None:
    layout = WeightLayout((1, 1, 1, 16), 8, 1)
    scale = OutputScale(tuple(range(16)), (9,) * 16, 200)
    ours = encoded(np.full(layout.shape, 3), layout, scale=scale)
    # OFM 8 is in the second stripe; the coding is still known from the first.
    second = [(1, 16), (13, 32), (1, 1), (8, 16), (9, 6), (200, 8), (1, 17), (0, 1), (0, 2)]
    assert ours.stripes == (StripePlace(0, 128), StripePlace(128, 128))
    assert ours.data[128:144] == bits(second)


def refused(code: str, message: str, call: Any) -> None:
    with pytest.raises(MizzenError) as raised:
        call()
    found = raised.value.diagnostic
    assert (found.code, found.message.partition("; the weights are")[0]) == (code, message)


CONVOLUTION = {"shape": (3, 3, 8, 8), "stripe_depth": 8, "iteration_size": 8}
WINOGRAD = {"algorithm": Algorithm.WINOGRAD}
FULLY = {"operation": MceOperation.FULLY_CONNECTED, "shape": (1, 1, 1024, 8)}
FULLY_RULE = "a fully connected layer must have a 1x1 kernel and inputs in 1024s"
POSITIVE = "extents, stripe depth, iteration size and strides must be 1 or more"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": (3, 0, 8, 8)}, POSITIVE),
        ({"iteration_size": 0}, POSITIVE),
        ({"stride_y": 0}, POSITIVE),
        ({"pad_left": -1}, "padding must not be negative"),
        ({**FULLY, "shape": (1, 1, 1000, 8), "iteration_size": 1024}, FULLY_RULE),
        ({**FULLY, "iteration_size": 1000}, FULLY_RULE),
        (
            {**FULLY, "iteration_size": 1024, "stride_x": 2},
            "a fully connected layer must have stride 1",
        ),
        (
            {"shape": (9, 1, 8, 8), "stride_y": 2, "stride_x": 2},
            "a kernel that is cut into tiles must have stride 1",
        ),
        (
            {**WINOGRAD, "operation": MceOperation.DEPTHWISE_CONVOLUTION},
            "the Winograd algorithm is for convolutions with stride 1, not depthwise",
        ),
        (
            {**WINOGRAD, "iteration_size": 4},
            "the Winograd algorithm takes all input channels at once",
        ),
    ],
)
def test_a_layout_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = CONVOLUTION | change
    refused("E940", message, lambda: WeightLayout(**arguments))


PLAIN = WeightLayout((1, 1, 4, 8), 8, 8)
WEIGHTS = np.ones(PLAIN.shape, np.int64)


@pytest.mark.parametrize(
    ("code", "message", "weights", "change"),
    [
        (
            "E940",
            "weights must be integers of shape (1, 1, 4, 8), not int64 of shape (4, 8)",
            WEIGHTS[0, 0],
            {},
        ),
        (
            "E940",
            "weights must be integers of shape (1, 1, 4, 8), not float32 of shape (1, 1, 4, 8)",
            WEIGHTS.astype(np.float32),
            {},
        ),
        (
            "E940",
            "there must be 8 biases, and 1 or 8 multipliers and shifts; there are 7, 1 and 1",
            WEIGHTS,
            {"bias": np.zeros(7, np.int64)},
        ),
        (
            "E940",
            "there must be 8 biases, and 1 or 8 multipliers and shifts; there are 8, 2 and 2",
            WEIGHTS,
            {"scale": OutputScale((1, 2), (3, 4))},
        ),
        (
            "E942",
            "weights less their zero point must be -255 to 255; with zero point -128 they are "
            "129 to 256",
            WEIGHTS + 127 * (np.arange(8) == 3),
            {"zero_point": -128},
        ),
        (
            "E942",
            "a bias must be -2147483648 to 2147483647, not 2147483648",
            WEIGHTS,
            {"bias": np.full(8, 1 << 31)},
        ),
        (
            "E942",
            "a multiplier must be 0 to 65535, not 65536",
            WEIGHTS,
            {"scale": OutputScale((1 << 16,), (3,))},
        ),
        ("E942", "a shift must be 0 to 63, not 64", WEIGHTS, {"scale": OutputScale((1,), (64,))}),
        (
            "E942",
            "a zero point must be -128 to 255, not -129",
            WEIGHTS,
            {"scale": OutputScale((1,), (3,), -129)},
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    code: str, message: str, weights: Array, change: dict[str, Any]
) -> None:
    refused(code, message, lambda: encoded(weights, PLAIN, **change))


def test_more_symbols_than_the_header_can_say_are_refused() -> None:
    layout = WeightLayout((1, 1, 1 << 17, 1), 8, 1 << 17)
    weights = np.arange(1, (1 << 17) + 1).reshape(layout.shape) % 50 + 1
    message = "an OFM must have at most 131071 symbols, not 131072"
    refused("E941", message, lambda: encoded(weights, layout))
    assert encoded(weights[:, :, 1:], WeightLayout((1, 1, (1 << 17) - 1, 1), 8, 1 << 17)).data


def test_a_run_of_zeros_that_the_library_could_not_count_is_refused() -> None:
    layout = WeightLayout((1, 1, 1 << 16, 1), 8, 1 << 17)
    weights = np.zeros(layout.shape, np.int64)
    message = "a run of zeros must be at most 65535 long, not 65536"
    refused("E941", message, lambda: encoded(weights, layout))


@pytest.mark.parametrize(
    ("depth", "iteration_size", "message"),
    [
        (
            24,
            64,
            "a stripe must have OFMs for each of the 16 SRAM banks, or all of them for each of "
            "the 32 output generators; the stripe depth is 24",
        ),
        (
            16,
            32,
            "a stripe whose input channels are read in 2 parts must have an OFM for each output "
            "generator; the stripe depth is 16",
        ),
        (
            64,
            32,
            "a stripe whose input channels are read in 2 parts must have an OFM for each output "
            "generator; the stripe depth is 64",
        ),
        (32, 40, "iterations must begin with whole slices of 16 input channels, and take 40"),
    ],
)
def test_what_the_hardware_could_not_load_is_refused(
    depth: int, iteration_size: int, message: str
) -> None:
    layout = WeightLayout((1, 1, 64, 64), depth, iteration_size)
    weights = np.ones(layout.shape, np.int64)
    refused("E943", message, lambda: encoded(weights, layout, capabilities=LARGE))
