"""Extremes along axes on U85, which has a least too, and the place of the greatest.

Ref: registers of Ethos-U85, POOL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from math import prod

from mizzen.graph import DType, Operation, Value
from mizzen.ops.reduction import ReduceAll, ReduceAny, ReduceMax, ReduceMin, Reduction
from mizzen.ops.tensor import Argmax
from mizzen.targets.ethos_u.generator.lower.argmax import MOST_PLACES
from mizzen.targets.ethos_u.generator.lower.context import NO_ORDERS, Emitter, Node, Orders
from mizzen.targets.ethos_u.generator.lower.finish import NARROW_RANGE, is_alone, plain
from mizzen.targets.ethos_u.generator.lower.movement import lies
from mizzen.targets.ethos_u.generator.lower.planning import Site, input_zero, rule_u85
from mizzen.targets.ethos_u.generator.lower.reductions import Windows, halved
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.truths_u85 import stored_as
from mizzen.targets.ethos_u.generator.lower.views import MOST, View, pixels, rows
from mizzen.targets.ethos_u.generator.operations import (
    Activation,
    Kernel,
    Pooling,
    Scale,
    Shape,
)
from mizzen.targets.ethos_u.machine.commands_values import (
    ElementwiseMode,
    PoolingMode,
    PoolingModeU85,
    RoundMode,
)

INTEGERS = (DType.BOOL, DType.INT8, DType.INT16, DType.INT32)
HALVES = {PoolingMode.MAX: ElementwiseMode.MAX, PoolingModeU85.MIN: ElementwiseMode.MIN}
PLACE = Scale(1, 16)
"""Places are given in units of 1 / 65,536."""

FEWEST_BESIDE = 8
"""Results beside each other from which it is better that they are channels: else the array has work
for one channel of 16."""

POOLS: dict[type[Operation], PoolingMode | PoolingModeU85] = {
    ReduceAll: PoolingModeU85.MIN,
    ReduceAny: PoolingMode.MAX,
    ReduceMax: PoolingMode.MAX,
    ReduceMin: PoolingModeU85.MIN,
}


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """What is reduced, along neighbouring axes from `first` to one before `end`.

    shape  all in front of these axes, they, and all behind them
    """

    source: Value
    first: int
    end: int
    operations: tuple[Operation, ...]

    @property
    def shape(self) -> Shape:
        """All elements in front of the axes, along them, and behind them."""
        shape = self.source.shape
        parts = shape[: self.first], shape[self.first : self.end], shape[self.end :]
        return prod(parts[0]), prod(parts[1]), prod(parts[2])


def _reduced(operation: Reduction, outputs: Collection[Value]) -> Reduced:
    """Follow extremes of extremes back to what is reduced, as long as axes are neighbours."""
    found = Reduced(operation.input, operation.axis, operation.axis + 1, (operation,))
    while True:
        inner = found.source.producer
        if type(inner) is not type(operation) or not is_alone(found.source, tuple(outputs)):
            return found
        assert isinstance(inner, Reduction)
        if not found.first - 1 <= inner.axis <= found.end:
            return found
        first, end = min(found.first, inner.axis), max(found.end, inner.axis + 1)
        found = Reduced(inner.input, first, end, (*found.operations, inner))


@rule_u85(*POOLS)
def extreme(site: Site) -> Node:
    """REDUCE_MAX, REDUCE_MIN, REDUCE_ANY or REDUCE_ALL of integers and truths."""
    operation = site.operation
    assert isinstance(operation, Reduction)
    found, mode = _reduced(operation, site.outputs), POOLS[type(operation)]
    source, shape = found.source, found.shape
    need(source.dtype in INTEGERS, "it compares no integers")
    need(source.dtype is not DType.BOOL or not site.steps, "its truth is scaled")
    halves = max(shape) > MOST
    need(not halves or not site.steps, "its result is made in halves")
    finish = site.finish(scales=True) if site.steps else plain(stored_as(source.dtype))
    zero, scale = input_zero(site), finish.scale

    def write(emitter: Emitter, target: View) -> None:
        if halves:
            _in_halves(emitter, site, found, HALVES[mode], target)
            return
        for one, made, kernel in _windows(emitter, site, found, target):
            emitter.operations.append(
                Pooling(
                    site.origin,
                    mode,
                    emitter.map(one, zero),
                    emitter.map(made, finish.zero_point),
                    kernel,
                    scale,
                    finish.activation,
                    rounding=finish.rounding,
                )
            )

    return site.node((source,), write, found.operations, orders=_in_rows(found))


def _in_halves(
    emitter: Emitter, site: Site, found: Reduced, mode: ElementwiseMode, target: View
) -> None:
    """Compare halves of axes that are longer than windows and maps."""
    shape = found.shape
    view = emitter.read(found.source)
    seen = view.reshaped(shape) or emitter.copied(view, site.origin).reshaped(shape)
    made = target.reshaped((shape[0], 1, shape[2]))
    assert seen is not None
    assert made is not None
    halved(emitter, site, mode, seen, made, 1)


def _windows(emitter: Emitter, site: Site, found: Reduced, target: View) -> Iterator[Windows]:
    """Return windows of one row or one column, with what lies beside each other as channels."""
    shape = found.source.shape
    before, count, behind = shape[: found.first], found.shape[1], shape[found.end :]
    view = emitter.read(found.source)
    seen = view.reshaped((*before, count, *behind))
    if seen is None:
        seen = emitter.copied(view, site.origin).reshaped((*before, count, *behind))
    made = target.reshaped((*before, 1, *behind))
    assert seen is not None
    places = made or emitter.tensor("extremes", (*before, 1, *behind), emitter.dtype(target))
    for one, place in rows(*_with_depth(seen, places, found.first)):
        height, width = (one.shape[axis] // place.shape[axis] for axis in (0, 1))
        yield one, place, Kernel(height, width)
    if made is None:
        shaped = places.reshaped(target.shape)
        assert shaped is not None
        emitter.copy(shaped, target, site.origin)


def _with_depth(view: View, target: View, axis: int) -> tuple[View, View]:
    """Return both views with a depth that is not reduced last, and what is reduced before it.

    It is an axis along which elements lie beside each other, or a new one.
    """
    others = [place for place in range(len(view.shape)) if place != axis]
    depths = [
        place
        for place in others
        if view.shape[place] > 1 and view.strides[place] == 1 and target.strides[place] == 1
    ]
    if not depths:
        axes = [*others, axis]
        return _deeper(view.permuted(axes)), _deeper(target.permuted(axes))
    axes = [*(place for place in others if place != depths[0]), axis, depths[0]]
    return view.permuted(axes), target.permuted(axes)


def _deeper(view: View) -> View:
    return replace(view, shape=(*view.shape, 1), strides=(*view.strides, 1))


def _in_rows(found: Reduced) -> Orders:
    """Return the order of axes in which windows see channels, if what is reduced lies there."""
    shape, seen = found.source.shape, lies(found.source)
    others = [place for place in range(len(shape)) if place != found.first]
    longer = [place for place in others if shape[place] > 1]
    single = found.end - found.first == 1
    deep = seen is not None and seen.strides[found.first] != 1
    if deep or not single or not longer or shape[longer[-1]] < FEWEST_BESIDE:
        return NO_ORDERS
    beside = longer[-1]
    return {found.source: (*(place for place in others if place != beside), found.first, beside)}


@rule_u85(Argmax)
def place_of_greatest(site: Site) -> Node:
    """ARGMAX along any axis: places of the greatest of windows of one row."""
    operation = site.operation
    assert isinstance(operation, Argmax)
    source, axis = operation.input, operation.axis
    need(source.dtype in (DType.INT8, DType.INT16), "it compares no narrow integers")
    need(not site.steps, "its places are scaled")
    count = source.shape[axis]
    need(count <= MOST_PLACES, "it has too many places")
    shape = prod(source.shape[:axis]), count, prod(source.shape[axis + 1 :])
    need(max(shape) <= MOST, "it has too many rows")
    kept = shape[0], 1, shape[2]

    def write(emitter: Emitter, target: View) -> None:
        view, made = emitter.read(source), target.reshaped(kept)
        seen = view.reshaped(shape)
        if seen is None or not pixels(seen):
            seen = emitter.copied(view, site.origin).reshaped(shape)
        assert seen is not None
        places = made or emitter.tensor("places", kept, emitter.dtype(target))
        emitter.operations.append(
            Pooling(
                site.origin,
                PoolingModeU85.ARGMAX_X,
                emitter.map(seen),
                emitter.map(places),
                Kernel(1, count),
                PLACE,
                Activation(*NARROW_RANGE),
                rounding=RoundMode.NATURAL,
            )
        )
        if made is None:
            shaped = places.reshaped(target.shape)
            assert shaped is not None
            emitter.copy(shaped, target, site.origin)

    return site.node((source,), write)
