"""Functions, and operators on two operands, equal the kernels bit for bit at random scales."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mizzen.compiler.tflite_reference import evaluate
from mizzen.package.tflite.builder import NetworkBuilder

from . import function_networks, networks
from .kernels import assert_exact, kinds, lowered, results

DRAWN: dict[str, Callable[[int], bytes]] = {
    "squared_difference int8": lambda seed: function_networks.squared_difference(seed, "int8"),
    "squared_difference int16": lambda seed: function_networks.squared_difference(seed, "int16"),
    "prelu": function_networks.prelu,
    "magnitude": function_networks.magnitude,
    "leaky_relu": function_networks.leaky_relu,
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_networks(name: str) -> None:
    whole = 0
    for seed in range(30):
        whole += "CUSTOM" not in kinds(assert_exact(DRAWN[name](seed)))
    assert whole >= 20


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*((kind, "int8") for kind in ("ABS", "ELU", "EXP", "GELU", "LOG")), ("GELU", "uint8")],
)
def test_all_integers_of_a_byte(kind: str, dtype: str) -> None:
    every = np.arange(256).astype(np.uint8) if dtype == "uint8" else np.arange(-128, 128)
    for seed in range(20):
        network = networks.function(kind, seed, dtype)
        found = lowered(network)
        assert "CUSTOM" not in kinds(found)
        integers = every.astype(dtype)
        (expected,) = results(network, [integers[np.newaxis]])
        (got,) = evaluate(found, [integers])
        np.testing.assert_array_equal(got, expected[0], err_msg=f"seed {seed}")


def test_the_root_of_every_integer_that_has_one() -> None:
    every = np.arange(-128, 128).astype(np.int8)
    for seed in range(20):
        d = networks.Draw(seed)
        scale = d.scale()
        x, y = d.tensor((256,), scale, -128), d.tensor((256,), d.scale(0.001, 0.3))
        network = d.one("RSQRT", [x], y, None)
        found = lowered(network)
        if "CUSTOM" in kinds(found):
            continue
        (expected,) = results(network, [every[np.newaxis]])
        (got,) = evaluate(found, [every])
        np.testing.assert_array_equal(got, expected[0], err_msg=f"seed {seed}")


@pytest.mark.parametrize("kind", ["EXP", "LOG"])
def test_all_integers_of_two_bytes(kind: str) -> None:
    every = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(1, -1)
    for seed in range(5):
        network = function_networks.of_lines(kind, seed)
        (expected,) = results(network, [every[np.newaxis]])
        (got,) = evaluate(lowered(network), [every])
        np.testing.assert_array_equal(got, expected[0], err_msg=f"seed {seed}")


def test_the_negative_of_the_least_integer_is_itself() -> None:
    """It has none of its type; LiteRT's kernel gives what is left of it in 16 bits."""
    net = NetworkBuilder("least")
    x = net.tensor("x", (1, 4), "int16", 0.001)
    y = net.tensor("y", (1, 4), "int16", 0.001)
    net.operator("NEG", [x], [y])
    network = net.finish([x], [y])
    least = np.array([[-32768, -32767, 32767, 0]], np.int16)
    (got,) = evaluate(lowered(network), [least])
    assert got.tolist() == results(network, [least[np.newaxis]])[0][0].tolist()
    assert got[0, 0] == -32768


def test_the_negative_of_unsigned_bytes_is_that_of_what_they_stand_for() -> None:
    """No kernel takes them."""
    net = NetworkBuilder("unsigned")
    x = net.tensor("x", (1, 256), "uint8", 0.1, 120)
    y = net.tensor("y", (1, 256), "uint8", 0.05, 130)
    net.operator("NEG", [x], [y])
    every = np.arange(256).astype(np.uint8).reshape(1, -1)
    (got,) = evaluate(lowered(net.finish([x], [y])), [every])
    wanted = np.clip(-2 * (every.astype(np.int64) - 120) + 130, 0, 255)
    assert got.tolist() == wanted.tolist()


def test_a_slice_has_new_axes() -> None:
    """LiteRT's kernel takes them, TFLite Micro's does not."""
    net = NetworkBuilder("sliced")
    x = net.tensor("x", (4, 5, 6), "int8", 0.1)
    bounds = [
        net.constant(name, np.array(row, np.int32))
        for name, row in (("begin", [1, 0, 0, 2]), ("end", [3, 1, 5, 3]), ("step", [1, 1, 2, 1]))
    ]
    y = net.tensor("y", (2, 1, 3, 1), "int8", 0.1)
    options = {"new_axis_mask": 2}
    net.operator("STRIDED_SLICE", [x, *bounds], [y], ("StridedSliceOptions", options))
    assert "CUSTOM" not in kinds(assert_exact(net.finish([x], [y])))
