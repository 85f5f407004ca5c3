"""Values that lie in memory, as the operations of a tile see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import cast

from mizzen.graph import Operation, Value
from mizzen.mesh.export.c_text import count
from mizzen.mesh.network.boxes import Box, shape_of
from mizzen.ops.control_flow import Identity
from mizzen.ops.data_layout import Reshape, Slice, Transpose

Place = tuple[str, ...]
"""Indices of an element as C has them: unsigned, ``0u`` along axes of extent 1."""


@dataclass(frozen=True, slots=True)
class View:
    """A value in memory: the pointer `base`, and for each axis the bytes from one to the next."""

    base: str
    item_bytes: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def pointer(self) -> str:
        """The address of the first element."""
        return f"{self.base} + {count(self.offset)}" if self.offset else self.base

    def address(self, place: Place) -> str:
        """Return the address of an element."""
        terms = [
            f"{index} * {count(stride)}"
            for index, stride in zip(place, self.strides, strict=True)
            if index != "0u"
        ]
        return " + ".join([self.pointer, *terms])

    @property
    def is_dense(self) -> bool:
        """Whether its elements lie one after the other."""
        return all(
            stride == dense or extent == 1
            for extent, stride, dense in zip(
                self.extents,
                self.strides,
                dense_strides(self.extents, self.item_bytes),
                strict=True,
            )
        )


def dense_strides(extents: Sequence[int], item_bytes: int) -> tuple[int, ...]:
    """Return the bytes from one to the next of each axis, the last the fastest."""
    behind = list(accumulate(reversed(extents), lambda one, other: one * other, initial=item_bytes))
    return tuple(reversed(behind[:-1]))


def dense(base: str, extents: Sequence[int], item_bytes: int) -> View:
    """Return a value whose elements lie one after the other."""
    return View(base, item_bytes, tuple(extents), dense_strides(extents, item_bytes))


def part(whole: View, outer: Box, box: Box) -> View:
    """Return a box of a region that has the box `outer`."""
    offset = sum(
        (start - first) * stride
        for (start, _), (first, _), stride in zip(box, outer, whole.strides, strict=True)
    )
    return replace(whole, offset=whole.offset + offset, extents=shape_of(box))


def view_of(value: Value, sources: dict[Value, View]) -> View | None:
    """Return where a value lies, if it is a part of what lies in memory, or that in other order."""
    view = sources.get(value)
    if view is not None or value.producer is None or not value.producer.operands:
        return view
    before = view_of(value.producer.operand, sources)
    return None if before is None else _rearranged(value.producer, before)


def _rearranged(operation: Operation, taken: View) -> View | None:
    shape = operation.results[0].shape
    match operation:
        case Identity():
            return taken
        case Slice():
            offset = sum(
                first * stride
                for first, stride in zip(_known(operation.start), taken.strides, strict=True)
            )
            return replace(taken, offset=taken.offset + offset, extents=shape)
        case Reshape() if taken.is_dense:
            return replace(taken, extents=shape, strides=dense_strides(shape, taken.item_bytes))
        case Transpose():
            strides = tuple(taken.strides[axis] for axis in operation.perms)
            return replace(taken, extents=shape, strides=strides)
        case _:
            return None


def _known(value: Value) -> list[int]:
    assert value.constant is not None, "the builder refuses shapes that are not constant"
    return cast("list[int]", value.constant.tolist())
