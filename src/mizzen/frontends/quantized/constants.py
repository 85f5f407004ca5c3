"""Quantised constants as values of a graph, each but once."""

from __future__ import annotations

from mizzen.frontends.quantized.terms import Array, Constant
from mizzen.graph import DType, Graph, Value


class Constants:
    """The constants of one graph: what has the same source, type and shape is one value."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._values: dict[tuple[object, DType, tuple[int, ...]], Value] = {}

    def value(self, constant: Constant, integers: Array, dtype: DType) -> Value:
        """Return a constant's integers, which may be laid out in another way than it has them."""
        key = (constant.source, dtype, integers.shape)
        known = None if constant.source is None else self._values.get(key)
        if known is not None:
            return known
        value = self._graph.constant(integers, dtype, quantization=constant.quantization)
        self._values[key] = value
        return value
