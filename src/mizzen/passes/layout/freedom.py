"""Which orders of elements each operation can work in, and what it looks like in memory then.

An operation that treats all elements alike works in any order that its tensors share. One that
treats a dimension apart (a sum along it, a concatenation) needs that dimension whole in memory's
shape, wherever it is there. Everything else works in the order of the model only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from mizzen.graph import Attributes, Operation, TensorType, Value
from mizzen.ops.activation import Activation, Clamp
from mizzen.ops.data_layout import Concat, Pad, Reverse, Slice, Tile
from mizzen.ops.data_node import Identity
from mizzen.ops.elementwise import Binary, Comparison, Mul, Select, Table, Unary
from mizzen.ops.reduction import Reduction
from mizzen.ops.tensor import Argmax, Conv2d
from mizzen.ops.type_conversion import Cast, Rescale
from mizzen.passes.layout.order import (
    CACHED,
    Loop,
    Order,
    Shape,
    refined,
    row_major,
    transferred,
)

MAXIMUM_RANK = 4
"""Dimensions that memory's shape may have where the model's has fewer.

More than four are for compilers to break down again.
"""


@dataclass(frozen=True, slots=True)
class Freedom:
    """The orders that an operation can work in.

    space    the shape whose order is chosen; all the tensors' orders follow from it
    tensors  the operands that are laid out; the others are parameters
    whole    dimensions of the space, of more than one index, that stay whole
    lead     this many first dimensions stay first, whole and in the model's order
    last     whether the last dimension stays last and whole
    follows  whether results are laid out as well; else they have the model's order
    uniform  whether every tensor has the space's shape or one element: memory's shape is free, but
             for its last dimension if that stays
    """

    space: Shape
    tensors: tuple[int, ...] = (0,)
    whole: tuple[int, ...] = ()
    lead: int = 0
    last: bool = False
    follows: bool = True
    uniform: bool = False

    def allows(self, order: Order) -> bool:
        """Whether the operation can work in an order of the space."""
        if order == row_major_of(self.space) or (self.uniform and not self.last):
            return True
        loops = refined(order, self.space)
        if loops is None or len(loops) > max(MAXIMUM_RANK, len(self.space)):
            return False
        return self._keeps(loops)

    def _keeps(self, loops: tuple[Loop, ...]) -> bool:
        if any(self.space[dim] == 1 for dim in self.whole):
            return False
        lead = [dim for dim in range(self.lead) if self.space[dim] > 1]
        if [loop.dim for loop in loops[: len(lead)]] != lead:
            return False
        bound = {*self.whole, *lead}
        if self.last and self.space and self.space[-1] > 1:
            bound.add(len(self.space) - 1)
            if not loops or loops[-1].dim != len(self.space) - 1:
                return False
        return all(loop.steps == self.space[loop.dim] for loop in loops if loop.dim in bound)

    def fits(self, shape: Shape) -> bool:
        """Whether memory may have a shape, if the order is right and the freedom is uniform."""
        return not self.last or shape[-1:] == self.space[-1:]

    def operand_order(self, order: Order, shape: Shape) -> Order | None:
        """Return the order of an operand, or result, of a shape when the space has an order."""
        return order if shape == self.space else transferred(order, self.space, shape)

    def space_order(self, order: Order, shape: Shape) -> Order | None:
        """Return the order of the space that makes an operand or result of a shape have one."""
        found = order if shape == self.space else transferred(order, shape, self.space)
        return found if found is not None and self.allows(found) else None


@lru_cache(CACHED)
def row_major_of(shape: Shape) -> Order:
    """Return the model's own order of a tensor."""
    return row_major(prod(shape))


def aligned(operation: Operation) -> Shape:
    """Return the shape of an operation's first result with the dimensions of its space."""
    shape = operation.results[0].shape
    if isinstance(operation, Argmax):
        return (*shape[: operation.axis], 1, *shape[operation.axis :])
    return shape


def freedom(operation: Operation) -> Freedom | None:
    """Say which orders an operation can work in; None if the model's only."""
    match operation:
        case Identity() | Table() | Unary():
            return _elementwise(operation, operation.input1)
        case Activation() | Cast() | Clamp() | Rescale():
            return _elementwise(operation, operation.input)
        case Binary() | Comparison() | Mul():
            return _elementwise(operation, operation.input1, operation.input2)
        case Select():
            return _elementwise(operation, operation.input1, operation.input2, operation.input3)
        case Argmax() | Reduction():
            return Freedom(operation.input.shape, whole=(operation.axis,))
        case Reverse():
            return Freedom(operation.input1.shape, whole=(operation.axis,))
        case Concat():
            tensors = tuple(range(len(operation.input1)))
            return Freedom(operation.result.shape, tensors, whole=(operation.axis,))
        case Pad() | Slice() | Tile():
            return _by_dimension(operation)
        case Conv2d() if operation.weight.constant is not None:
            # Input channels may come in any order, because the weights can follow.
            return Freedom(operation.input.shape, lead=3, follows=False)
        case _:
            return None


def _elementwise(operation: Operation, *operands: Value) -> Freedom | None:
    space, shapes = operation.result.shape, [operand.shape for operand in operands]
    if any(len(shape) != len(space) for shape in shapes):
        return None
    last = isinstance(operation, Rescale) and operation.per_channel
    uniform = all(shape == space or prod(shape) == 1 for shape in shapes)
    return Freedom(space, tuple(range(len(shapes))), last=last, uniform=uniform)


def _by_dimension(operation: Pad | Slice | Tile) -> Freedom | None:
    """Return which orders are free where dimensions that change stay whole."""
    before, after = operation.input1.shape, operation.result.shape
    if any(value.constant is None for value in operation.operands[1:]):
        return None
    changed = tuple(dim for dim, size in enumerate(before) if size != after[dim])
    # A dimension of one index that grows has no place in the operand's order.
    space = after if any(before[dim] == 1 for dim in changed) else before
    return Freedom(space, whole=changed)


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
