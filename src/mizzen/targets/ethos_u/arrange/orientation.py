"""What the operations of a sequence cost, some of them with height and width exchanged.

Which those are is decided together, as an exchange is free only where all that see a tensor have
it: else the tensor lies in NHWC, and some see it by strides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field

from mizzen.targets.ethos_u.arrange.strided import HEIGHT, WIDTH, takes_bricks
from mizzen.targets.ethos_u.arrange.swap import exchanged
from mizzen.targets.ethos_u.commands_values import Layout
from mizzen.targets.ethos_u.operations import (
    Box,
    Bytes,
    Computation,
    Copy,
    Map,
    Operation,
    Role,
    Sequence,
    Tensor,
    maps_read,
    tensor_written,
    tensors_read,
)

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
_Key = tuple[int, tuple[bool, ...] | None, Layouts]


@dataclass(slots=True)
class Costs:
    """What operations cost as they are and exchanged; each is estimated once.

    kept  operations whose identity is a key, so that no other gets it
    """

    estimate: Estimate
    known: dict[_Key, float] = field(default_factory=dict[_Key, float])
    kept: dict[int, Operation] = field(default_factory=dict[int, Operation])

    def of(self, operation: Operation, layouts: Layouts) -> float:
        """Return what an operation costs as it is."""
        return self._known((id(operation), None, layouts), operation, operation)

    def exchanged(
        self, operation: Computation, layouts: Layouts, turned: Set[int], rows: tuple[Tensor, ...]
    ) -> float:
        """Return what an operation costs exchanged, as some tensors are; infinite if it cannot."""
        maps = (*maps_read(operation), operation.ofm)
        key = id(operation), tuple(map_.tensor in turned for map_ in maps), layouts
        if key in self.known:
            return self.known[key]
        return self._known(key, operation, exchanged(operation, rows, turned))

    def _known(self, key: _Key, kept: Operation, operation: Operation | None) -> float:
        if key not in self.known:
            self.kept[id(kept)] = kept
            found = NEVER if operation is None else self.estimate(operation, key[2])
            self.known[key] = found
        return self.known[key]


class Orientation:
    """A sequence of which any operations may be exchanged, and what they cost then.

    An operation's cost follows from its tensors alone: whether they lie exchanged, and whether
    they have to be row-major. Both follow from the operations that see them.
    """

    def __init__(self, sequence: Sequence, costs: Costs) -> None:
        self.sequence = sequence
        self._costs = costs
        self._views: list[list[tuple[int, Map | None]]] = [[] for _ in sequence.tensors]
        self._tensors: list[set[int]] = []
        for index, operation in enumerate(sequence.operations):
            self._tensors.append({*tensors_read(operation), tensor_written(operation)})
            if isinstance(operation, Copy):
                for tensor in self._tensors[-1]:
                    self._views[tensor].append((index, None))
                continue
            for map_ in (*maps_read(operation), operation.ofm):
                self._views[map_.tensor].append((index, map_))
        callers = {*sequence.inputs, *sequence.outputs}
        self._own = [
            row.role is Role.SCRATCH and index not in callers
            for index, row in enumerate(sequence.tensors)
        ]

    def total(self, flips: Flips) -> float:
        """Return the sum over all operations; infinite where it cannot be."""
        return self.cost(range(len(self.sequence.operations)), flips)

    def cost(self, operations: Iterable[int], flips: Flips) -> float:
        """Return the sum over some operations."""
        turned: dict[int, bool] = {}
        layouts: dict[int, Layout | None] = {}
        total = 0.0
        for index in operations:
            for tensor in self._tensors[index]:
                if tensor not in turned:
                    turned[tensor] = self._is_turned(tensor, flips)
                    layouts[tensor] = self._layout(tensor, flips, turned[tensor])
            total += self._one(index, flips, turned, layouts)
        return total

    def beside(self, index: int) -> set[int]:
        """Return the operations that see a tensor that operation `index` sees."""
        return {user for tensor in self._tensors[index] for user, _ in self._views[tensor]}

    def _one(
        self, index: int, flips: Flips, turned: dict[int, bool], layouts: dict[int, Layout | None]
    ) -> float:
        operation = self.sequence.operations[index]
        if isinstance(operation, Copy):
            return self._costs.of(operation, ())
        seen = tuple(layouts[map_.tensor] for map_ in (*maps_read(operation), operation.ofm))
        if index not in flips:
            return self._costs.of(operation, seen)
        those = {tensor for tensor in self._tensors[index] if turned[tensor]}
        return self._costs.exchanged(operation, seen, those, self.sequence.tensors)

    def _is_turned(self, tensor: int, flips: Flips) -> bool:
        return self._own[tensor] and all(
            user in flips and map_ is not None and isinstance(map_.view, Box)
            for user, map_ in self._views[tensor]
        )

    def _layout(self, tensor: int, flips: Flips, turned: bool) -> Layout | None:
        """Return the layout that a tensor must have, None for any.

        What only was row-major before need not stay so.
        """
        rows = not self._own[tensor] or any(
            map_ is None or _needs_rows(map_, user in flips, turned)
            for user, map_ in self._views[tensor]
        )
        if rows:
            return Layout.NHWC
        bricks = self.sequence.tensors[tensor].layout is Layout.NHCWB16
        return Layout.NHCWB16 if bricks else None


def _needs_rows(map_: Map, flipped: bool, turned: bool) -> bool:
    """Whether an operation that is exchanged, or a tensor that is, needs a map to be row-major."""
    view = map_.view
    if isinstance(view, Bytes) or (flipped and not turned and view.shape[:2] != (1, 1)):
        return True
    return not takes_bricks(view, HEIGHT if turned else WIDTH)


def cheapest(orientation: Orientation, flips: Flips, starts: Iterable[Flips]) -> Flips:
    """Return which operations to exchange: the best start, improved one operation at a time."""
    movable = [
        (index, orientation.beside(index))
        for index, row in enumerate(orientation.sequence.operations)
        if not isinstance(row, Copy) and _has_sides(row)
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
        for index, beside in movable:
            other = best ^ {index}
            gain = orientation.cost(beside, best) - orientation.cost(beside, other)
            if gain > LEAST_CYCLES:
                best, improved = other, True
    return best


def _has_sides(operation: Computation) -> bool:
    """Whether height and width of anything that an operation sees differ."""
    maps = (*maps_read(operation), operation.ofm)
    return any(map_.shape[0] != map_.shape[1] for map_ in maps)
