"""What an operation looks like in memory: shapes, axes and parameters by dimension."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mizzen.graph import Attributes, Operation, TensorType, Value
from mizzen.ops.data_layout import Pad, Slice, Tile
from mizzen.ops.tensor import Argmax
from mizzen.passes.layout.freedom import aligned
from mizzen.passes.layout.order import Loop, Shape

BY_DIMENSION: dict[tuple[type[Operation], int], int] = {
    (Pad, Pad.padding.index): 2,
    (Slice, Slice.start.index): 1,
    (Slice, Slice.size.index): 1,
    (Tile, Tile.multiples.index): 1,
}
"""Operands with numbers for each dimension, and how many each dimension has."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The space of an operation as memory has it.

    space  its shape in the model; shape  in memory
    loops  what the dimensions in memory are, behind leading ones; none if every tensor has the
           space's shape or one element
    """

    space: Shape
    shape: Shape
    loops: tuple[Loop, ...] = ()

    @property
    def leading(self) -> int:
        """The number of dimensions of one index before the loops."""
        return len(self.shape) - len(self.loops)

    def shape_of(self, shape: Shape) -> Shape:
        """Return the shape in memory of a tensor of the operation by its shape in the model."""
        if shape == self.space:
            return self.shape
        if prod(shape) == 1:
            return (1,) * len(self.shape)
        # Loops over dimensions whose size is another than the space's are whole.
        sizes = (
            loop.steps if shape[loop.dim] == self.space[loop.dim] else shape[loop.dim]
            for loop in self.loops
        )
        return (1,) * self.leading + tuple(sizes)

    def axis(self, axis: int) -> int:
        """Return the dimension in memory of a dimension that is whole."""
        return self.leading + [loop.dim for loop in self.loops].index(axis)

    def type_of(self, value: Value, operation: Operation) -> TensorType:
        """Return the type in memory of a result."""
        shape = self.shape_of(aligned(operation))
        if isinstance(operation, Argmax):
            place = self.axis(operation.axis)
            shape = (*shape[:place], *shape[place + 1 :])
        quantization = value.quantization
        if quantization is not None and quantization.axis is not None:
            quantization = None
        return TensorType(shape, value.dtype, quantization)

    def attributes_of(self, operation: Operation) -> Attributes:
        """Return the operation's attributes in memory."""
        attributes = operation.attributes
        if "axis" not in attributes:
            return attributes
        return {**attributes, "axis": self.axis(attributes["axis"])}

    def parameter(self, operation: Operation, index: int) -> Shape | None:
        """Return the numbers in memory of an operand that goes by dimension; None for others."""
        each = BY_DIMENSION.get((type(operation), index))
        if each is None:
            return None
        numbers = operation.operands[index].constant
        assert numbers is not None, "an operation with unknown parameters has no freedom"
        given = numbers.reshape(-1, each).tolist()
        sizes = isinstance(operation, Slice) and index == Slice.size.index
        unchanged = [1] if sizes or isinstance(operation, Tile) else [0] * each
        rows = [unchanged] * self.leading
        for loop in self.loops:
            if loop.steps == self.space[loop.dim]:
                rows.append(given[loop.dim])
            else:
                rows.append([loop.steps] if sizes else unchanged)
        return tuple(number for row in rows for number in row)
