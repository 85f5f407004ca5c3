"""The last bit of every scale is that of TFLite's kernels: networks on whose results it decides."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.compiler.tflite_reference import evaluate

from . import networks
from .kernels import Array, kinds, lowered, results

EVERY = {"int8": np.arange(-128, 128).astype(np.int8), "uint8": np.arange(256).astype(np.uint8)}


def assert_equal(network: bytes, inputs: list[Array]) -> None:
    found = lowered(network)
    assert "CUSTOM" not in kinds(found)
    (expected,) = results(network, [array[np.newaxis] for array in inputs])
    (got,) = evaluate(found, inputs)
    np.testing.assert_array_equal(got, expected[0])


LAYERS = [
    (kind, dtype)
    for kind in networks.LAYERS
    for dtype in ("int8", "uint8", "int16")
    if (kind, dtype) != ("FULLY_CONNECTED", "uint8")
    and (dtype != "int16" or kind in ("CONV_2D", "FULLY_CONNECTED"))
]
"""Not those of unsigned bytes that LiteRT scales in float64, nor those with biases of 64 bits."""


@pytest.mark.parametrize(("kind", "dtype"), LAYERS)
def test_sums(kind: str, dtype: str) -> None:
    for seed in range(6):
        network = networks.sums_at_ties(kind, dtype, seed)
        tensor = lowered(network).model.main.tensors[0]
        assert tensor.quantization is not None
        zero = tensor.quantization.zero_point[0]
        assert_equal(network, [np.full(tensor.shape, zero, tensor.dtype)])


def test_unsigned_dense_layers_differ_by_a_step_at_ties_only() -> None:
    """LiteRT multiplies by the scale in float64; RESCALE has 31 bits of it."""
    for seed in range(6):
        network = networks.sums_at_ties("FULLY_CONNECTED", "uint8", seed)
        found = lowered(network)
        x = np.full((1, 1, 1, 1), 120, np.uint8)
        (expected,) = results(network, [x[np.newaxis]])
        (got,) = evaluate(found, [x])
        steps = np.abs(got.astype(int) - expected[0].astype(int))
        assert steps.max() <= 1
        assert np.count_nonzero(steps) <= networks.TIES // 20


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("kind", ["RELU", "LEAKY_RELU", "QUANTIZE"])
def test_functions(kind: str, dtype: str) -> None:
    for seed in range(60):
        assert_equal(networks.function_at_tie(kind, dtype, seed), [EVERY[dtype]])


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL"])
def test_pairs(kind: str, dtype: str) -> None:
    every = EVERY[dtype]
    for seed in range(15):
        network = networks.binary_at_tie(kind, dtype, seed)
        assert_equal(network, [every.reshape(256, 1), every.reshape(1, 256)])


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("kind", ["RELU6", "MAX_POOL_2D"])
def test_bounds(kind: str, dtype: str) -> None:
    for seed in range(60):
        network = networks.bound_at_tie(kind, dtype, seed)
        assert_equal(network, [EVERY[dtype].reshape(1, 1, 1, 256)])


@pytest.mark.parametrize("style", range(3))
def test_nearest_samples(style: int) -> None:
    """Where RESIZE has no such samples the CPU takes them; both are as TFLite has them."""
    whole = 0
    for size in range(1, 24, 2):
        for new_size in range(1, 50, 3):
            network = networks.line(size, new_size, style)
            found = lowered(network)
            x = np.arange(size, dtype=np.int8).reshape(1, size, 1, 1)
            (expected,) = results(network, [x[np.newaxis]])
            np.testing.assert_array_equal(evaluate(found, [x])[0], expected[0])
            whole += "CUSTOM" not in kinds(found)
    assert whole > 150
