"""Give linear layers the shape in which an NPU multiplies fastest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mizzen.graph import DType, Graph, Operation, Value

LEAST_WIDTH = 2
"""Pixels that an NPU computes at once beside each other; a column of single ones is half idle."""

LEAST_PIXELS = 8
"""Fewer fit into one block whatever their shape."""


@dataclass(frozen=True, slots=True)
class WidenColumns:
    """Let CONV2D of single pixels, one column of them, work on rows instead.

    A linear layer on a sequence is a convolution with a kernel of 1x1. To it the shape of its image
    is all the same, but an NPU that computes blocks of two by two pixels leaves half of itself idle
    in an image that is one pixel wide.
    """

    name: ClassVar[str] = "widen-columns"

    def run(self, graph: Graph) -> bool:
        """Rewrite the graph; True if anything changed."""
        found = [operation for operation in graph if _is_column(operation)]
        for operation in found:
            _widen(graph, operation)
        graph.erase_dead()
        return bool(found)


def _is_column(operation: Operation) -> bool:
    if operation.kind != "CONV2D" or operation.operands[1].shape[1:3] != (1, 1):
        return False
    batch, rows, columns, _ = operation.operands[0].shape
    plain = tuple(operation["stride"]) == (1, 1) and not any(operation["pad"])
    return plain and columns == 1 and batch * rows >= LEAST_PIXELS


def _widen(graph: Graph, operation: Operation) -> None:
    source, result = operation.operands[0], operation.result
    pixels = source.shape[0] * source.shape[1]
    # Rows stay as many as can be: a compiler cuts an image that does not fit between rows.
    width = LEAST_WIDTH if pixels % LEAST_WIDTH == 0 else pixels
    image = (1, pixels // width, width)
    operands = list(operation.operands)
    operands[0] = _reshaped(graph, operation, source, (*image, source.shape[3]))
    wide = graph.add(
        operation.kind,
        operands,
        [result.type.with_shape((*image, result.shape[3]))],
        operation.attributes,
        origin=operation.origin,
        group=operation.group,
    )
    given = _reshaped(graph, operation, wide.result, result.shape)
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
