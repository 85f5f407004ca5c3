"""Adds operations to a graph whose results' types follow from the operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.graph import DType, Graph, Operation, Quantization, TensorType, Value
from mizzen.ops.inference import complete, definition_of, infer

Key = tuple[DType, tuple[int, ...], bytes, Quantization | None]

SHARED_ELEMENTS = 16
"""Constants of at most as many elements are one operation wherever they are equal."""

_shared: WeakKeyDictionary[Graph, dict[Key, Value]] = WeakKeyDictionary()


def reshaped(graph: Graph, place: Operation, value: Value, shape: tuple[int, ...]) -> Value:
    """Add a RESHAPE with the origin and group of an operation, unless the value has the shape."""
    if value.shape == shape:
        return value
    operands = (value, graph.constant(shape, DType.SHAPE))
    return graph.add_beside(place, "RESHAPE", operands, value.type.with_shape(shape))


class Builder:
    """Adds operations of one origin and group to a graph.

    ``b("ADD", x, y)`` gives the result's value; what must hold and does not is raised as E80x.
    """

    __slots__ = ("_constants", "graph", "group", "origin")

    def __init__(
        self, graph: Graph, origin: Origin | None = None, group: int | None = None
    ) -> None:
        self.graph = graph
        self.origin = origin
        self.group = group
        self._constants = _shared.setdefault(graph, {})

    def at(self, origin: Origin | None, group: int | None) -> Builder:
        """Return a builder for another place in the model, on the same graph."""
        return Builder(self.graph, origin, group)

    def __call__(
        self,
        kind: str,
        *operands: Value,
        quantization: Quantization | None = None,
        dtype: DType | None = None,
        **attributes: Any,
    ) -> Value:
        """Add an operation with one result and return it.

        quantization  of the result; none follows from the operands
        dtype         the result's element type where the operands leave a choice (CAST, MATMUL of
                      f16)
        """
        definition = definition_of(kind, self.origin)
        whole = complete(definition, attributes, self.origin)
        types = infer(definition, operands, whole, dtype, self.origin)
        if quantization is not None:
            types = (types[0].quantized(quantization),)
        operation = self.graph.add(
            kind, operands, types, whole, origin=self.origin, group=self.group
        )
        return operation.result

    def many(
        self, kind: str, *operands: Value, dtype: DType | None = None, **attributes: Any
    ) -> tuple[Value, ...]:
        """Add an operation with any number of results and return them."""
        definition = definition_of(kind, self.origin)
        whole = complete(definition, attributes, self.origin)
        types = infer(definition, operands, whole, dtype, self.origin)
        operation = self.graph.add(
            kind, operands, types, whole, origin=self.origin, group=self.group
        )
        return operation.results

    def custom(
        self,
        operator_name: str,
        operands: Sequence[Value],
        types: Sequence[TensorType],
        **attributes: Any,
    ) -> tuple[Value, ...]:
        """Add a custom operation with results of the given types and return them."""
        definition = definition_of("CUSTOM")
        attributes["operator_name"] = operator_name
        whole = complete(definition, attributes, self.origin)
        operation = self.graph.add(
            "CUSTOM", operands, types, whole, origin=self.origin, group=self.group
        )
        return operation.results

    def constant(
        self, values: npt.ArrayLike, dtype: DType, quantization: Quantization | None = None
    ) -> Value:
        """Return a constant. Small ones that are equal are one; those are in no group."""
        array = np.asarray(values, dtype.numpy)
        if array.size > SHARED_ELEMENTS:
            return self.graph.constant(
                array, dtype, quantization=quantization, origin=self.origin, group=self.group
            )
        key = (dtype, array.shape, array.tobytes(), quantization)
        value = self._constants.get(key)
        producer = None if value is None else value.producer
        if value is None or producer is None or producer not in self.graph:
            array = array.copy()
            array.flags.writeable = False
            value = self.graph.constant(array, dtype, quantization=quantization)
            self._constants[key] = value
        return value

    def shape(self, values: Sequence[int]) -> Value:
        """Return a shape as a constant."""
        return self.constant(values, DType.SHAPE)
