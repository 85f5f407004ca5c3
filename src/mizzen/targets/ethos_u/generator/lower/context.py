"""What is known while a graph is lowered: which node gives each value, and where values lie.

Values are asked for from the outputs back, so that only what is needed is computed, and an
operation can be a part of the one behind it. A node says which values it reads and how it writes
its own. Where a value lies is decided from the outputs back too: who joins values, pads one, or
gives it another shape, wishes it at a place inside its own result, and it is written there at once
if that can be. Then nodes write their operations in the graph's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import Origin
from mizzen.graph import DType, Operation, Value
from mizzen.targets.ethos_u.generator.lower.views import Ints, View, dense, planes, upright
from mizzen.targets.ethos_u.generator.operations import BRICK, Box, Bytes, Map, Role, Shape, Tensor
from mizzen.targets.ethos_u.generator.operations import Operation as NpuOperation
from mizzen.targets.ethos_u.machine.commands_values import Arch, Layout

Wishes = Iterable[tuple[Value, View | None]]
Orders = Mapping[Value, Ints]
NO_ORDERS: Orders = {}


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """What gives one value.

    reads       the values that it reads
    emit        writes its operations; None if the value is only a view of the first one read
    view        how it sees the first value that it reads, if that is all that it does; gives None
                where a view cannot say it
    wishes      where the values that it reads could be written to for its result to be in place
    operations  those of the graph that it does
    orders      axes of values that it reads, outermost first, in the order in which it reads them
    """

    value: Value
    reads: tuple[Value, ...]
    operations: tuple[Operation, ...]
    emit: Callable[[Emitter], None]
    view: Callable[[View], View | None] | None = None
    wishes: Callable[[View], Wishes] | None = None
    orders: Orders = field(default_factory=dict[Value, Ints])


@dataclass(slots=True, eq=False)
class _Row:
    """A tensor that is being made."""

    name: str
    shape: Shape
    dtype: np.dtype[Any]
    role: Role = Role.SCRATCH
    layout: Layout | None = None
    data: npt.NDArray[np.uint8] | None = None


def three(shape: Sequence[int]) -> Shape:
    """Return a shape of any rank as height, width, depth; all but two axes are rows."""
    padded = (1, 1, 1, *shape)
    return prod(padded[:-2]), padded[-2], padded[-1]


def type_of(dtype: DType) -> np.dtype[Any]:
    """Return the type of a tensor that holds a value; sums of 48 bits are never stored."""
    return np.dtype(np.int8) if dtype is DType.BOOL else dtype.numpy


@dataclass(slots=True, eq=False)
class Emitter:
    """The sequence that is being made, and where values lie in it."""

    tensors: list[_Row] = field(default_factory=list[_Row])
    operations: list[NpuOperation] = field(default_factory=list[NpuOperation])
    views: dict[Value, View] = field(default_factory=dict[Value, View])
    places: dict[Value, View] = field(default_factory=dict[Value, View])
    copier: Callable[[Emitter, View, View, Origin], None] | None = None
    has_run: View | None = None
    arch: Arch = Arch.U55
    _constants: dict[tuple[bytes, Any], int] = field(default_factory=dict[tuple[bytes, Any], int])
    _copies: dict[View, View] = field(default_factory=dict[View, View])

    def tensor(
        self, name: str, shape: Sequence[int], dtype: np.dtype[Any], role: Role = Role.SCRATCH
    ) -> View:
        """Add a tensor and return it as a view in `shape`."""
        layout = None if role is Role.SCRATCH else Layout.NHWC
        self.tensors.append(_Row(name, three(shape), dtype, role, layout))
        return dense(len(self.tensors) - 1, shape)

    def constant(self, values: npt.NDArray[Any], name: str = "") -> View:
        """Return a tensor of numbers; equal ones are one tensor."""
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        key = data.tobytes(), (values.dtype.str, three(values.shape))
        if key not in self._constants:
            row = _Row(name, three(values.shape), values.dtype, Role.CONSTANT, Layout.NHWC, data)
            self.tensors.append(row)
            self._constants[key] = len(self.tensors) - 1
        return dense(self._constants[key], values.shape)

    def read(self, value: Value) -> View:
        """Return where a value lies."""
        found = self.views.get(value)
        if found is None:
            array = value.constant
            assert array is not None, value
            found = self.views[value] = self.constant(array.astype(type_of(value.dtype)))
        return found

    def target(self, value: Value) -> View:
        """Return where a value is to be written."""
        place = self.places.get(value)
        if place is None:
            name = value.name or (value.producer.kind.lower() if value.producer else "")
            place = self.tensor(name, value.shape, type_of(value.dtype))
        self.views[value] = place
        return place

    def ordered(self, value: Value, axes: Ints) -> View:
        """Add a tensor for a value in which its axes lie in an order, outermost first."""
        shape = [value.shape[axis] for axis in axes]
        made = self.tensor(value.name, shape, type_of(value.dtype))
        return made.permuted([axes.index(axis) for axis in range(len(axes))])

    def scratch(
        self, like: View, name: str = "scratch", dtype: np.dtype[Any] | None = None
    ) -> View:
        """Add a tensor of a view's shape."""
        return self.tensor(name, like.shape, dtype or self.dtype(like))

    def shape(self, view: View) -> Shape:
        """Return the shape of a view's tensor."""
        return self.tensors[view.tensor].shape

    def pitch(self, view: View) -> int:
        """Return the elements from one row of a view's tensor to the next."""
        return self.tensors[view.tensor].shape[1] * self.tensors[view.tensor].shape[2]

    def dtype(self, view: View) -> np.dtype[Any]:
        """Return the type of a view's elements."""
        return self.tensors[view.tensor].dtype

    def copied(self, view: View, origin: Origin) -> View:
        """Return a copy of a view whose elements follow each other; one for all that read it."""
        known = self._copies.get(view)
        if known is not None:
            return known
        made = self.scratch(view, "copy")
        self.copy(view, made, origin)
        if self.tensors[view.tensor].role is not Role.STATE:  # which changes
            self._copies[view] = made
        return made

    def copy(self, source: View, destination: View, origin: Origin) -> None:
        """Add what copies the elements of a view to another of its shape."""
        assert self.copier is not None
        self.copier(self, source, destination, origin)

    def map(self, view: View, zero_point: int = 0) -> Map:
        """Return a view of three axes as a map: a box of its tensor, or bytes of it."""
        row = self.tensors[view.tensor]
        box = _box(view, row.shape)
        if box is not None:
            if box.start[2] % BRICK:
                row.layout = Layout.NHWC
            return Map(box, row.dtype, zero_point)
        assert view.shape[2] == 1 or view.strides[2] == 1, view
        row.layout = Layout.NHWC
        size = row.dtype.itemsize
        strides = view.strides[0] * size, view.strides[1] * size, size
        return Map(
            Bytes(view.tensor, _shape(view), view.offset * size, strides), row.dtype, zero_point
        )

    def low(self, view: View, dtype: np.dtype[Any]) -> Map:
        """Return the low bytes of a view of elements [H, W, 1] as a map of a narrower type."""
        assert view.shape[2] == 1, view
        row = self.tensors[view.tensor]
        row.layout = Layout.NHWC
        size = row.dtype.itemsize
        strides = view.strides[0] * size, view.strides[1] * size, dtype.itemsize
        return Map(Bytes(view.tensor, _shape(view), view.offset * size, strides), dtype)

    def finished(self) -> tuple[Tensor, ...]:
        """Return the tensors."""
        return tuple(
            Tensor(row.name, row.shape, row.dtype, row.role, row.layout, row.data)
            for row in self.tensors
        )


