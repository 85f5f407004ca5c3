"""How a user's inputs and outputs lie, and how a network's do: the same numbers, moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from mizzen.graph import Array, Operation, Value
from mizzen.ops.data_layout import Transpose

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """One operation that only moves: to a shape, or to an order of axes."""

    shape: Shape
    order: tuple[int, ...] | None = None

    def apply(self, array: Array) -> Array:
        """Move `[images, *shape]`."""
        if self.order is None:
            return array.reshape(len(array), *self.shape)
        return array.transpose(0, *(axis + 1 for axis in self.order))


def _move(operation: Operation) -> Move:
    if isinstance(operation, Transpose):
        return Move(operation.result.shape, operation.perms)
    return Move(operation.result.shape)


@dataclass(frozen=True, slots=True)
class Edge:
    """An input or output: the user's shape of one image, and the moves from or to it.

    A number is ``scale * (integer - zero_point)``, where that is known of the whole tensor.
    """

    shape: Shape
    moves: tuple[Move, ...] = ()
    scale: float | None = None
    zero_point: int = 0

    def then(self, operation: Operation) -> Edge:
        """Return an input's edge that does an operation too, as its last move."""
        return replace(self, moves=(*self.moves, _move(operation)))

    def before(self, operation: Operation) -> Edge:
        """Return an output's edge that does an operation too, as its first move."""
        return replace(self, moves=(_move(operation), *self.moves))

    def leads(self, first: Shape, last: Shape) -> bool:
        """Whether the moves lead from one shape to another."""
        shape = first
        for move in self.moves:
            if move.order is None:
                fits = prod(shape) == prod(move.shape)
            else:
                fits = sorted(move.order) == list(range(len(shape))) and move.shape == tuple(
                    shape[axis] for axis in move.order
                )
            if not fits:
                return False
            shape = move.shape
        return shape == last

    def apply(self, array: Array) -> Array:
        """Return `[images, *shape]` moved."""
        for move in self.moves:
            array = move.apply(array)
        return array


def edge_of(value: Value) -> Edge:
    """Return the edge of a graph's input or output, as it is."""
    quantization = value.quantization
    if quantization is None or len(quantization.scales) != 1:
        return Edge(value.shape)
    return Edge(value.shape, (), float(quantization.scales[0]), int(quantization.zero_points[0]))


@dataclass(slots=True)
class Edges:
    """The edges of a network's inputs and outputs, in their order."""

    inputs: list[Edge]
    outputs: list[Edge]

    def take(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Return the network's inputs of a user's, `[images, *shape]` each."""
        return tuple(edge.apply(array) for edge, array in zip(self.inputs, arrays, strict=True))

    def give(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Return the user's outputs of a network's, `[images, *shape]` each."""
        return tuple(edge.apply(array) for edge, array in zip(self.outputs, arrays, strict=True))
