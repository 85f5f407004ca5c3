"""Operations that move elements: views wherever strides can say it, copies where not.

RESHAPE, SLICE, TRANSPOSE, REVERSE and IDENTITY see what they read in another way. CONCAT, PAD and
TILE are places in a larger tensor: what they join is written there at once where it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from mizzen.diagnostics import Origin
from mizzen.graph import DType, Operation, Value
from mizzen.ops.control_flow import Identity
from mizzen.ops.data_layout import (
    Concat,
    Gather,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Tile,
    Transpose,
)
from mizzen.targets.ethos_u.generator.lower.carrying import carry
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, Wishes, type_of
from mizzen.targets.ethos_u.generator.lower.finish import number, numbers, plain
from mizzen.targets.ethos_u.generator.lower.planning import NOWHERE, Site, rule
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View, dense
from mizzen.targets.ethos_u.machine.commands_values import Arch

See = Callable[[View], View | None]


MOVES = (Identity, Reshape, Reverse, Slice, Transpose)
"""What a value only is seen in another way for, or is moved."""


def moved(value: Value, arch: Arch) -> Node | None:
    """Return the node of a value that is another one seen in another way; None if it is not."""
    operation = value.producer
    match operation:
        case Reshape() | Identity():
            return _seen(value, operation, lambda view: view.reshaped(value.shape), _reshaped_back)
        case Slice():
            starts = numbers(operation.start).tolist()
            return _seen(value, operation, lambda view: view.sliced(starts, value.shape), None)
        case Transpose():
            back = _permuted_back if arch is Arch.U85 else _turned_back
            return _seen(value, operation, lambda view: view.permuted(operation.perms), back)
        case Reverse():
            return _seen(value, operation, lambda view: view.reversed(operation.axis), None)
        case _:
            return None


def _reshaped_back(operation: Operation, place: View) -> View | None:
    return place.reshaped(operation.operand.shape)


def _turned_back(operation: Operation, place: View) -> View | None:
    """Return where the operand lies, if its last axis stays the last: pixels stay whole."""
    assert isinstance(operation, Transpose)
    perms = operation.perms
    last = len(perms) - 1
    if perms and perms[last] != last and operation.operand.shape[last] != 1:
        return None
    return place.permuted([perms.index(axis) for axis in range(len(perms))])


def _permuted_back(operation: Operation, place: View) -> View | None:
    """Return where the operand lies, if nobody else reads it."""
    assert isinstance(operation, Transpose)
    alone = sum(operation.operand.uses.values()) == 1
    perms = operation.perms
    return place.permuted([perms.index(axis) for axis in range(len(perms))]) if alone else None


def lies(value: Value) -> View | None:
    """Return how a value lies where it is a view of what is computed, row by row.

    None where no view is one.
    """
    node = moved(value, Arch.U85)
    if node is None or node.view is None:
        return dense(0, value.shape)
    source = lies(node.reads[0])
    return None if source is None else node.view(source)


def _seen(
    value: Value,
    operation: Operation,
    see: See,
    back: Callable[[Operation, View], View | None] | None,
) -> Node:
    source = operation.operand
    origin = operation.origin or NOWHERE

    def emit(emitter: Emitter) -> None:
        """Copy to where the value is wished, or where no view can say it."""
        view = see(emitter.read(source))
        place = emitter.places.get(value)
        if view is None:
            at_once = back(operation, place) if back is not None and place is not None else None
            made = emitter.scratch(emitter.read(source), "copy") if at_once is None else at_once
            emitter.copy(emitter.read(source), made, origin)
            view = place if at_once is not None else see(made)
            assert view is not None
        if place is None or place.is_same(view):
            emitter.views[value] = view
            return
        emitter.copy(view, place, origin)
        emitter.views[value] = place

    def wishes(place: View) -> Wishes:
        if back is not None:
            yield source, back(operation, place)

    return Node(value, (source,), (operation,), emit, see, wishes)


def _placed(
    site: Site,
    parts: Sequence[tuple[Value, Callable[[View], View]]],
    fill: Callable[[Emitter, View], None] | None = None,
) -> Node:
    """Return the node of a value whose parts are other values."""
    need(not site.steps, "its result is only moved")
    value, origin = site.value, site.origin

    def emit(emitter: Emitter) -> None:
        place = emitter.target(value)
        for source, see in parts:
            view, wanted = emitter.read(source), see(place)
            if not view.is_same(wanted):
                emitter.copy(view, wanted, origin)
        if fill is not None:
            fill(emitter, place)

    def wishes(place: View) -> Wishes:
        for source, see in parts:
            yield source, see(place)

    reads = tuple(dict.fromkeys(source for source, _ in parts))
    return Node(value, reads, (site.operation,), emit, None, wishes)


@rule(Concat)
def concat(site: Site) -> Node:
    """Values behind each other."""
    operation = site.operation
    assert isinstance(operation, Concat)
    axis, start = operation.axis, 0
    parts: list[tuple[Value, Callable[[View], View]]] = []
    for value in operation.operands:
        count = value.shape[axis]
        parts.append((value, _range(axis, start, count)))
        start += count
    return _placed(site, parts)


def _range(axis: int, start: int, count: int) -> Callable[[View], View]:
    return lambda view: view.part(axis, start, count)


@rule(Tile)
def tile(site: Site) -> Node:
    """A value many times over."""
    operation = site.operation
    source = operation.operand
    assert isinstance(operation, Tile)
    counts = numbers(operation.multiples).tolist()
    shape = source.shape
    parts: list[tuple[Value, Callable[[View], View]]] = []
    for place in product(*map(range, counts)):
        starts = [index * extent for index, extent in zip(place, shape, strict=True)]
        parts.append((source, _box(starts, shape)))
    need(len(parts) <= MOST_COPIES, f"it repeats {len(parts)} times")
    return _placed(site, parts)


MOST_COPIES = 256
"""Copies that one operation is made of at most."""


def _box(starts: Sequence[int], shape: Sequence[int]) -> Callable[[View], View]:
    return lambda view: view.sliced(starts, shape)


@rule(Gather)
def gather(site: Site) -> Node:
    """Rows of [N,K,C] by constant indices [N,W]: one copy for each run of them."""
    operation = site.operation
    assert isinstance(operation, Gather)
    source = operation.operand
    indices = numbers(operation.indices).reshape(operation.indices.shape)
    runs = [(batch, *run) for batch, row in enumerate(indices.tolist()) for run in runs_of(row)]
    need(len(runs) <= MOST_COPIES, f"its indices are {len(runs)} runs")
    need(not site.steps, "its result is only moved")

    def emit(emitter: Emitter) -> None:
        place, view = emitter.target(site.value), emitter.read(source)
        for batch, to, start, step, count in runs:
            one = view.part(0, batch, 1)
            one = replace(one, offset=one.offset + start * one.strides[1])
            one = one.stepped(1, step, count)
            emitter.copy(one, place.part(0, batch, 1).part(1, to, count), site.origin)

    return Node(site.value, (source,), (operation,), emit)


def runs_of(row: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Return runs of indices at one distance: place, first, distance, how many."""
    start = 0
    while start < len(row):
        stop = start + 1
        step = row[stop] - row[start] if stop < len(row) else 1
        while stop < len(row) and row[stop] - row[stop - 1] == step and step:
            stop += 1
        yield start, row[start], step or 1, stop - start
        start = stop


