"""Sums, products and extremes of two operands, rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mizzen.frontends.quantized.elementwise import combine, extreme, multiply, scalar
from mizzen.frontends.quantized.terms import Array, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Graph, Quantization, Value

from .graphs import Bench, target_of

KINDS: dict[str, Callable[[Array, Array], Array]] = {
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply,
    "MAXIMUM": np.maximum, "MINIMUM": np.minimum,
}  # fmt: skip
SIZE = 20_000


def emitted(bench: Bench, kind: str, x: Real, y: Real) -> Callable[[Target], Value]:
    b = bench.b
    match kind:
        case "MUL":
            return lambda target: multiply(b, x, y, target)
        case "ADD" | "SUB":
            return lambda target: combine(b, kind, x, y, target)
        case _:
            return lambda target: extreme(b, kind, x, y, target)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_8_bits_are_rounded_once(kind: str, seed: int) -> None:
    bench = Bench(seed)
    x, y = bench.real((SIZE, 3)), bench.real((3,))
    wanted = KINDS[kind](bench.numbers(x), bench.numbers(y))
    most, count = bench.steps_off(emitted(bench, kind, x, y), wanted, target_of(wanted))
    assert most <= 1
    assert count <= SIZE // 10_000


@pytest.mark.parametrize("kind", KINDS)
def test_16_bits_are_within_a_step(kind: str) -> None:
    bench = Bench(5)
    x, y = (bench.real((SIZE,), DType.INT16, 0.01) for _ in range(2))
    wanted = KINDS[kind](bench.numbers(x), bench.numbers(y))
    most, _ = bench.steps_off(emitted(bench, kind, x, y), wanted, target_of(wanted, DType.INT16))
    assert most <= 1


@pytest.mark.parametrize("kind", ["ADD", "SUB"])
def test_operands_of_one_scale_are_added_as_they_are(kind: str) -> None:
    bench = Bench(6)
    x, y = (bench.real((SIZE,), scale=0.25) for _ in range(2))
    wanted = KINDS[kind](bench.numbers(x), bench.numbers(y))
    target = Target(DType.INT8, Quantization((0.25,), (3,)), -128, 127)
    assert bench.steps_off(emitted(bench, kind, x, y), wanted, target) == (0, 0)


@pytest.mark.parametrize("number", [0.0, 1.0, -0.3, 1e-6, 12345.0])
def test_a_number_stands_for_itself(number: float) -> None:
    graph = Graph()
    constant = scalar(graph, number)
    assert constant.value.constant is not None
    assert (constant.value.constant.item() - constant.zero_point) * constant.scale == number


@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_no_integer_stands_for_what_is_no_number(number: float) -> None:
    with pytest.raises(RefusedError, match="no integer stands for"):
        scalar(Graph(), number)
