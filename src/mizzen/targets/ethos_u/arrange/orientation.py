"""What the operations of a sequence cost, some of them with height and width exchanged.

Which those are is decided together, as an exchange is free only where all that see a tensor have
it: else the tensor lies in NHWC, and some see it by strides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from mizzen.targets.ethos_u.arrange.strided import takes_bricks
from mizzen.targets.ethos_u.arrange.swap import exchanged, turned_tensors
from mizzen.targets.ethos_u.commands_values import Layout
from mizzen.targets.ethos_u.operations import (
    Bytes,
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

    def total(self, sequence: Sequence, flips: Flips) -> float:
        """Return the sum over all operations of a sequence; infinite where it cannot be."""
        turned = turned_tensors(sequence, flips) if flips else set[int]()
        flat = _flat(sequence, flips, turned)
        return sum(
            self._one(sequence, operation, index in flips, turned, flat)
            for index, operation in enumerate(sequence.operations)
        )

    def alone(self, sequence: Sequence, indices: Collection[int], flips: Flips) -> float:
        """Return the sum over some operations, if no other changed for it."""
        turned = turned_tensors(sequence, flips) if flips else set[int]()
        flat = _flat(sequence, flips, turned)
        return sum(
            self._one(sequence, sequence.operations[index], index in flips, turned, flat)
            for index in indices
        )

    def _one(
        self, sequence: Sequence, operation: Operation, flipped: bool, turned: set[int],
        flat: set[int],
    ) -> float:  # fmt: skip
        if isinstance(operation, Copy):
            return self._known((id(operation), None, ()), operation, operation)
        maps = (*maps_read(operation), operation.ofm)
        rows = sequence.tensors
        layouts = tuple(_layout(map_.tensor in flat, rows[map_.tensor]) for map_ in maps)
        if not flipped:
            return self._known((id(operation), None, layouts), operation, operation)
        here = tuple(map_.tensor in turned for map_ in maps)
        key = id(operation), here, layouts
        if key in self.known:
            return self.known[key]
        return self._known(key, operation, exchanged(operation, rows, turned))

    def _known(self, key: _Key, kept: Operation, operation: Operation | None) -> float:
        if key not in self.known:
            self.kept[id(kept)] = kept
            found = NEVER if operation is None else self.estimate(operation, key[2])
            self.known[key] = found
        return self.known[key]


def _flat(sequence: Sequence, flips: Flips, turned: Collection[int]) -> set[int]:
    """Return the tensors that must lie in NHWC."""
    found = {index for index, row in enumerate(sequence.tensors) if row.role is not Role.SCRATCH}
    found |= {*sequence.inputs, *sequence.outputs}
    for index, operation in enumerate(sequence.operations):
        if isinstance(operation, Copy):
            found |= {*tensors_read(operation), tensor_written(operation)}
            continue
        for map_ in (*maps_read(operation), operation.ofm):
            if _needs_rows(map_, index in flips, map_.tensor in turned):
                found.add(map_.tensor)
    return found


def _layout(flat: bool, row: Tensor) -> Layout | None:
    """Return the layout that a tensor must have; what only was row-major before need not stay."""
    if flat:
        return Layout.NHWC
    return Layout.NHCWB16 if row.layout is Layout.NHCWB16 else None


def _needs_rows(map_: Map, flipped: bool, turned: bool) -> bool:
    """Whether an operation that is exchanged, or a tensor that is, needs a map to be row-major."""
    view = map_.view
    if isinstance(view, Bytes) or (flipped and not turned and map_.shape[:2] != (1, 1)):
        return True
    if turned:
        (height, width, depth), (down, across) = view.shape, view.steps
        view = replace(view, shape=(width, height, depth), steps=(across, down))
    return not takes_bricks(view)


def cheapest(sequence: Sequence, costs: Costs, flips: Flips, starts: Iterator[Flips]) -> Flips:
    """Return which operations to exchange: the best start, improved one operation at a time."""
    best, least = flips, costs.total(sequence, flips)
    for start in starts:
        cost = costs.total(sequence, start)
        if cost < least:
            best, least = start, cost
    movable = [index for index, row in enumerate(sequence.operations) if not isinstance(row, Copy)]
    improved = True
    while improved:
        improved = False
        for index in movable:
            cost = costs.total(sequence, best ^ {index})
            if cost < least:
                best, least, improved = best ^ {index}, cost, True
    return best
