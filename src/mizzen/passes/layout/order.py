"""Orders of elements: how memory walks through a tensor, and which orders each operation can take.

An order says in which order memory holds the elements of a tensor: loops, the outermost first, each
with its number of steps and its stride in elements of the tensor as the user's model has it
(row-major). NHWC memory of an NCHW tensor ``[1, C, H, W]`` is ``((H * W, 1), (C, H * W))``. Orders
are canonical: no loop of one step, and neighbours that are one loop are one, so two orders are
equal exactly if memory is. A RESHAPE does not change the order of its operand, a TRANSPOSE does;
that is why orders, not permutations of dimensions, are what a layout is chosen from.

An operation that treats all elements alike works in any order that its tensors share. One that
treats a dimension apart (a sum along it, a concatenation) needs that dimension whole in memory's
shape, wherever it is there. Everything else works in the order of the model only. `Freedom` says
so, and `Memory` what the operation looks like in memory then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from mizzen.graph import Attributes, Operation, TensorType, Value
from mizzen.ops.control_flow import Identity
from mizzen.ops.data_layout import Concat, Pad, Reverse, Slice, Tile
from mizzen.ops.elementwise import Activation, Binary, Clamp, Comparison, Mul, Select, Table, Unary
from mizzen.ops.reduction import Reduction
from mizzen.ops.tensor import Argmax, Conv2d
from mizzen.ops.type_conversion import Cast, Rescale

Shape = tuple[int, ...]
Order = tuple[tuple[int, int], ...]
"""Loops, the outermost first: (steps, stride in elements)."""

CACHED = 1 << 14
"""Results that each function keeps: networks repeat few shapes."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over part of one dimension: `steps` of `stride` indices of dimension `dim`."""

    dim: int
    steps: int
    stride: int


def canonical(loops: Iterable[tuple[int, int]]) -> Order:
    """Return loops without those of one step, neighbours merged where they are one loop."""
    order: list[tuple[int, int]] = []
    for steps, stride in loops:
        if steps == 1:
            continue
        if order and order[-1][1] == steps * stride:
            order[-1] = (order[-1][0] * steps, stride)
        else:
            order.append((steps, stride))
    return tuple(order)


def row_major(elements: int) -> Order:
    """Return the order of a tensor that memory holds as the user's model has it."""
    return ((elements, 1),) if elements > 1 else ()


def strides(shape: Shape) -> Shape:
    """Return how many elements one index of each dimension is worth, row-major."""
    result: list[int] = []
    step = 1
    for size in reversed(shape):
        result.append(step)
        step *= size
    return tuple(reversed(result))


@lru_cache(CACHED)
def permuted(shape: Shape, perms: Shape) -> Order:
    """Return the order, in the operand's elements, in which a TRANSPOSE's result holds them.

    shape, perms  the operand's shape, and TOSA's attribute: result dim i is operand dim perms[i]
    """
    step = strides(shape)
    return canonical((shape[axis], step[axis]) for axis in perms)


@lru_cache(CACHED)
def refined(order: Order, shape: Shape) -> tuple[Loop, ...] | None:
    """Split loops until each is within one dimension of a row-major shape; None if impossible."""
    step = strides(shape)
    dims = [dim for dim in range(len(shape) - 1, -1, -1) if shape[dim] > 1]
    result: list[Loop] = []
    for steps, least in reversed(order):
        rest, stride = steps, least
        for dim in dims:
            if rest == 1:
                break
            if stride >= step[dim] * shape[dim]:
                continue
            inner, remainder = divmod(stride, step[dim])
            room, odd = divmod(shape[dim], inner) if inner else (0, 1)
            if remainder or odd:
                return None
            taken = min(rest, room)
            if rest % taken:
                return None
            result.append(Loop(dim, taken, inner))
            rest //= taken
            stride *= taken
    return tuple(reversed(result))


