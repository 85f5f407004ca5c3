"""Transpositions that the compiler refuses for Ethos-U55 and U65, in parts that it takes.

It addresses an axis with 16 bits, and makes one axis of axes that stay together where a tensor has
more than three. Parts along an axis that is too long are transposed by themselves, and joined.
Where that axis stays in front, each of its elements would be an operation: every row of the
matrices behind it becomes a column instead, in all of them at once.

Ref: Vela 5.2.0, found by what it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mizzen.graph import DType, Graph, Operation, Value
from mizzen.ops.builder import reshaped
from mizzen.ops.data_layout import Transpose

AXIS_MAXIMUM = 1 << 16
"""Elements of an axis."""

AXES = 3
"""Axes of a tensor that are transposed as they are."""

MATRICES = (0, 2, 1)


def cut_transpositions(graph: Graph) -> None:
    """Write transpositions of axes that are too long as others, slices and joints."""
    for whole in tuple(graph):
        if isinstance(whole, Transpose) and _is_refused(whole.input1.shape, whole.perms):
            groups = _together(whole.input1.shape, whole.perms)
            axes = sorted(groups)
            shape = tuple(prod(whole.input1.shape[axis] for axis in group) for group in axes)
            value = reshaped(graph, whole, whole.input1, shape)
            value = _transposed(graph, whole, value, tuple(axes.index(group) for group in groups))
            graph.supersede(whole.result, reshaped(graph, whole, value, whole.result.shape))
            graph.erase(whole)


def _is_refused(shape: Sequence[int], perms: Sequence[int]) -> bool:
    groups = _together(shape, perms)
    if len(groups) < 2:
        return False
    rank = len(shape) - min(min(group) for group in groups)
    extents = shape if rank <= AXES else [prod(shape[axis] for axis in group) for group in groups]
    return max(extents) > AXIS_MAXIMUM


def _together(shape: Sequence[int], perms: Sequence[int]) -> list[list[int]]:
    """Return the axes of several elements as the result has them, those together that stay so."""
    several = [axis for axis, extent in enumerate(shape) if extent > 1]
    groups: list[list[int]] = []
    for axis in (axis for axis in perms if axis in several):
        if groups and several.index(axis) == several.index(groups[-1][-1]) + 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _transposed(graph: Graph, place: Operation, value: Value, perms: tuple[int, ...]) -> Value:
    """Transpose a tensor in parts, which are part of what `place` was."""
    shape = value.shape
    axis = shape.index(max(shape))
    if shape[axis] <= AXIS_MAXIMUM:
        type = value.type.with_shape(tuple(shape[each] for each in perms))
        return graph.add_beside(place, "TRANSPOSE", [value], type, {"perms": perms})
    if axis == 0 and perms == MATRICES:
        return _turned(graph, place, value)
    count = -(-shape[axis] // AXIS_MAXIMUM)
    length = -(-shape[axis] // count)
    parts = [
        _transposed(graph, place, _part(graph, place, value, axis, start, length), perms)
        for start in range(0, shape[axis], length)
    ]
    return _joined(graph, place, parts, perms.index(axis))


def _turned(graph: Graph, place: Operation, value: Value) -> Value:
    """Transpose many matrices, by their rows or columns, of which there are fewer."""
    many, rows, columns = value.shape
    axis, shape = (1, (many, columns, 1)) if rows <= columns else (2, (many, 1, rows))
    parts = [_part(graph, place, value, axis, at, 1) for at in range(min(rows, columns))]
    return _joined(graph, place, [reshaped(graph, place, row, shape) for row in parts], 3 - axis)


def _part(
    graph: Graph, place: Operation, value: Value, axis: int, start: int, length: int
) -> Value:
    sizes, starts = list(value.shape), [0] * value.type.rank
    sizes[axis], starts[axis] = min(length, value.shape[axis] - start), start
    operands = [value, *(graph.constant(row, DType.SHAPE) for row in (starts, sizes))]
    return graph.add_beside(place, "SLICE", operands, value.type.with_shape(tuple(sizes)))


def _joined(graph: Graph, place: Operation, parts: list[Value], axis: int) -> Value:
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    type = parts[0].type.with_shape(tuple(shape))
    return graph.add_beside(place, "CONCAT", parts, type, {"axis": axis})
