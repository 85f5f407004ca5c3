"""Operations of TOSA, mostly those that TFLite does not have, against our reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.graph import DType, Graph, TensorType
from mizzen.ops import Builder
from mizzen.package.tosa import write
from mizzen.reference import evaluate

from .tosa_graphs import RandomGraph

SHAPE = (1, 4, 5, 6)
LOGIC = ("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR")
SHIFTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("LOGICAL_LEFT_SHIFT", {}),
    ("LOGICAL_RIGHT_SHIFT", {}),
    ("ARITHMETIC_RIGHT_SHIFT", {"round": False}),
    ("ARITHMETIC_RIGHT_SHIFT", {"round": True}),
)
RANGES = {
    DType.INT8: (-(1 << 7), (1 << 7) - 1),
    DType.INT16: (-(1 << 15), (1 << 15) - 1),
    DType.INT32: (-(1 << 31), (1 << 31) - 1),
}


def require_equal(kind: str, dtype: DType, bounds: tuple[int, int], **attributes: Any) -> None:
    """Compare the operation of random values, and of others within `bounds`."""
    graph = Graph()
    build = Builder(graph)
    x, y = (graph.add_input(TensorType(SHAPE, dtype), name) for name in "xy")
    graph.set_outputs([build(kind, x, y, **attributes)])
    random = np.random.default_rng(0)
    inputs = [
        random.integers(low, high, SHAPE, endpoint=True).astype(dtype.numpy)
        for low, high in (RANGES[dtype], bounds)
    ]
    (wanted,) = evaluate(graph, inputs)
    found: Any = mizzen.compile(write(graph), "ethos-u85-256", prove="off").run(*inputs)
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("kind", LOGIC)
def test_logic(kind: str, dtype: DType) -> None:
    require_equal(kind, dtype, RANGES[dtype])


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize(("kind", "attributes"), SHIFTS)
def test_shifts(kind: str, attributes: dict[str, Any], dtype: DType) -> None:
    least = int(attributes.get("round", False))  # a rounded shift by nothing is not defined
    require_equal(kind, dtype, (least, 7), **attributes)


def test_sums_of_48_bits_that_are_scaled_twice() -> None:
    """They go through memory as 64 bits: no operation of the NPU scales two ways."""
    made = RandomGraph(1, DType.INT16)
    (x, *_) = made.graph.inputs
    zeros = made.zero(), made.b.constant([0], DType.INT8)
    operands = made.weights(8, 1, 1, x.shape[3]), made.bias(8)
    sums = made.b("CONV2D", x, *operands, *zeros, pad=(0, 0, 0, 0), stride=(1, 1))
    scaled = [made.rescale(sums, DType.INT16, scale) for scale in (0.01, 0.003)]
    made.graph.set_outputs(scaled)
    made.graph.erase_dead()
    inputs = [
        np.random.default_rng(0).integers(-3000, 3000, value.shape).astype(np.int16)
        for value in made.graph.inputs
    ]
    found: Any = mizzen.compile(write(made.graph), "ethos-u85-256", prove="off").run(*inputs)
    for ours, theirs in zip(found, evaluate(made.graph, inputs), strict=True):
        np.testing.assert_array_equal(ours.reshape(theirs.shape), theirs)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512"])
@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"])
def test_both_operands_broadcast(kind: str, accelerator: str) -> None:
    """Ethos-U55 and U65 broadcast the second operand only: the other is repeated."""
    made = RandomGraph(1, DType.INT8)
    given = [made.graph.add_input(TensorType(shape, DType.INT8)) for shape in ((7,), (6,))]
    wide = [
        made.b(
            "RESHAPE", made.rescale(value, DType.INT32, 1.0), made.b.constant(shape, DType.SHAPE)
        )
        for value, shape in zip(given, ((7, 1), (1, 6)), strict=True)
    ]
    product = (made.b.constant([0], DType.INT8),) if kind == "MUL" else ()
    result = made.rescale(made.b(kind, *wide, *product), DType.INT8, 0.5)
    made.graph.set_outputs([result])
    inputs = [
        np.random.default_rng(0).integers(-128, 128, value.shape).astype(np.int8)
        for value in made.graph.inputs
    ]
    (wanted,) = evaluate(made.graph, inputs)
    found: Any = mizzen.compile(write(made.graph), accelerator).run(*inputs)
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)
