"""Graphs of a few operations on one input."""

from __future__ import annotations

from collections.abc import Callable

from mizzen.diagnostics import Origin
from mizzen.graph import DType, Graph, RoundingMode, TensorType, Value
from mizzen.ops import Builder

Build = Callable[[Builder, Value], Value]


def graph_of(shape: tuple[int, ...], build: Build, dtype: DType = DType.INT8) -> Graph:
    """Return a graph of one input and one output."""
    graph = Graph("made")
    x = graph.add_input(TensorType(shape, dtype), "x")
    graph.set_outputs([build(Builder(graph, Origin("made")), x)])
    return graph


def scaled(
    b: Builder, value: Value, to: DType, multiplier: int = 1 << 30, shift: int = 30,
    zeros: tuple[int, int] = (0, 0), rounding: RoundingMode = RoundingMode.SINGLE_ROUND,
) -> Value:  # fmt: skip
    """Add a RESCALE by one scale."""
    return b(
        "RESCALE", value, b.constant([multiplier], DType.INT32), b.constant([shift], DType.INT8),
        b.constant([zeros[0]], value.dtype), b.constant([zeros[1]], to),
        scale32=True, rounding_mode=rounding, per_channel=False,
    )  # fmt: skip