@rule(Pad)
def pad(site: Site) -> Node:
    """A value with a number all round it."""
    operation = site.operation
    assert isinstance(operation, Pad)
    source, filling = operation.operand, number(operation.pad_const)
    amounts = numbers(operation.padding).reshape(-1, 2).tolist()
    integers = DType.BOOL, DType.INT8, DType.INT16, DType.INT32
    need(source.dtype in integers, "it pads no integers")
    starts = [before for before, _ in amounts]
    inside = _box(starts, source.shape)

    def fill(emitter: Emitter, place: View) -> None:
        for border in _borders(place, amounts, source.shape):
            filled(emitter, border, filling, source.dtype, site.origin)

    return _placed(site, [(source, inside)], fill)


def _borders(
    place: View, amounts: Sequence[Sequence[int]], inside: Sequence[int]
) -> Iterator[View]:
    """Return the parts round the inside, axis by axis, no element twice."""
    starts, shape = [0] * len(amounts), list(place.shape)
    for axis, (before, after) in enumerate(amounts):
        for start, count in ((0, before), (before + inside[axis], after)):
            if count:
                first, sizes = list(starts), list(shape)
                first[axis], sizes[axis] = start, count
                yield place.sliced(first, sizes)
        starts[axis], shape[axis] = before, inside[axis]


def filled(emitter: Emitter, view: View, filling: int, dtype: DType, origin: Origin) -> None:
    """Add what writes a number to all elements of a view: from a constant of its shape."""
    values = np.full(view.shape, filling, type_of(dtype))
    source = emitter.constant(values, "filling")
    if dtype is DType.INT32:
        emitter.copy(source, view, origin)
    else:
        kept = DType.INT8 if dtype is DType.BOOL else dtype
        carry(emitter, source, view, plain(kept), 0, origin)
