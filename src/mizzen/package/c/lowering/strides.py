"""Shapes as extents and strides, in elements; densely packed tensors, the last axis fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mizzen.package.c.lowering.context import Given, Shape, elements, ref


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a densely packed tensor."""
    strides: list[int] = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))


def broadcast_strides(shape: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
    """Return the strides with which a tensor is read as one of a larger shape."""
    missing = len(target) - len(shape)
    own = [0 if extent == 1 else stride for extent, stride in zip(shape, dense(shape), strict=True)]
    return (0,) * missing + tuple(own)


def broadcast_shape(*shapes: Shape) -> Shape:
    """Return the shape that some shapes broadcast to."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(
        next((extent for extent in axis if extent != 1), 1) for axis in zip(*padded, strict=True)
    )


@dataclass(frozen=True, slots=True)
class View:
    """Elements of a tensor: the first, and a stride for each axis of the shape."""

    shape: Shape
    strides: tuple[int, ...]
    first: int = 0


def whole(shape: Shape) -> View:
    """Return all of a tensor."""
    return View(shape, dense(shape))


def folded(shape: Sequence[int], *strides: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return extents and strides with axes of 1 left out, and with dense neighbours made one."""
    axes = [each for each in zip(shape, *strides, strict=True) if each[0] != 1]
    merged: list[tuple[int, ...]] = []
    for axis in axes:
        if merged and all(merged[-1][k] == axis[k] * axis[0] for k in range(1, len(strides) + 1)):
            merged[-1] = (merged[-1][0] * axis[0], *axis[1:])
        else:
            merged.append(axis)
    if not merged:
        merged.append((1, *[1] * len(strides)))
    return tuple(zip(*merged, strict=True))


def move(given: Given, source: int, output: int, taken: View, put: View) -> None:
    """Copy elements of one tensor to those of another; the views have one shape."""
    if elements(taken.shape) == 0:
        return
    shape, strides, targets = folded(taken.shape, taken.strides, put.strides)
    given.emit(
        "move",
        (ref(source), taken.first, put.first, shape, strides, targets),
        (output,),
    )


def copy(given: Given, source: int, output: int) -> None:
    """Copy a tensor to one with as many elements, whatever the shapes."""
    flat = whole((elements(given.row(source).shape),))
    move(given, source, output, flat, flat)


def fill(given: Given, output: int, value: float) -> None:
    """Set every element of a tensor."""
    tensor = given.row(output)
    held = given.lowering.constant([value], tensor.dtype)
    size = (elements(tensor.shape),)
    move(given, held, output, View(size, (0,)), whole(size))
