"""Sums and extremes along axes: windows as large as what is reduced.

A mean or sum of narrow integers is an average pool whose scale is the graph's: the machine adds up
without zero points, and scales, in one pass. Along the last axis it is a sum over channels. A
greatest is a maximum pool; a least, and what is of 32 bits, is made in halves.

Ref: TOSA 1.0, 2.9; registers of Ethos-U55, POOL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from mizzen.graph import DType, Operation, Value
from mizzen.ops.reduction import ReduceMax, ReduceMin, ReduceSum, Reduction
from mizzen.targets.ethos_u.generator.lower.carrying import INT32, product
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node
from mizzen.targets.ethos_u.generator.lower.elementwise import (
    LEFT_SHIFT,
    Operand,
    operand_of,
    whole,
)
from mizzen.targets.ethos_u.generator.lower.finish import Finish, is_alone, plain
from mizzen.targets.ethos_u.generator.lower.planning import Site, rule
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import MOST, View, planes, rows
from mizzen.targets.ethos_u.generator.lower.windows import LARGEST_POOL, TALLEST_POOL
from mizzen.targets.ethos_u.generator.lower.words import Words, summable
from mizzen.targets.ethos_u.generator.operations import (
    ChannelScales,
    Convolution,
    Elementwise,
    Kernel,
    Map,
    Pooling,
    Scale,
)
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode, PoolingMode

Windows = tuple[View, View, Kernel]
"""What a window goes over, what it gives, and the window."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Rows, and elements, of a window at most."""

    tallest: int
    largest: int


