"""Functions and selections on Ethos-U85 that Vela joins wrongly, and Mizzen computes right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import mizzen
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.artifact.loading import artifact_of
from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.ops import Builder
from mizzen.package.tosa import write
from mizzen.reference import evaluate
from mizzen.targets.ethos_u.machine.system_config import resolve
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, generate

Step = Callable[[Builder, Value], Value]

ACCELERATOR = "ethos-u85-256"
SHAPE = (1, 4, 4, 8)
DTYPES = (DType.INT8, DType.INT16)


def rescale(b: Builder, value: Value, dtype: DType, shift: int) -> Value:
    """Scale by 2**(30 - shift)."""
    scale = b.constant([1 << 30], DType.INT32), b.constant([shift], DType.INT8)
    zeros = b.constant([0], value.dtype), b.constant([0], dtype)
    single = RoundingMode.SINGLE_ROUND
    return b(
        "RESCALE", value, *scale, *zeros, scale32=True, rounding_mode=single, per_channel=False
    )


def table(b: Builder, value: Value) -> Value:
    if value.dtype is DType.INT8:
        return b("TABLE", value, b.constant(np.arange(256) * 77 % 256 - 128, DType.INT8))
    entries = np.cumsum(np.arange(513) * 77 % 121 - 60)
    return rescale(b, b("TABLE", value, b.constant(entries, DType.INT16)), DType.INT16, 37)


def clamp(b: Builder, value: Value) -> Value:
    return b("CLAMP", value, min_val=-50, max_val=60)


def halved(b: Builder, value: Value) -> Value:
    return rescale(b, value, value.dtype, 31)


def reverse(b: Builder, value: Value) -> Value:
    return b("REVERSE", value, axis=3)


def transpose(b: Builder, value: Value) -> Value:
    return b("TRANSPOSE", value, perms=(0, 2, 1, 3))


def maximum(b: Builder, value: Value) -> Value:
    return b("MAX_POOL2D", value, kernel=(2, 2), stride=(1, 1), pad=(0, 1, 0, 1))


def select(b: Builder, value: Value) -> Value:
    wide = rescale(b, value, DType.INT32, 30)
    chosen = b("GREATER", wide, b.constant(np.full((1, 1, 1, 1), 3), DType.INT32))
    return b("SELECT", chosen, value, b.constant(np.full((1, 1, 1, 1), 7), value.dtype))


def widened(b: Builder, value: Value) -> Value:
    return rescale(b, value, DType.INT32, 18)


def build(steps: Sequence[Step], dtype: DType) -> Graph:
    graph = Graph()
    b = Builder(graph)
    value = graph.add_input(TensorType(SHAPE, dtype), "x")
    for step in steps:
        value = step(b, value)
    graph.set_outputs([value])
    return graph


def image(dtype: DType) -> Array:
    return np.random.default_rng(1).integers(-128, 128, SHAPE).astype(dtype.numpy)


def plain(graph: Graph, x: Array) -> Array:
    """Run what the compiler makes of the graph as it is."""
    compiled = generate(write(graph), resolve(ACCELERATOR), NetworkForm.TOSA)
    assert isinstance(compiled, Compiled)
    return single(artifact_of(compiled.network, "plain"), x)


def single(artifact: Artifact, x: Array) -> Array:
    result: Any = artifact.run(x)
    assert isinstance(result, np.ndarray)
    return result


JOINED = (
    (table, reverse, table),
    (table, reverse, clamp),
    (clamp, reverse, table),
    (clamp, transpose, table),
    (table, transpose, clamp),
    (maximum, widened),
    (select, widened),
)
"""What the compiler makes one operation of, with one function only or with limits too narrow."""

NEAR = (
    (maximum, table, reverse, table),
    (maximum, clamp, reverse, table),
    (clamp, transpose, transpose, table),
    (table, reverse, halved, table),
    (table, reverse, table, transpose, clamp),
    (clamp, reverse, clamp),
    (maximum, reverse, widened),
)
"""Others that look like it; the compiler crashes at some where only one side is parted."""


def name_of(value: object) -> str:
    steps = value if isinstance(value, tuple) else ()
    return "-".join(step.__name__ for step in steps) or str(value)


parametrized = partial(pytest.mark.parametrize, ids=name_of)


@parametrized("steps", (*JOINED, *NEAR))
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_npu_gives_what_tosa_says(steps: tuple[Step, ...], dtype: DType) -> None:
    graph, x = build(steps, dtype), image(dtype)
    (expected,) = evaluate(graph, [x])
    found = single(mizzen.compile(write(graph), ACCELERATOR, prove="off"), x)
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@parametrized("steps", JOINED)
@pytest.mark.parametrize("dtype", DTYPES)
def test_vela_joins_what_it_must_not(steps: tuple[Step, ...], dtype: DType) -> None:
    graph, x = build(steps, dtype), image(dtype)
    (expected,) = evaluate(graph, [x])
    assert not np.array_equal(plain(graph, x).reshape(expected.shape), expected)
