"""Comparisons, truths, choices and integers in other types, against ONNX's own implementation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="ONNX is not installed (pip install '.[onnx]')")

from mizzen.graph import Array

from .comparing import integers
from .networks import Network, Scale, computed, float_model, from_runtime, lowered, on_host

X, Y = Scale(0.0173, 7), Scale(0.0346, -20)
UX = Scale(0.0173, 119, "uint8")
SHAPE = (3, 40)
COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")


def check(network: Network, given: Mapping[str, Array]) -> None:
    """Hold what a network computes against ONNX's own implementation."""
    lowering = lowered(network)
    assert on_host(lowering) == {}
    results = computed(lowering, *given.values())
    for one, other in zip(results, float_model(network, given), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def of_integers(kind: str, dtype: str, *constants: Array, **attributes: Any) -> None:
    """Check an operator of one or two tensors of integers, and constants."""
    network, random = Network(21), np.random.default_rng(3)
    count = 1 if constants or kind in ("Not", "BitwiseNot") else 2
    low, high = (0, 2) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    low, high = max(low, -100), min(high, 100)
    shapes = [SHAPE, (1, 40)][:count]
    given = {
        f"x{index}": random.integers(low, high, shape).astype(dtype)
        for index, shape in enumerate(shapes)
    }
    names = [network.input(name, array.shape, dtype) for name, array in given.items()]
    names += [network.constant(array) for array in constants]
    network.outputs.append(network.add(kind, *names, **attributes))
    check(network, given)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("kind", COMPARISONS)
def test_integers_compare(kind: str, dtype: str) -> None:
    of_integers(kind, dtype)


@pytest.mark.parametrize("kind", ["And", "Or", "Xor", "Not", "Equal"])
def test_truths(kind: str) -> None:
    of_integers(kind, "bool")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
@pytest.mark.parametrize("kind", ["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"])
def test_bits(kind: str, dtype: str) -> None:
    of_integers(kind, dtype)


def test_all_bits_of_bytes_without_a_sign() -> None:
    of_integers("BitwiseNot", "uint8")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("divisor", [7, -7, 16])
@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders(dtype: str, divisor: int, fmod: int) -> None:
    of_integers("Mod", dtype, np.array(divisor, dtype), fmod=fmod)


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize("scales", [(X, X), (X, Y), (UX, X)])
def test_quantised_numbers_compare(kind: str, scales: tuple[Scale, Scale]) -> None:
    network = Network(21)
    given = {f"x{index}": integers(each, SHAPE, index) for index, each in enumerate(scales)}
    names = [
        network.dequantize(network.input(name, SHAPE, each.dtype), each)
        for name, each in zip(given, scales, strict=True)
    ]
    network.outputs.append(network.add(kind, *names))
    if scales[0] != scales[1]:
        check(network, given)
        return
    given["x1"] = np.where(np.arange(40) % 2, given["x0"], given["x1"])
    check(network, given)


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize("is_first", [False, True])
def test_constants_compare(kind: str, is_first: bool) -> None:
    """Numbers that integers stand for, others, and one beyond all of them."""
    network = Network(21)
    x = network.dequantize(network.input("x", (256, 4), "int8"), X)
    exact = X.dequantize(np.array([30], np.int8))[0]
    numbers = network.constant(np.array([exact, 0.123, -99.0, 99.0], np.float32))
    network.outputs.append(network.add(kind, *((numbers, x) if is_first else (x, numbers))))
    check(network, {"x": np.repeat(np.arange(-128, 128), 4).reshape(256, 4).astype(np.int8)})


@pytest.mark.parametrize("scale", [X, Y])
def test_where(scale: Scale) -> None:
    network = Network(21)
    condition = network.input("condition", SHAPE, "bool")
    x, y = (network.dequantize(network.input(name, SHAPE, "int8"), each)
            for name, each in (("x", X), ("y", scale)))  # fmt: skip
    network.outputs.append(network.quantize(network.add("Where", condition, x, y), X))
    given = {
        "condition": np.random.default_rng(1).integers(0, 2, SHAPE).astype(bool),
        "x": integers(X, SHAPE, 1),
        "y": integers(scale, SHAPE, 2),
    }
    lowering = lowered(network)
    assert on_host(lowering) == {}
    (one,) = computed(lowering, *given.values())
    (wanted,) = from_runtime(network, given)
    assert np.abs(one.astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool", "uint8"])
def test_where_of_integers(dtype: str) -> None:
    network, random = Network(21), np.random.default_rng(1)
    given = {
        "condition": random.integers(0, 2, SHAPE).astype(bool),
        "x": random.integers(0, 100, SHAPE).astype(dtype),
        "y": random.integers(0, 100, (1, 40)).astype(dtype),
    }
    names = [network.input(name, array.shape, array.dtype) for name, array in given.items()]
    network.outputs.append(network.add("Where", *names))
    check(network, given)


def test_a_mask_with_a_constant() -> None:
    """What attention masks are: a large negative number where a truth says so."""
    network = Network(21)
    x = network.dequantize(network.input("x", SHAPE, "int8"), X)
    condition = network.add("Greater", x, network.constant(np.float32(0.5)))
    low = network.constant(np.float32(-2.3))
    network.outputs.append(network.quantize(network.add("Where", condition, x, low), X))
    given = {"x": integers(X, SHAPE, 3)}
    lowering = lowered(network)
    assert on_host(lowering) == {}
    off = computed(lowering, *given.values())[0].astype(int) - from_runtime(network, given)[0]
    assert np.abs(off).max() <= 1


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_one_place_is_another_number(dtype: str) -> None:
    network = Network(21)
    index = network.input("index", (5, 3), dtype="int64")
    values = network.constant(np.array([-1, 2], dtype if dtype == "float32" else "int32"))
    depth = network.constant(np.array(6, np.int64))
    value = network.add("OneHot", index, depth, values, axis=1)
    network.outputs.append(network.quantize(value, X) if dtype == "float32" else value)
    given = {"index": np.random.default_rng(1).integers(-6, 6, (5, 3))}
    check(network, given)


@pytest.mark.parametrize("axis", [0, -1])
def test_the_greatest_is_one(axis: int) -> None:
    network = Network(21)
    x = network.dequantize(network.input("x", SHAPE, "int8"), X)
    value = network.add("Hardmax", x, axis=axis)
    network.outputs.append(network.quantize(value, Scale(1 / 127)))
    check(network, {"x": integers(X, SHAPE, 1) // 20})


def test_other_types_are_the_runtimes() -> None:
    network = Network(21)
    x = network.input("x", SHAPE, "int32")
    network.outputs.append(network.add("Relu", network.add("Cast", x, to=10)))
    assert on_host(lowered(network))["Cast"] == "it makes numbers of float16"
