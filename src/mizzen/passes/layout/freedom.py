"""Which orders of elements each operation can work in.

An operation that treats all elements alike works in any order that its tensors share. One that
treats a dimension apart (a sum along it, a concatenation) needs that dimension whole in memory's
shape, wherever it is there. Everything else works in the order of the model only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from mizzen.graph import Operation, Value
from mizzen.passes.layout.order import (
    CACHED,
    Loop,
    Order,
    Shape,
    refined,
    row_major,
    transferred,
)

ONE_TENSOR = (
    "ABS", "BITWISE_NOT", "CAST", "CEIL", "CLAMP", "CLZ", "COS", "ERF", "EXP", "FLOOR",
    "IDENTITY", "LOG", "LOGICAL_NOT", "NEGATE", "RECIPROCAL", "RESCALE", "RSQRT", "SIGMOID",
    "SIN", "TABLE", "TANH",
)  # fmt: skip
TWO_TENSORS = (
    "ADD", "ARITHMETIC_RIGHT_SHIFT", "BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "EQUAL",
    "GREATER", "GREATER_EQUAL", "INTDIV", "LOGICAL_AND", "LOGICAL_LEFT_SHIFT", "LOGICAL_OR",
    "LOGICAL_RIGHT_SHIFT", "LOGICAL_XOR", "MAXIMUM", "MINIMUM", "MUL", "POW", "SUB",
)  # fmt: skip
ELEMENTWISE = {**dict.fromkeys(ONE_TENSOR, 1), **dict.fromkeys(TWO_TENSORS, 2), "SELECT": 3}
"""Operation to how many of its operands, from the first, it takes element by element."""

ALONG_AN_AXIS = (
    "ARGMAX", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PRODUCT",
    "REDUCE_SUM", "REVERSE",
)  # fmt: skip

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
    if operation.kind == "ARGMAX":
        axis = operation["axis"]
        return (*shape[:axis], 1, *shape[axis:])
    return shape


def freedom(operation: Operation) -> Freedom | None:
    """Say which orders an operation can work in; None if the model's only."""
    rule = RULES.get(operation.kind)
    return None if rule is None else rule(operation)


def _elementwise(operation: Operation) -> Freedom | None:
    space = operation.result.shape
    tensors = tuple(range(ELEMENTWISE[operation.kind]))
    if any(len(operation.operands[index].shape) != len(space) for index in tensors):
        return None
    last = operation.attributes.get("per_channel", False)
    shapes = (operation.operands[index].shape for index in tensors)
    uniform = all(shape == space or prod(shape) == 1 for shape in shapes)
    return Freedom(space, tensors, last=last, uniform=uniform)


def _along_an_axis(operation: Operation) -> Freedom:
    return Freedom(operation.operands[0].shape, whole=(operation["axis"],))


def _concat(operation: Operation) -> Freedom:
    tensors = tuple(range(len(operation.operands)))
    return Freedom(operation.result.shape, tensors, whole=(operation["axis"],))


def _by_dimension(operation: Operation) -> Freedom | None:
    """Of PAD, SLICE and TILE: dimensions that change stay whole."""
    before, after = operation.operands[0].shape, operation.result.shape
    if not all(map(_is_constant, operation.operands[1:])):
        return None
    changed = tuple(dim for dim, size in enumerate(before) if size != after[dim])
    # A dimension of one index that grows has no place in the operand's order.
    space = after if any(before[dim] == 1 for dim in changed) else before
    return Freedom(space, whole=changed)


def _conv2d(operation: Operation) -> Freedom | None:
    """Input channels may come in any order, because the weights can follow."""
    if operation.operands[1].constant is None:
        return None
    return Freedom(operation.operands[0].shape, lead=3, follows=False)


def _is_constant(value: Value) -> bool:
    return value.constant is not None


RULES: dict[str, Callable[[Operation], Freedom | None]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(ALONG_AN_AXIS, _along_an_axis),
    **dict.fromkeys(("PAD", "SLICE", "TILE"), _by_dimension),
    "CONCAT": _concat,
    "CONV2D": _conv2d,
}
