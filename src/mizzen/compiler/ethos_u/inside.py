"""Compare what a stream writes on the way with the tensors of the network, while it runs.

What was made for an operation of the graph may be its result, or that of one after it which is done
in the same. What is made last for it, and has the sizes of these and most of their numbers, must be
one of them; anything else that is equal to one is seen, too. Operations in stripes write one box of
it after the other, and each is taken as it was written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.compiler.ethos_u.agreement import operation_of
from mizzen.compiler.proof.difference import Difference, difference
from mizzen.compiler.proof.written import SAYS_SOMETHING
from mizzen.diagnostics import Origin
from mizzen.graph import Operation, Value
from mizzen.targets.ethos_u.judge.sim import Simulator
from mizzen.targets.ethos_u.judge.sim.plan import Plan
from mizzen.targets.ethos_u.judge.sim.watch import Watch
from mizzen.targets.ethos_u.judge.witness import (
    SaidMap,
    SaidTensor,
    SaidTransfer,
    Shape,
    Witness,
)

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a tensor of the network that an operation writes.

    tensor  index among the witness's, or, of what another view of a tensor's bytes shows, a number
            of its own, which is negative
    offset_bytes  of the operation's command in the stream
    """

    step: int
    offset_bytes: int
    tensor: int
    start: Shape
    shape: Shape

    @property
    def slices(self) -> tuple[slice, slice, slice]:
        """What it is of its tensor ``[H, W, C]``."""
        y, x, c = (
            slice(start, start + size) for start, size in zip(self.start, self.shape, strict=True)
        )
        return y, x, c

    def meets(self, other: Box) -> bool:
        """Whether both have an element in common."""
        return self.tensor == other.tensor and all(
            a < b + m and b < a + n
            for a, n, b, m in zip(self.start, self.shape, other.start, other.shape, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Differing:
    """What the first operation writes that is wrong: where it comes from, and how it differs."""

    origin: Origin
    difference: Difference


@dataclass(frozen=True, slots=True)
class StreamTensor:
    """A tensor of the stream: the boxes that are written of it last, and what it may be.

    shape       height, width, depth
    candidates  names of tensors of the network
    is_result   whether it is the last that was made for its operation: one of them it must be
    """

    shape: Shape
    origin: Origin
    boxes: tuple[Box, ...]
    candidates: tuple[str, ...]
    is_result: bool


class Inside:
    """The tensors of the network that a stream writes.

    operations  of the region's graph, whose places origins are
    reference   values of the graph by their names, ``[count, *shape]``
    """

    def __init__(
        self,
        witness: Witness,
        plan: Plan,
        operations: Sequence[Operation],
        reference: Mapping[str, Array],
    ) -> None:
        self._witness = witness
        self._reference = reference
        self._told = list(_told(witness, plan, operations, reference))
        self._watch = Watch([box.offset_bytes for told in self._told for box in told.boxes])

    def simulator(self, simulator: Simulator) -> Simulator:
        """Return a simulator of the same plan that shows what is written."""
        return simulator.watched(self._watch)

    def compared(self) -> Differing | frozenset[str]:
        """Return the first operation that is wrong, else the names of tensors that were seen."""
        maps, seen = self._watch.maps, set[str]()
        for told in self._told:
            closest: Difference | None = None
            for name, theirs in self._forms(told):
                ours = _written(told, maps, theirs)
                differs = difference(ours, theirs)
                if differs is None:
                    seen.add(name)
                    break
                if closest is None or differs.share < closest.share:
                    closest = differs
            else:
                if closest is not None and told.is_result and self._says(told, closest):
                    return Differing(told.origin, closest)
        return frozenset(seen)

    def _forms(self, told: StreamTensor) -> Iterator[tuple[str, Array]]:
        """Yield what a tensor may have to be, ``[count, H, W, C]``, with the name in the network.

        A layout may exchange the axes of all that operations hand on.
        """
        shape = told.shape
        for name in told.candidates:
            array = self._reference[name]
            plain = array.reshape(len(array), *_three(array.shape[1:]))
            orders = [
                order
                for order in permutations(range(3))
                if tuple(plain.shape[1 + axis] for axis in order) == shape
            ]
            for order in orders:
                moved = plain.transpose(0, *(1 + axis for axis in order))
                yield name, np.ascontiguousarray(moved)
            if not orders:
                yield name, np.ascontiguousarray(array).reshape(len(array), *shape)

    def _says(self, told: StreamTensor, closest: Difference) -> bool:
        """Whether a tensor is one that it differs from.

        It has the sizes of all that it may be, in whatever order, and most of the numbers of one;
        anything else may be something else, which outputs tell.
        """
        if closest.share > SAYS_SOMETHING:
            return False
        sizes = sorted(told.shape)
        references = (self._reference[name] for name in told.candidates)
        return all(sorted(_three(array.shape[1:])) == sizes for array in references)


def _written(told: StreamTensor, maps: Mapping[int, Array], theirs: Array) -> Array:
    """Return what was written of a tensor; what was not is as it has to be."""
    ours = theirs.copy()
    for box in told.boxes:
        ours[:, *box.slices] = maps[box.offset_bytes]
    return ours


def _three(shape: Sequence[int]) -> Shape:
    """Return a shape of any rank as height, width, depth."""
    padded = (1, 1, 1, *shape)
    return prod(padded[:-2]), padded[-2], padded[-1]


def _told(
    witness: Witness,
    plan: Plan,
    operations: Sequence[Operation],
    reference: Mapping[str, Array],
) -> Iterator[StreamTensor]:
    """Yield the tensors that may be the network's, those first that were complete first."""
    by_tensor: dict[int, list[Box]] = {}
    every = list(_boxes(witness, plan))
    last = {witness.steps[box.step].origin.operator: box.tensor for box in every}
    for box in _last_writes(every):
        by_tensor.setdefault(box.tensor, []).append(box)
    ordered = sorted(by_tensor.items(), key=lambda item: item[1][-1].step)
    origins, known = {step.origin.operator for step in witness.steps}, _known(operations)
    for tensor, boxes in ordered:
        made = {witness.steps[box.step].origin.operator for box in boxes}
        origin, said = witness.steps[boxes[-1].step].origin, _said(witness, tensor, boxes[-1])
        if len(made) > 1 or (operation := operation_of(origin, operations)) is None:
            continue
        results = [
            (name, is_own)
            for name, is_own in _results(operation, operations, origins, known)
            if name in reference
            and reference[name].dtype == said.dtype
            and reference[name][0].size == prod(said.shape)
        ]
        if results:
            names = dict.fromkeys(name for name, _ in results)
            is_last = tensor >= 0 and last[origin.operator] == tensor
            is_result = is_last and any(is_own for _, is_own in results)
            yield StreamTensor(said.shape, origin, tuple(boxes), tuple(names), is_result)


def _said(witness: Witness, tensor: int, box: Box) -> SaidTensor | SaidMap:
    """Return what says shape and type of a tensor; of a view, the map that it is seen as."""
    step = witness.steps[box.step]
    return witness.tensors[tensor] if tensor >= 0 or isinstance(step, SaidTransfer) else step.ofm


def _results(
    operation: Operation,
    operations: Sequence[Operation],
    origins: Collection[int | None],
    known: Collection[Value],
) -> Iterator[tuple[str, bool]]:
    """Yield the names of the values that steps of an operation may give, and whether one must be.

    Operations after it may be done in the same. Where they have steps of their own they need not,
    and what is before them may have no name.

    known  values that follow from constants alone
    """
    own = {operations[place] for place in origins if place is not None and place < len(operations)}
    waiting = [(value, True) for value in operation.results]
    while waiting:
        value, is_own = waiting.pop(0)
        if value.name:
            yield value.name, is_own
        for user in value.uses:
            if all(each is value or _is_constant(each, known) for each in user.operands):
                waiting += [(result, is_own and user not in own) for result in user.results]


def _known(operations: Sequence[Operation]) -> set[Value]:
    """Return the values that operations, in an order of execution, compute of constants alone."""
    known = set[Value]()
    for operation in operations:
        if operation.operands and all(_is_constant(each, known) for each in operation.operands):
            known.update(operation.results)
    return known


def _is_constant(value: Value, known: Collection[Value]) -> bool:
    return value.constant is not None or value in known


def _boxes(witness: Witness, plan: Plan) -> Iterator[Box]:
    for place, (said, step) in enumerate(zip(witness.steps, plan.steps, strict=True)):
        if isinstance(said, SaidTransfer):
            continue
        offset, start = 4 * (step.operation.where.origin.command or 0), said.ofm.start
        tensor = -1 - place if start is None else said.ofm.tensor
        yield Box(place, offset, tensor, start or (0, 0, 0), said.ofm.shape)


def _last_writes(boxes: Sequence[Box]) -> Iterator[Box]:
    """Yield the boxes that no later operation writes to, in the order of the stream."""
    later: dict[int, list[Box]] = {}
    last: list[Box] = []
    for box in reversed(boxes):
        after = later.setdefault(box.tensor, [])
        if not any(map(box.meets, after)):
            last.append(box)
        after.append(box)
    yield from reversed(last)