@lru_cache(CACHED)
def composed(order: Order, view: Order) -> Order | None:
    """Return `order` in the elements of what `view` looks at; None if loops do not fit.

    order  over the elements of a view; view  over the elements of the tensor seen
    """
    loops = refined(order, tuple(steps for steps, _ in view))
    if loops is None:
        return None
    return canonical((loop.steps, loop.stride * view[loop.dim][1]) for loop in loops)


@lru_cache(CACHED)
def inverse(view: Order) -> Order:
    """Return the order, in a view's elements, that memory of the tensor seen has."""
    step = strides(tuple(steps for steps, _ in view))
    places = sorted(range(len(view)), key=lambda place: -view[place][1])
    return canonical((view[place][0], step[place]) for place in places)


@lru_cache(CACHED)
def transferred(order: Order, source: Shape, target: Shape) -> Order | None:
    """Return the same order of dimensions for a shape whose dimensions differ in size.

    None if a dimension that differs is split over loops, or is of one index in `source` only: an
    order says nothing about the place of such a dimension.
    """
    loops = refined(order, source)
    if loops is None:
        return None
    step = strides(target)
    result: list[tuple[int, int]] = []
    for loop in loops:
        if source[loop.dim] == target[loop.dim]:
            result.append((loop.steps, loop.stride * step[loop.dim]))
        elif loop.steps != source[loop.dim]:
            return None
        else:
            result.append((target[loop.dim], step[loop.dim]))
    if any(a == 1 and b > 1 for a, b in zip(source, target, strict=True)):
        return None
    return canonical(result)


@dataclass(frozen=True, slots=True)
class Movement:
    """The TRANSPOSE that takes memory from one order to another.

    shape  what its operand is reshaped to; perms  its attribute; result  the shape it gives
    """

    shape: Shape
    perms: Shape

    @property
    def result(self) -> Shape:
        """The shape of the result."""
        return tuple(self.shape[axis] for axis in self.perms)


@lru_cache(CACHED)
def movement(before: Order, after: Order, held: Shape, wanted: Shape) -> Movement | None:
    """Return the TRANSPOSE from memory in order `before` to order `after`; None if there is none.

    held, wanted  the shapes of the tensors in memory; if one permutation of the dimensions of
                  `held` gives `wanted` no RESHAPE is needed, and that movement is given
    """
    walk = composed(after, inverse(before))
    if walk is None:
        return None
    natural = _permutation(walk, held, wanted)
    if natural is not None:
        return Movement(held, natural)
    places = sorted(range(len(walk)), key=lambda place: -walk[place][1])
    shape = tuple(walk[place][0] for place in places)
    return Movement(shape, tuple(places.index(place) for place in range(len(walk))))


def _permutation(walk: Order, held: Shape, wanted: Shape) -> Shape | None:
    """Find the permutation of the dimensions of `held` that gives `wanted` and walks so."""
    if sorted(held) != sorted(wanted):
        return None
    loops = refined(walk, held)
    if loops is None:
        return None
    moved = [loop.dim for loop in loops]
    if [held[dim] for dim in moved] != [size for size in wanted if size > 1]:
        return None
    idle = iter(_kept(held, wanted))
    busy = iter(moved)
    return tuple(next(busy) if size > 1 else next(idle) for size in wanted)


def _kept(held: Shape, wanted: Shape) -> Sequence[int]:
    """Return dimensions of one index of `held`: in place where `wanted` has one there too."""
    ones = [dim for dim, size in enumerate(held) if size == 1]
    places = [dim for dim, size in enumerate(wanted) if size == 1]
    result: list[int | None] = [dim if dim in ones else None for dim in places]
    rest = iter(dim for dim in ones if dim not in places)
    return [next(rest) if dim is None else dim for dim in result]


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
        own = order if shape == self.space else transferred(order, shape, self.space)
        return own if own is not None and self.allows(own) else None


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
    loops  what the dimensions in memory are, after leading ones; none if every tensor has the
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
        lines = [unchanged] * self.leading
        for loop in self.loops:
            if loop.steps == self.space[loop.dim]:
                lines.append(given[loop.dim])
            else:
                lines.append([loop.steps] if sizes else unchanged)
        return tuple(number for line in lines for number in line)
