"""Results that are stored in another order of axes than they are computed in.

What U85 computes has the axes of what it reads: depth is what lies beside each other there. The
result may have them permuted, so that a transposition is no operation of its own, or is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mizzen.diagnostics import Origin
from mizzen.targets.ethos_u.generator.lower.context import Emitter
from mizzen.targets.ethos_u.generator.lower.views import View, in_threes, pixels, planes, upright
from mizzen.targets.ethos_u.generator.operations import AS_COMPUTED, PERMUTATIONS, Map, Order
from mizzen.targets.ethos_u.machine.commands_values import Arch, TransposeU85

BY_ROWS = (AS_COMPUTED, Order(TransposeU85.HCW))
"""Orders that leave rows rows: other results leave the array at half the rate."""


def each_stored(
    emitter: Emitter, origin: Origin, *views: View
) -> Iterator[tuple[tuple[Map, ...], Order]]:
    """Return maps that belong together of what is read and, last, of what is written.

    Where depth is another axis of one that is read than of the largest, it is copied.
    """
    if emitter.arch is not Arch.U85:
        for row in planes(*views):
            yield tuple(emitter.map(view) for view in row), AS_COMPUTED
        return
    guide = max(views[:-1], key=lambda view: view.elements)
    *sources, result = upright(guide, views)
    if any(pixels(view) for view in sources):
        sources = [view if pixels(view) else emitter.copied(view, origin) for view in sources]
    for row, order in stored((*sources, result)):
        yield tuple(emitter.map(view) for view in _in_boxes(emitter, row, order)), order


def _in_boxes(emitter: Emitter, row: tuple[View, ...], order: Order) -> tuple[View, ...]:
    """Return views of one row with as many as make the result rows of its tensor, if that helps."""
    made = row[-1]
    _, width, _ = emitter.shape(made)
    rows, rest = divmod(made.shape[1], width)
    if made.shape[0] > 1 or rest or rows < 2 or made.strides[1] * width != emitter.pitch(made):
        return row
    axis = PERMUTATIONS[order.transpose][1]
    return (*(_split(view, axis, width) for view in row[:-1]), _split(made, 1, width))


def _split(view: View, axis: int, width: int) -> View:
    """Return a view of one row with the outer part of an axis as its rows."""
    shape, strides = list(view.shape), list(view.strides)
    if shape[axis] == 1:
        return view
    shape[0], strides[0] = shape[axis] // width, strides[axis] * width
    shape[axis] = width
    return replace(view, shape=tuple(shape), strides=tuple(strides))


def stored(views: tuple[View, ...]) -> Iterator[tuple[tuple[View, ...], Order]]:
    """Cut views of as many axes into three; the last of them may be stored in another order."""
    for row in in_threes(views, len(views) - 1):
        order = order_of(row[-1])
        turned = tuple(view.permuted((1, 0, 2)) for view in row)
        if order not in BY_ROWS and order_of(turned[-1]) in BY_ROWS:
            row, order = turned, order_of(turned[-1])  # noqa: PLW2901
        if order is None:
            yield from ((plane, AS_COMPUTED) for plane in planes(*row))
        else:
            permuted = row[-1].permuted(PERMUTATIONS[order.transpose])
            yield (*row[:-1], permuted), order


def order_of(result: View) -> Order | None:
    """Return in which order a result of three axes is stored; None if none has pixels."""
    steps = result.strides
    orders = [
        Order(transpose)
        for transpose, axes in PERMUTATIONS.items()
        if pixels(result.permuted(axes))
    ]
    falling = (
        order
        for order in orders
        if sorted(steps, reverse=True) == [steps[axis] for axis in PERMUTATIONS[order.transpose]]
    )
    return AS_COMPUTED if AS_COMPUTED in orders else next(falling, next(iter(orders), None))
