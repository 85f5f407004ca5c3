"""Orders of elements: in which order memory holds the elements of a tensor.

An order says how memory walks through a tensor: loops, the outermost first, each with its number
of steps and its stride in elements of the tensor as the user's model has it (row-major). NHWC
memory of an NCHW tensor ``[1, C, H, W]`` is ``((H * W, 1), (C, H * W))``. Orders are canonical:
no loop of one step, and neighbours that are one loop are one, so two orders are equal exactly if
memory is. A RESHAPE does not change the order of its operand, a TRANSPOSE does; that is why
orders, not permutations of dimensions, are what a layout is chosen from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
