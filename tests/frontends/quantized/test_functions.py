"""Functions of each number, of 8 and 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from mizzen.frontends.quantized.functions import continued, function_of, in_steps, reals_of
from mizzen.frontends.quantized.terms import Array, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Quantization

from .graphs import Bench, target_of

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "exp": np.exp,
    "relu": lambda x: np.maximum(x, 0),
    "sign": np.sign,
    "sqrt": lambda x: np.sqrt(np.abs(x)),
}
SIZE = 5000


@pytest.mark.parametrize("name", FUNCTIONS)
def test_8_bits_are_exact(name: str) -> None:
    bench, function = Bench(1), FUNCTIONS[name]
    x = bench.real((SIZE,), scale=0.03125)
    wanted = function(bench.numbers(x).astype(np.float32))
    target = target_of(wanted)
    emit = bench.steps_off(lambda to: function_of(bench.b, x, function, to), wanted, target)
    assert emit == (0, 0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_8_bits_become_16_rounded_once(name: str) -> None:
    """Each of the 256 integers has an entry of its own: no straight lines between."""
    bench, function = Bench(2), FUNCTIONS[name]
    x = bench.real((SIZE,), scale=0.03125)
    wanted = function(bench.numbers(x).astype(np.float32)).astype(np.float64)
    target = target_of(wanted, DType.INT16)
    most, count = bench.steps_off(lambda to: function_of(bench.b, x, function, to), wanted, target)
    assert most <= 1
    assert count <= SIZE // 50  # float32 has 24 bits: it rounds some to the other side


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_16_bits_are_within_two_steps(name: str, dtype: DType) -> None:
    bench, function = Bench(3), FUNCTIONS[name]
    x = bench.real((SIZE,), DType.INT16, 0.0002)
    wanted = function(bench.numbers(x).astype(np.float32)).astype(np.float64)
    target = target_of(wanted, dtype)
    most, _ = bench.steps_off(lambda to: function_of(bench.b, x, function, to), wanted, target)
    assert most <= (1 if dtype is DType.INT8 else 2)


def test_a_quantiser_rounds_as_it_does() -> None:
    """PyTorch multiplies by the inverse of a scale, ONNX divides by it: not always the same."""
    target = Target(DType.INT8, Quantization((0.2,), (0,)), -128, 127)

    def divided(numbers: Array, to: Target) -> Array:
        return numbers.astype(np.float32) / np.float32(to.scale)

    bench = Bench(4)
    x = bench.real((SIZE,), scale=0.1)
    numbers = reals_of(x, bench.arrays[0].astype(np.int64))
    for steps, wanted in (
        (divided, numbers / np.float32(0.2)),
        (in_steps, numbers * np.float32(1 / 0.2)),
    ):
        found = bench.computed(partial(function_of, bench.b, x, np.positive, steps=steps), target)
        assert found.tolist() == np.rint(wanted).clip(-128, 127).tolist()


def test_what_is_no_number_is_the_nearest_that_is_one() -> None:
    nan = np.nan
    assert continued(np.array([nan, 1.0, 2.0, nan, nan, 3.0])).tolist() == [1, 1, 2, 2, 3, 3]
    assert np.isnan(continued(np.array([nan, nan]))).all()


def test_no_table_gives_32_bits() -> None:
    bench = Bench(5)
    x = bench.real((4,))
    target = Target(DType.INT32, Quantization((1.0,), (0,)), -(1 << 31), (1 << 31) - 1)
    with pytest.raises(RefusedError, match="no table takes i8 and gives i32"):
        function_of(bench.b, x, np.tanh, target)