POOLS = Limits(TALLEST_POOL, LARGEST_POOL)
ONES = Limits(64, 4096)
"""Of kernels of ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Summed:
    """What is summed up, along which axes."""

    operand: Operand
    axes: tuple[int, ...]
    operations: tuple[Operation, ...]


def _summed(operation: Reduction, outputs: Collection[Value]) -> Summed:
    """Follow sums of sums back to what is summed."""
    axes, value = [operation.axis], operation.input
    rows: list[Operation] = [operation]
    while isinstance(value.producer, ReduceSum) and is_alone(value, tuple(outputs)):
        inner = value.producer
        axes.append(inner.axis)
        rows.append(inner)
        value = inner.input
    found = operand_of(value)
    if found.dtype not in LEFT_SHIFT or found.power != 0 or found.values is not None:
        found = whole(value)
    return Summed(found, tuple(axes), tuple(rows))


@rule(ReduceSum)
def total(site: Site) -> Node:
    """REDUCE_SUM along one or more axes, and the scale behind it."""
    operation = site.operation
    assert isinstance(operation, ReduceSum)
    found, finish = _summed(operation, site.outputs), site.finish(scales=True)
    source = found.operand
    need(len(finish.multipliers) == 1, "its channels have scales of their own")
    shape, reduced = _joined(source.shape, found.axes)
    last = len(shape) - 1
    limits = POOLS if finish.dtype in LEFT_SHIFT else ONES
    narrow = source.dtype in LEFT_SHIFT and last not in reduced
    pooled = narrow and window(shape, reduced, limits) is not None

    def write(emitter: Emitter, target: View) -> None:
        view = _read(emitter, source, site, shape)
        made = tuple(1 if axis in reduced else extent for axis, extent in enumerate(shape))
        target = target.reshaped(made) or target
        if pooled:
            _over_windows(emitter, site, finish, source.zero, view, target, reduced)
        else:
            over_channels(emitter, site, finish, source.zero, view, target, reduced)

    return site.node((source.source,), write, found.operations)


def _joined(shape: Sequence[int], axes: Sequence[int]) -> tuple[tuple[int, ...], list[int]]:
    """Return a shape, and the axes of it to reduce, with those beside each other as one.

    Two are left as they are: they are rows and columns of a window.
    """
    reduced = sorted(axis for axis in axes if shape[axis] > 1)
    last = len(shape) - 1
    extents = list(shape)
    while len(reduced) > 2 and reduced[-1] != last:
        pairs = [axis for axis in reduced if axis + 1 in reduced]
        if not pairs:
            break
        first = pairs[0]
        extents[first : first + 2] = [extents[first] * extents[first + 1]]
        reduced = [axis if axis <= first else axis - 1 for axis in reduced if axis != first + 1]
        last -= 1
    return tuple(extents), reduced


def _read(emitter: Emitter, source: Operand, site: Site, shape: tuple[int, ...]) -> View:
    view = emitter.read(source.source)
    found = view.reshaped(shape)
    if found is None:
        found = emitter.copied(view, site.origin).reshaped(shape)
    assert found is not None
    return found


def _over_windows(
    emitter: Emitter,
    site: Site,
    finish: Finish,
    zero: int,
    view: View,
    target: View,
    reduced: Sequence[int],
) -> None:
    limits = POOLS if finish.dtype in LEFT_SHIFT else ONES
    for one, made, kernel in windows_of(emitter, site, view, target, reduced, limits):
        ifm, ofm = emitter.map(one, zero), emitter.map(made, finish.zero_point)
        if finish.dtype in LEFT_SHIFT:
            emitter.operations.append(_average(site, ifm, ofm, kernel, finish))
        else:
            emitter.operations.append(_ones(site, ifm, ofm, kernel, finish))


def _average(site: Site, ifm: Map, ofm: Map, kernel: Kernel, finish: Finish) -> Pooling:
    return Pooling(
        site.origin,
        PoolingMode.AVERAGE,
        ifm,
        ofm,
        kernel,
        finish.scale,
        finish.activation,
        rounding=finish.rounding,
    )


def _ones(site: Site, ifm: Map, ofm: Map, kernel: Kernel, finish: Finish) -> Convolution:
    """Return a depthwise convolution with weights of one: pools give no 32 bits."""
    channels = ifm.shape[2]
    scale = finish.scale
    return Convolution(
        site.origin,
        ifm,
        ofm,
        kernel,
        np.ones((channels, kernel.height, kernel.width, 1), np.int16),
        ChannelScales(
            np.zeros(channels, np.int64),
            np.full(channels, scale.multiplier, np.int64),
            np.full(channels, scale.shift, np.int64),
        ),
        finish.activation,
        depthwise=True,
        rounding=finish.rounding,
    )


def windows_of(
    emitter: Emitter,
    site: Site,
    view: View,
    target: View,
    reduced: Sequence[int],
    limits: Limits = POOLS,
) -> Iterator[Windows]:
    """Return windows that reduce axes other than the last one; all of an axis is one window."""
    last = len(view.shape) - 1
    kept = [axis for axis in range(last) if axis not in reduced]
    beside = kept[-1:] if len(reduced) < 2 else []
    loops = [axis for axis in kept if axis not in beside]
    found = window(view.shape, reduced, limits)
    assert found is not None
    kernel, turned = found
    inner = [*reduced, *beside]
    inner = [*(reversed(inner) if turned else inner), last]
    if view.strides[last] != 1 and view.shape[last] > 1:
        view = emitter.copied(view, site.origin)
    for place in np.ndindex(*(view.shape[axis] for axis in loops)):
        one, made = view, target
        for axis, index in zip(loops, place, strict=True):
            one, made = one.part(axis, index, 1), made.part(axis, index, 1)
        yield _three(one, inner), _three(made, inner), kernel


def window(
    shape: Sequence[int], reduced: Sequence[int], limits: Limits = POOLS
) -> tuple[Kernel, bool] | None:
    """Return the windows that reduce axes other than the last one; None where there are none.

    Also whether their rows are the last of the axes: what is too tall is wide.
    """
    if len(reduced) > 2:
        return None
    sizes = [shape[axis] for axis in reduced]
    kept = [axis for axis in range(len(shape) - 1) if axis not in reduced]
    if len(sizes) < 2:
        beside = (1,) * (2 - len(sizes))
        sizes = [*sizes, *beside] if kept or not sizes else [*beside, *sizes]
    height, width = sizes
    turned = height > limits.tallest >= width
    if turned:
        height, width = width, height
    fits = height <= limits.tallest and height * width <= limits.largest
    return (Kernel(height, width), turned) if fits else None


def _three(view: View, axes: Sequence[int]) -> View:
    shape = tuple(view.shape[axis] for axis in axes)
    strides = tuple(view.strides[axis] for axis in axes)
    missing = 3 - len(shape)
    if missing > 0:
        shape, strides = (*(1,) * missing, *shape), (*(view.elements,) * missing, *strides)
    return View(view.tensor, view.offset, shape, strides)


def over_channels(
    emitter: Emitter,
    site: Site,
    finish: Finish,
    zero: int,
    view: View,
    target: View,
    reduced: Sequence[int],
) -> None:
    """Add sums over channels: what is summed becomes the last axis, by a copy if need be."""
    kept = [axis for axis in range(len(view.shape)) if axis not in reduced]
    axes = (*kept, *reduced)
    seen = view.permuted(axes)
    flat = (*(view.shape[axis] for axis in kept), prod(view.shape[axis] for axis in reduced))
    found = seen.reshaped(flat)
    if found is None or (found.strides[-1] != 1 and flat[-1] > 1):
        found = emitter.copied(seen, site.origin).reshaped(flat)
    assert found is not None
    made = target.permuted(axes).reshaped((*flat[:-1], 1))
    assert made is not None
    if flat[-1] <= MOST:
        _summed_up(emitter, site, finish, zero, found, made)
        return
    _in_parts(emitter, site, finish, zero, found, made)


def _in_parts(
    emitter: Emitter, site: Site, finish: Finish, zero: int, view: View, target: View
) -> None:
    """Add sums over more channels than an operation has: of parts, in 32 bits, and their sum."""
    axis, words = len(view.shape) - 1, Words(emitter, site.origin)
    plainly, total = plain(DType.INT32), None
    for start in range(0, view.shape[axis], MOST):
        seen = view.part(axis, start, min(MOST, view.shape[axis] - start))
        made = emitter.tensor("part", target.shape, INT32)
        _summed_up(emitter, site, plainly, zero, seen, made)
        total = made if total is None else words(ElementwiseMode.ADD, total, made)
    assert total is not None
    product(emitter, total, target, finish, site.origin)


def _summed_up(
    emitter: Emitter, site: Site, finish: Finish, zero: int, view: View, target: View
) -> None:
    """Add sums over the last axis."""
    view, zero = summable(emitter, site.origin, view, zero)
    for one, place in rows(view, target):
        emitter.operations.append(
            Pooling(
                site.origin,
                PoolingMode.REDUCE_SUM,
                emitter.map(one, zero),
                emitter.map(place, finish.zero_point),
                Kernel(),
                finish.scale,
                finish.activation,
                rounding=finish.rounding,
            )
        )


@rule(ReduceMax, ReduceMin)
def extreme(site: Site) -> Node:
    """REDUCE_MAX or REDUCE_MIN."""
    operation = site.operation
    assert isinstance(operation, ReduceMax | ReduceMin)
    source, axis = operation.input, operation.axis
    narrow = source.dtype in LEFT_SHIFT
    pooled = narrow and isinstance(operation, ReduceMax)
    need(pooled or not site.steps, "its result is made in halves")
    finish = site.finish(scales=False)
    if pooled:
        last = axis == len(source.shape) - 1
        found = window((*source.shape, 1) if last else source.shape, [axis])
        need(found is not None, "its window is too large")
    mode = ElementwiseMode.MAX if isinstance(operation, ReduceMax) else ElementwiseMode.MIN

    def write(emitter: Emitter, target: View) -> None:
        """Append the operations that write the result into `target`."""
        view = emitter.read(source)
        if not pooled:
            halved(emitter, site, mode, view, target, axis)
            return
        if axis == len(view.shape) - 1:
            view, target = _deeper(view), _deeper(target)
        for one, made, kernel in windows_of(emitter, site, view, target, [axis]):
            emitter.operations.append(
                Pooling(
                    site.origin,
                    PoolingMode.MAX,
                    emitter.map(one),
                    emitter.map(made),
                    kernel,
                    Scale(1, 0),
                    finish.activation,
                )
            )

    return site.node((source,), write)


def _deeper(view: View) -> View:
    return replace(view, shape=(*view.shape, 1), strides=(*view.strides, 1))


def halved(
    emitter: Emitter, site: Site, mode: ElementwiseMode, view: View, target: View, axis: int
) -> None:
    """Compare one half with the other until one element is left."""
    count = view.shape[axis]
    if count == 1:
        emitter.copy(view, target, site.origin)
    activation = plain(_dtype(emitter, view)).activation
    while count > 1:
        half = (count + 1) // 2
        shape = tuple(half if place == axis else size for place, size in enumerate(view.shape))
        made = target if half == 1 else emitter.tensor("halves", shape, emitter.dtype(view))
        pairs = count - half
        parts = view.part(axis, 0, pairs), view.part(axis, half, pairs), made.part(axis, 0, pairs)
        for one, other, place in planes(*parts):
            emitter.operations.append(
                Elementwise(
                    site.origin,
                    mode,
                    emitter.map(one),
                    emitter.map(other),
                    emitter.map(place),
                    activation,
                )
            )
        if pairs < half:
            emitter.copy(view.part(axis, pairs, 1), made.part(axis, pairs, 1), site.origin)
        view, count = made, half


def _dtype(emitter: Emitter, view: View) -> DType:
    return {1: DType.INT8, 2: DType.INT16, 4: DType.INT32}[emitter.dtype(view).itemsize]
