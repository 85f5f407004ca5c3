"""Whole graphs against Arm's reference model: what single operations do not show."""

from __future__ import annotations

import numpy as np
import pytest

from mizzen.graph import Array, DType, Graph, RoundingMode, TensorType, Value, integer_range
from mizzen.ops import Builder
from mizzen.reference import evaluate

from .tosa_oracle import TosaOracle, find

I8, I16, I32, I48 = DType.INT8, DType.INT16, DType.INT32, DType.INT48
Random = np.random.Generator


@pytest.fixture(scope="module")
def oracle() -> TosaOracle:
    return find()


def rescaled(b: Builder, value: Value, random: Random, target: DType) -> Value:
    """Return the value rescaled for each channel, so that it fills the range of the type."""
    channels = value.shape[-1]
    wide = value.dtype is I48
    bits, scales = (15, I16) if wide else (31, I32)
    multiplier = random.integers(1 << (bits - 1), 1 << bits, channels)
    shift = np.full(channels, bits + 10)
    return b(
        "RESCALE",
        value,
        b.constant(multiplier, scales),
        b.constant(shift, I8),
        b.constant([0], value.dtype),
        b.constant([-3 if target is I8 else 0], target),
        scale32=not wide,
        rounding_mode=RoundingMode.SINGLE_ROUND if wide else RoundingMode.DOUBLE_ROUND,
        per_channel=True,
    )


def convolved(b: Builder, value: Value, random: Random, kind: str, channels: int) -> Value:
    """Return a convolution of 3 x 3 with stride 1 and the size kept, rescaled."""
    c, dtype = value.shape[-1], value.dtype
    shape = (3, 3, c, 1) if kind == "DEPTHWISE_CONV2D" else (channels, 3, 3, c)
    bias = random.integers(-1000, 1000, channels)
    total = b(
        kind,
        value,
        b.constant(random.integers(-128, 128, shape), I8),
        b.constant(bias, I32 if dtype is I8 else I48),
        b.constant([-3 if dtype is I8 else 0], dtype),
        b.constant([0], I8),
        pad=(1, 1, 1, 1),
        stride=(1, 1),
    )
    return rescaled(b, total, random, dtype)


def same(graph: Graph, inputs: list[Array], oracle: TosaOracle, least: int) -> None:
    """Check that both give the same, and `least` different numbers at least."""
    ours, theirs = evaluate(graph, inputs), oracle(graph, inputs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(np.unique(np.concatenate([each.ravel() for each in ours]))) >= least


@pytest.mark.parametrize("dtype", [I8, I16])
def test_a_convolutional_network(dtype: DType, oracle: TosaOracle) -> None:
    random = np.random.default_rng(3)
    graph = Graph()
    value = graph.add_input(TensorType((2, 9, 11, 3), dtype))
    b = Builder(graph)
    first = convolved(b, value, random, "CONV2D", 16)
    second = convolved(b, first, random, "DEPTHWISE_CONV2D", 16)
    pooled = b("MAX_POOL2D", second, kernel=(3, 3), stride=(2, 2), pad=(0, 0, 0, 0))
    joined = b("CONCAT", pooled, b("REVERSE", pooled, axis=1), axis=3)
    turned = b("TRANSPOSE", joined, perms=(0, 3, 1, 2))
    graph.set_outputs([first, turned])
    low, high = integer_range(dtype)
    inputs = [random.integers(low, high + 1, value.shape).astype(dtype.numpy)]
    same(graph, inputs, oracle, least=100)


def test_a_softmax_in_integers(oracle: TosaOracle) -> None:
    """Reductions, a table, shifts and products of i32, as networks have them behind each other."""
    random = np.random.default_rng(4)
    graph = Graph()
    value = graph.add_input(TensorType((1, 4, 10), I8))
    b = Builder(graph)
    wide = b("CAST", value, dtype=I32)
    least = b("SUB", wide, b("REDUCE_MAX", wide, axis=2))
    entries = np.exp(np.arange(-256, 257) / 32).clip(0, 1) * 32767
    table = b.constant(entries, I16)
    looked = b("TABLE", b("CAST", b("MUL", least, *constants(b, 128, 0)), dtype=I16), table)
    small = b("ARITHMETIC_RIGHT_SHIFT", looked, b.constant([[[7]]], I32), round=True)
    total = b("REDUCE_SUM", small, axis=2)
    zeros = b("CLZ", total)
    scaled = b("LOGICAL_LEFT_SHIFT", small, zeros)
    half = b("LOGICAL_RIGHT_SHIFT", b("LOGICAL_LEFT_SHIFT", total, zeros), *constants(b, 16)[:1])
    graph.set_outputs([b("INTDIV", scaled, half), zeros])
    same(graph, [random.integers(-128, 128, value.shape).astype(np.int8)], oracle, least=20)


def constants(b: Builder, value: int, shift: int = 0) -> tuple[Value, Value]:
    return b.constant([[[value]]], I32), b.constant([shift], I8)


def test_control_flow_and_variables(oracle: TosaOracle) -> None:
    one = TensorType((1,), I32)
    graph = Graph()
    value = graph.add_input(one)
    b = Builder(graph)
    b.many("VARIABLE", name="state", type=one, initial=np.array([3], np.int32))
    before = b("VARIABLE_READ", name="state", type=one)
    turns, total = b.many(
        "WHILE_LOOP", value, before, cond_graph=below(one, 20), body_graph=step(one, "ADD")
    )
    b.many("VARIABLE_WRITE", total, name="state")
    flag = b("GREATER", total, b.constant([10], I32))
    less, more = step(one, "SUB"), step(one, "ADD")
    results = b.many("COND_IF", flag, turns, total, then_graph=less, else_graph=more)
    graph.set_outputs([turns, *results])
    for start in (0, 17, 30):
        same(graph, [np.array([start], np.int32)], oracle, least=2)


def below(one: TensorType, bound: int) -> Graph:
    """Return a condition: the first value is less."""
    graph = Graph("condition")
    values = graph.add_input(one), graph.add_input(one)
    b = Builder(graph)
    graph.set_outputs([b("GREATER", b.constant([bound], I32), values[0])])
    return graph


def step(one: TensorType, kind: str) -> Graph:
    """Return a body: the first value and 3, and the operation on the second and the first."""
    graph = Graph(kind.lower())
    count, total = graph.add_input(one), graph.add_input(one)
    b = Builder(graph)
    graph.set_outputs([b("ADD", count, b.constant([3], I32)), b(kind, total, count)])
    return graph
