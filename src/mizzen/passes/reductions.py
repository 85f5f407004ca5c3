"""Find greatest numbers along rows, where an NPU finds many at once."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mizzen.graph import DType, Graph, Operation, Value

LEAST_ROWS = 8
"""Rows from which on turning them costs less than it saves."""


@dataclass(frozen=True, slots=True)
class TurnMaxima:
    """Turn a tensor before the greatest of its last dimension is found.

    An NPU finds the greatest with a pooling, of many channels at once. Along the last dimension
    there is a single channel; that costs more than it does to turn rows into channels first.
    """

    name: ClassVar[str] = "turn-maxima"

    def run(self, graph: Graph) -> bool:
        """Rewrite the graph; True if anything changed."""
        found = [operation for operation in graph if _is_along_rows(operation)]
        for operation in found:
            _turn(graph, operation)
        graph.erase_dead()
        return bool(found)


def _is_along_rows(operation: Operation) -> bool:
    if operation.kind != "REDUCE_MAX" or not operation.operands[0].dtype.is_integer:
        return False
    shape = operation.operands[0].shape
    last = len(shape) - 1
    return last > 0 and operation["axis"] == last and shape[last] > 1 and _rows(shape) >= LEAST_ROWS


def _rows(shape: tuple[int, ...]) -> int:
    return next((size for size in reversed(shape[:-1]) if size > 1), 1)


def _turn(graph: Graph, operation: Operation) -> None:
    value, result = operation.operands[0], operation.result
    rows, width = _rows(value.shape), value.shape[-1]
    batch = prod(value.shape[:-1]) // rows
    flat = _reshaped(graph, operation, value, (batch, rows, width))
    turned = graph.add(
        "TRANSPOSE",
        (flat,),
        [flat.type.with_shape((batch, width, rows))],
        {"perms": (0, 2, 1)},
        origin=operation.origin,
        group=operation.group,
    ).result
    greatest = graph.add(
        operation.kind,
        (turned,),
        [result.type.with_shape((batch, 1, rows))],
        {**operation.attributes, "axis": 1},
        origin=operation.origin,
        group=operation.group,
    ).result
    given = _reshaped(graph, operation, greatest, result.shape)
    given.name, result.name = result.name, ""
    graph.replace(result, given)


def _reshaped(graph: Graph, user: Operation, value: Value, shape: tuple[int, ...]) -> Value:
    numbers = graph.constant(shape, DType.SHAPE)
    return graph.add(
        "RESHAPE",
        (value, numbers),
        [value.type.with_shape(shape)],
        origin=user.origin,
        group=user.group,
    ).result
