"""What the operations of a sequence cost, some of them with height and width exchanged.

Which those are is decided together, as an exchange is free only where all that see a tensor have
it: else the tensor lies in NHWC, and some see it by strides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from copy import copy
from dataclasses import dataclass, field
from operator import is_

from mizzen.targets.ethos_u.generator.arrange.strided import HEIGHT, WIDTH
from mizzen.targets.ethos_u.generator.arrange.swap import columns_of_products, exchanged
from mizzen.targets.ethos_u.generator.operations import (
    Box,
    Bytes,
    Chain,
    Computation,
    Copy,
    Map,
    Operation,
    Role,
    Sequence,
    Tensor,
    maps_read,
    tensors_read,
)
from mizzen.targets.ethos_u.machine.commands_values import Layout

Layouts = tuple[Layout | None, ...]
Estimate = Callable[[Operation, Layouts], float]
"""What an operation costs in its best block, in cycles or whatever is to be small.

The layouts are those of the tensors of its maps: each input's, then the output's. None is any.
"""
NEVER = float("inf")
LEAST_CYCLES = 1e-6
"""What an exchange must bring, so that sums in another order are no gain."""
Flips = frozenset[int]
"""Indices of operations that have height and width exchanged."""
_Seen = tuple[tuple[int, Map | None], ...]
"""Tensors that an operation sees, its inputs, then its output, by maps; a copy by none."""
_Key = tuple[int, tuple[bool, ...] | None, Layouts]


@dataclass(slots=True)
class OrientationCosts:
    """What operations cost as they are and exchanged; each is estimated once.

    kept  operations whose identity is a key, so that no other gets it
    maps  what each operation sees
    """

    estimate: Estimate
    known: dict[_Key, float] = field(default_factory=dict[_Key, float])
    kept: dict[int, Operation] = field(default_factory=dict[int, Operation])
    maps: dict[int, _Seen] = field(default_factory=dict[int, _Seen])

    def seen(self, operation: Operation) -> _Seen:
        """Return what an operation sees."""
        seen = self.maps.get(id(operation))
        if seen is None:
            self.kept[id(operation)] = operation
            seen = self.maps[id(operation)] = _seen(operation)
        return seen

    def of(self, operation: Operation, layouts: Layouts) -> float:
        """Return what an operation costs as it is."""
        return self._known((id(operation), None, layouts), operation, operation)

    def exchanged(
        self,
        operation: Computation,
        layouts: Layouts,
        turned: Set[int],
        tensors: tuple[Tensor, ...],
    ) -> float:
        """Return what an operation costs exchanged, as some tensors are; infinite if it cannot."""
        maps = (*maps_read(operation), operation.ofm)
        key = id(operation), tuple(map_.tensor in turned for map_ in maps), layouts
        if key in self.known:
            return self.known[key]
        return self._known(key, operation, exchanged(operation, tensors, turned))

    def _known(self, key: _Key, kept: Operation, operation: Operation | None) -> float:
        if key not in self.known:
            self.kept[id(kept)] = kept
            cost = NEVER if operation is None else self.estimate(operation, key[2])
            self.known[key] = cost
        return self.known[key]


_Views = list[tuple[int, Map | None]]
"""Operations that see a tensor, and the map that each sees it by; None of a copy."""


class Orientation:
    """A sequence of which any operations may be exchanged, and what they cost then.

    An operation's cost follows from its tensors alone: whether they lie exchanged, and whether
    they have to be row-major. Both follow from the operations that see them.
    """

    def __init__(self, sequence: Sequence, costs: OrientationCosts) -> None:
        self.sequence = sequence
        self._costs = costs
        self._callers = {*sequence.inputs, *sequence.outputs}
        self._columns = columns_of_products(sequence)
        self._views: dict[int, _Views] = {index: [] for index in range(len(sequence.tensors))}
        for index, operation in enumerate(sequence.operations):
            for tensor, map_ in costs.seen(operation):
                self._views[tensor].append((index, map_))
        self._base: Orientation | None = None
        self._place = 0, 1

    def rewritten(self, sequence: Sequence, index: int, count: int) -> Orientation:
        """Return that of a sequence in which `count` operations have come for operation `index`.

        Only what is asked of it is looked at, where all other operations are the same.
        """
        before, after = self.sequence.operations, sequence.operations
        rest = len(before) - index - 1
        same = (
            all(map(is_, before[:index], after[:index]))
            and all(map(is_, before[index + 1 :], after[index + count :]))
            and len(after) - index - count == rest
            and (self.sequence.inputs, self.sequence.outputs) == (sequence.inputs, sequence.outputs)
        )
        if not same or self._base is not None:
            return Orientation(sequence, self._costs)
        other = copy(self)
        other.sequence, other._views = sequence, {}
        other._base, other._place = self, (index, count)
        return other

    def total(self, flips: Flips) -> float:
        """Return the sum over all operations; infinite where it cannot be."""
        return self.cost(range(len(self.sequence.operations)), flips)

    def cost(self, operations: Iterable[int], flips: Flips) -> float:
        """Return the sum over some operations."""
        turned: dict[int, bool] = {}
        layouts: dict[int, Layout | None] = {}
        total = 0.0
        for index in operations:
            for tensor, _ in self._costs.seen(self.sequence.operations[index]):
                if tensor not in turned:
                    turned[tensor], layouts[tensor] = self._lies(tensor, flips)
            total += self._one(index, turned, layouts, exchanged=index in flips)
        return total

    def gain(self, index: int, flips: Flips, other: Flips) -> float:
        """Return what it brings to exchange one operation more, or less.

        other  the flips with it
        """
        changed = {
            tensor
            for tensor, _ in self._costs.seen(self.sequence.operations[index])
            if self._lies(tensor, flips) != self._lies(tensor, other)
        }
        touched = {index, *(user for tensor in changed for user, _ in self._seen_by(tensor))}
        return self.cost(sorted(touched), flips) - self.cost(sorted(touched), other)

    def _lies(self, tensor: int, flips: Flips) -> tuple[bool, Layout | None]:
        turned = self._is_turned(tensor, flips)
        return turned, self._layout(tensor, flips, turned)

    def _seen_by(self, tensor: int) -> _Views:
        """Return the operations that see a tensor."""
        views = self._views.get(tensor)
        if views is None:
            views = self._views[tensor] = self._rewritten_views(tensor)
        return views

    def _rewritten_views(self, tensor: int) -> _Views:
        assert self._base is not None, "all tensors were looked at"
        index, count = self._place
        views = [
            (user if user < index else user + count - 1, map_)
            for user, map_ in self._base._views.get(tensor, [])
            if user != index
        ]
        for user in range(index, index + count):
            sees = self._costs.seen(self.sequence.operations[user])
            views += [(user, map_) for seen, map_ in sees if seen == tensor]
        return views

    def _one(
        self,
        index: int,
        turned: dict[int, bool],
        layouts: dict[int, Layout | None],
        *,
        exchanged: bool,
    ) -> float:
        operation = self.sequence.operations[index]
        if isinstance(operation, Copy):
            return self._costs.of(operation, ())
        sees = self._costs.seen(operation)
        seen = tuple([layouts[tensor] for tensor, _ in sees])
        if not exchanged or isinstance(operation, Chain):
            return self._costs.of(operation, seen)
        those = {tensor for tensor, _ in sees if turned[tensor]}
        return self._costs.exchanged(operation, seen, those, self.sequence.tensors)

    def _is_own(self, tensor: int) -> bool:
        return self.sequence.tensors[tensor].role is Role.SCRATCH and tensor not in self._callers

    def _is_turned(self, tensor: int, flips: Flips) -> bool:
        free = tensor not in self._columns and self._is_own(tensor)
        return free and all(
            user in flips and map_ is not None and isinstance(map_.view, Box)
            for user, map_ in self._seen_by(tensor)
        )

    def _layout(self, tensor: int, flips: Flips, turned: bool) -> Layout | None:
        """Return the layout that a tensor must have, None for any.

        What only was row-major before need not stay so.
        """
        row_major = not self._is_own(tensor) or any(
            map_ is None or _needs_rows(map_, user in flips, turned)
            for user, map_ in self._seen_by(tensor)
        )
        if row_major:
            return Layout.NHWC
        bricks = self.sequence.tensors[tensor].layout is Layout.NHCWB16
        return Layout.NHCWB16 if bricks else None


def _seen(operation: Operation) -> _Seen:
    if isinstance(operation, Copy):
        tensors = *tensors_read(operation), operation.destination
        return tuple([(tensor, None) for tensor in tensors])
    return tuple([(map_.tensor, map_) for map_ in (*maps_read(operation), operation.ofm)])


def _needs_rows(map_: Map, flipped: bool, turned: bool) -> bool:
    """Whether an operation that is exchanged, or a tensor that is, needs a map to be row-major."""
    view = map_.view
    if isinstance(view, Bytes) or (flipped and not turned and view.shape[:2] != (1, 1)):
        return True
    return not view.takes_bricks(HEIGHT if turned else WIDTH)


def cheapest(orientation: Orientation, flips: Flips, starts: Iterable[Flips]) -> Flips:
    """Return which operations to exchange: the best start, improved one operation at a time."""
    movable = [
        index
        for index, operation in enumerate(orientation.sequence.operations)
        if not isinstance(operation, Copy | Chain) and _has_sides(operation)
    ]
    if not movable:
        return flips
    best, least = flips, orientation.total(flips)
    for start in starts:
        cost = orientation.total(start)
        if cost < least:
            best, least = start, cost
    improved = True
    while improved:
        improved = False
        for index in movable:
            other = best ^ {index}
            if orientation.gain(index, best, other) > LEAST_CYCLES:
                best, improved = other, True
    return best


def _has_sides(operation: Computation) -> bool:
    """Whether height and width of anything that an operation sees differ."""
    maps = (*maps_read(operation), operation.ofm)
    return any(map_.shape[0] != map_.shape[1] for map_ in maps)
