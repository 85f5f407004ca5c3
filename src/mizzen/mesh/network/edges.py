"""How a user's inputs and outputs lie, and how a network's do: the same numbers, moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mizzen.graph import Array, Operation
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
        return Move(operation.result.shape, tuple(operation["perms"]))
    return Move(operation.result.shape)


@dataclass(frozen=True, slots=True)
class Edge:
    """An input or output: the user's shape of one image, and the moves from or to it."""

    shape: Shape
    moves: tuple[Move, ...] = ()

    def then(self, operation: Operation) -> Edge:
        """Return an input's edge that does an operation too, as its last move."""
        return replace(self, moves=(*self.moves, _move(operation)))

    def before(self, operation: Operation) -> Edge:
        """Return an output's edge that does an operation too, as its first move."""
        return replace(self, moves=(_move(operation), *self.moves))

    def apply(self, array: Array) -> Array:
        """Return `[images, *shape]` moved."""
        for move in self.moves:
            array = move.apply(array)
        return array


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