def _shape(view: View) -> Shape:
    height, width, depth = view.shape
    return height, width, depth


def _box(view: View, whole: Shape) -> Box | None:
    """Return a view of three axes as a part of its tensor; None where it is not one."""
    height, width, depth = whole
    if view.offset < 0:
        return None
    start = view.offset // (width * depth), view.offset // depth % width, view.offset % depth
    units = width * depth, depth
    steps: list[int] = []
    for axis in (0, 1):
        if view.shape[axis] == 1:
            steps.append(1)
            continue
        if view.strides[axis] <= 0 or view.strides[axis] % units[axis]:
            return None
        steps.append(view.strides[axis] // units[axis])
    if view.shape[2] > 1 and view.strides[2] != 1:
        return None
    ends = [start[axis] + (view.shape[axis] - 1) * steps[axis] for axis in (0, 1)]
    if ends[0] >= height or ends[1] >= width or start[2] + view.shape[2] > depth:
        return None
    return Box(view.tensor, _shape(view), start, (steps[0], steps[1]))


def images(view: View) -> Iterator[View]:
    """Return the images [H, W, C] of a view [N, H, W, C]."""
    for index in range(view.shape[0]):
        part = view.part(0, index, 1)
        yield View(part.tensor, part.offset, part.shape[1:], part.strides[1:])


def each(emitter: Emitter, *views: View) -> Iterator[tuple[Map, ...]]:
    """Return views of as many axes as maps that belong together."""
    if emitter.arch is Arch.U85:
        views = upright(views[0], views)
    for row in planes(*views):
        yield tuple(emitter.map(view) for view in row)


def spread(shape: Ints, onto: Ints, view: View) -> View:
    """Return a view with axes of one element in front, as many axes as `onto` has."""
    missing = len(onto) - len(shape)
    found = view.reshaped((*(1,) * missing, *shape))
    assert found is not None
    return found
