"""What an operation looks like in memory: shapes, axes and parameters by dimension."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mizzen.graph import Attributes, Operation, TensorType, Value
from mizzen.passes.layout.freedom import Freedom, aligned
from mizzen.passes.layout.order import Loop, Order, Shape, refined

BY_DIMENSION = {("PAD", 1): 2, ("SLICE", 1): 1, ("SLICE", 2): 1, ("TILE", 1): 1}
"""Operands with numbers for each dimension, and how many each dimension has."""


Dimension = tuple[Loop, ...]
"""What one dimension in memory is: loops that run on from one another, the outermost first."""

WIDEST = 3
"""Dimensions of more than one index that an NPU takes at once: rows, columns, channels.

With more an operation is repeated, for each index of the first.
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """The space of an operation as memory has it.

    space       its shape in the model; shape  in memory
    dimensions  what the dimensions in memory are, behind leading ones; none if every tensor has
                the space's shape or one element
    """

    space: Shape
    shape: Shape
    dimensions: tuple[Dimension, ...] = ()

    @property
    def leading(self) -> int:
        """The number of dimensions of one index before the others."""
        return len(self.shape) - len(self.dimensions)

    def shape_of(self, shape: Shape) -> Shape:
        """Give the shape in memory of a tensor of the operation by its shape in the model."""
        if shape == self.space:
            return self.shape
        if prod(shape) == 1:
            return (1,) * len(self.shape)
        # Loops over dimensions whose size is another than the space's are whole.
        sizes = (
            prod(
                loop.steps if shape[loop.dim] == self.space[loop.dim] else shape[loop.dim]
                for loop in dimension
            )
            for dimension in self.dimensions
        )
        return (1,) * self.leading + tuple(sizes)

    def axis(self, axis: int) -> int:
        """Give the dimension in memory of a dimension that is whole."""
        return self.leading + [dimension[0].dim for dimension in self.dimensions].index(axis)

    def type_of(self, value: Value, operation: Operation) -> TensorType:
        """Give the type in memory of a result."""
        shape = self.shape_of(aligned(operation))
        if operation.kind == "ARGMAX":
            place = self.axis(operation["axis"])
            shape = (*shape[:place], *shape[place + 1 :])
        quantization = value.quantization
        if quantization is not None and quantization.axis is not None:
            quantization = None
        return TensorType(shape, value.dtype, quantization)

    def attributes_of(self, operation: Operation) -> Attributes:
        """Give the operation's attributes in memory."""
        attributes = operation.attributes
        if "axis" not in attributes:
            return attributes
        return {**attributes, "axis": self.axis(attributes["axis"])}

    def parameter(self, operation: Operation, index: int) -> Shape | None:
        """Give the numbers in memory of an operand that goes by dimension; None for others."""
        each = BY_DIMENSION.get((operation.kind, index))
        if each is None:
            return None
        numbers = operation.operands[index].constant
        assert numbers is not None, "an operation with unknown parameters has no freedom"
        given = numbers.reshape(-1, each).tolist()
        sizes = (operation.kind, index) == ("SLICE", 2)
        unchanged = [1] if sizes or operation.kind == "TILE" else [0] * each
        rows = [unchanged] * self.leading
        for dimension, size in zip(self.dimensions, self.shape[self.leading :], strict=True):
            first = dimension[0]
            if len(dimension) == 1 and first.steps == self.space[first.dim]:
                rows.append(given[first.dim])
            else:
                rows.append([size] if sizes else unchanged)
        return tuple(number for row in rows for number in row)


def in_memory(operation: Operation, free: Freedom, order: Order) -> Memory:
    """Say what an operation looks like in memory when its space has an order."""
    loops = refined(order, free.space)
    assert loops is not None, "an order was chosen that the operation cannot have"
    dimensions = tuple((loop,) for loop in loops)
    rank = len(free.space)
    if len(dimensions) > WIDEST:
        merged = _merged(operation, free, dimensions)
        rank = rank if merged == dimensions else min(rank, WIDEST + 1)
        dimensions = merged
    sizes = tuple(prod(loop.steps for loop in dimension) for dimension in dimensions)
    return Memory(free.space, (1,) * (rank - len(sizes)) + sizes, dimensions)


def _merged(
    operation: Operation, free: Freedom, dimensions: tuple[Dimension, ...]
) -> tuple[Dimension, ...]:
    """Merge neighbours that are alike in every tensor, until no more than `WIDEST` are left."""
    shapes = [operation.operands[index].shape for index in free.tensors]
    shapes.append(aligned(operation))
    last = {len(free.space) - 1} if free.last else set[int]()
    bound = {*free.whole, *last}
    result = list(dimensions)
    place = 0
    while len(result) > WIDEST and place + 1 < len(result):
        both = [loop.dim for loop in (*result[place], *result[place + 1])]
        if bound.isdisjoint(both) and all(_alike(shape, free.space, both) for shape in shapes):
            result[place : place + 2] = [(*result[place], *result[place + 1])]
        else:
            place += 1
    return tuple(result)


def _alike(shape: Shape, space: Shape, dims: list[int]) -> bool:
    """Whether a tensor has all of these dimensions as the space has them, or none of them."""
    return all(shape[dim] == space[dim] for dim in dims) or all(shape[dim] == 1 for dim in dims)
