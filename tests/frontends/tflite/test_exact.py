"""Every operator's graph equals TFLite's kernels bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mizzen.compiler.tflite_reference import evaluate
from mizzen.conformance.cases import cases
from mizzen.conformance.networks import Case
from mizzen.frontends.tflite.lower import Lowered

from . import networks
from .kernels import assert_exact, kinds, lowered, results

BYTES_AND_WORDS = ("int8", "uint8", "int16")
MOVES = ("bool", "int8", "int16", "uint8", "int32")

ARITHMETIC = (
    "CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV FULLY_CONNECTED ADD SUB MUL MAXIMUM MINIMUM "
    "AVERAGE_POOL_2D MAX_POOL_2D MEAN SUM RELU RELU6 QUANTIZE"
)
MOVING = (
    "RESHAPE SQUEEZE EXPAND_DIMS CONCATENATION SPLIT SPLIT_V SLICE PAD STRIDED_SLICE PADV2 PACK "
    "TRANSPOSE UNPACK TILE MIRROR_PAD RESIZE_NEAREST_NEIGHBOR GATHER REDUCE_MAX REDUCE_MIN"
)
FUNCTIONS = "RELU_N1_TO_1 RELU_0_TO_1 LOGISTIC TANH HARD_SWISH LEAKY_RELU"

WHOLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(ARITHMETIC.split(), BYTES_AND_WORDS),
    **dict.fromkeys(MOVING.split(), MOVES),
    **dict.fromkeys(FUNCTIONS.split(), ("int8", "uint8")),
    **dict.fromkeys(("ELU", "PRELU", "RSQRT"), ("int8",)),
    "ARG_MAX": ("int8", "uint8"),
    "BATCH_MATMUL": ("int8", "int16"),
    "RESIZE_BILINEAR": BYTES_AND_WORDS,
    **dict.fromkeys(("ABS", "EXP", "LOG"), ("int8", "int16")),
    **dict.fromkeys(("LEAKY_RELU", "SQUARED_DIFFERENCE"), ("int8", "int16")),
    "GELU": ("int8", "uint8"),
    "NEG": ("int8", "int16"),
}
"""Operators of the suite, and types of their data, that need no CUSTOM operation."""


def whole_cases() -> list[Case]:
    return [case for case in cases() if case.dtype in WHOLE.get(case.operator, ())]


def assert_whole(found: Lowered) -> None:
    assert "CUSTOM" not in kinds(found)


def test_the_suite_has_every_operator_that_is_lowered_whole() -> None:
    assert {case.operator for case in whole_cases()} == set(WHOLE)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in whole_cases()])
def test_networks_of_the_conformance_suite(case: Case) -> None:
    assert_whole(assert_exact(case.build(), limit=case.limit))


DRAWN: dict[str, Callable[[int, str], bytes]] = {
    "convolution": lambda seed, dtype: networks.convolution(seed, dtype, depthwise=False),
    "depthwise": lambda seed, dtype: networks.convolution(seed, dtype, depthwise=True),
    "transposed": networks.transposed,
    "dense": networks.dense,
    "pool": networks.pool,
    "sum_or_product": networks.sum_or_product,
    "reduction": networks.reduction,
}


@pytest.mark.parametrize("dtype", BYTES_AND_WORDS)
@pytest.mark.parametrize("name", DRAWN)
def test_random_networks(name: str, dtype: str) -> None:
    for seed in range(20):
        assert_exact(DRAWN[name](seed, dtype))


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", BYTES_AND_WORDS)
@pytest.mark.parametrize("name", DRAWN)
def test_many_random_networks(name: str, dtype: str) -> None:
    for seed in range(20, 400):
        assert_exact(DRAWN[name](seed, dtype))


@pytest.mark.parametrize("kind", ["DEPTH_TO_SPACE", "SPACE_TO_DEPTH"])
def test_blocks(kind: str) -> None:
    for seed in range(5):
        assert_whole(assert_exact(networks.blocks(kind, seed)))


def test_random_slices() -> None:
    for seed in range(60):
        assert_whole(assert_exact(networks.strided_slice(seed, "int8"), 3))


@pytest.mark.parametrize("bilinear", [False, True])
def test_random_sizes(bilinear: bool) -> None:
    for seed in range(60):
        assert_exact(networks.resized(seed, bilinear=bilinear), 5)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "kind",
    ["LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "RELU", "RELU6", "RELU_N1_TO_1", "QUANTIZE"],
)
def test_all_integers_of_a_byte(kind: str, dtype: str) -> None:
    every = np.arange(256).astype(np.uint8) if dtype == "uint8" else np.arange(-128, 128)
    for seed in range(30):
        network = networks.function(kind, seed, dtype)
        found = lowered(network)
        assert_whole(found)
        integers = every.astype(dtype)
        (expected,) = results(network, [integers[np.newaxis]])
        (got,) = evaluate(found, [integers])
        np.testing.assert_array_equal(got, expected[0], err_msg=f"seed {seed}")


@pytest.mark.parametrize("kind", ["HARD_SWISH", "RELU", "QUANTIZE"])
def test_functions_between_scales_that_are_far_from_one_another(kind: str) -> None:
    every = np.arange(-128, 128).astype(np.int8)
    whole = 0
    for seed in range(80):
        network = networks.far_function(kind, seed, "int8")
        found = lowered(network)
        if "CUSTOM" not in kinds(found):
            (expected,) = results(network, [every[np.newaxis]])
            (got,) = evaluate(found, [every])
            np.testing.assert_array_equal(got, expected[0], err_msg=f"seed {seed}")
            whole += 1
    assert whole > 40
