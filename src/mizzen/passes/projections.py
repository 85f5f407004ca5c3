"""Compute the projection of a sequence in pieces, each when its steps need it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mizzen.graph import DType, Graph, Operation, Value

ROWS = 4
"""Steps of a piece. Fewer need less memory, and read the weights more often."""

LONG = 2 * ROWS
"""Shorter sequences stay as they are."""

ROW_AXIS = 1


@dataclass(frozen=True, slots=True)
class SplitProjections:
    """Cut CONV2D with a kernel of 1x1 along its rows where only single rows of it are taken.

    A recurrent layer takes one row in each step. Whole, the projection lies in memory until the
    last step, and is the largest tensor there.
    """

    name: ClassVar[str] = "split-projections"

    def run(self, graph: Graph) -> bool:
        """Rewrite the graph; True if anything changed."""
        found = [row for row in graph if _is_projection(row)]
        for rescale in found:
            _split(graph, rescale)
        graph.erase_dead()
        return bool(found)


def _is_projection(rescale: Operation) -> bool:
    if rescale.kind != "RESCALE" or rescale.result.dtype not in (DType.INT8, DType.INT16):
        return False
    convolution = rescale.operands[0].producer
    shape = rescale.result.shape
    return (
        convolution is not None
        and convolution.kind == "CONV2D"
        and len(rescale.operands[0].uses) == 1
        and convolution.operands[1].shape[1:3] == (1, 1)
        and tuple(convolution["stride"]) == (1, 1)
        and not any(convolution["pad"])
        and len(shape) == 4
        and shape[ROW_AXIS] > LONG
        and bool(rescale.result.uses)
        and all(_takes_a_row(user, shape) for user in rescale.result.uses)
    )


def _takes_a_row(user: Operation, shape: Sequence[int]) -> bool:
    if user.kind != "SLICE":
        return False
    wanted = tuple(1 if axis == ROW_AXIS else extent for axis, extent in enumerate(shape))
    return user.result.shape == wanted


def _split(graph: Graph, rescale: Operation) -> None:
    pieces: dict[int, Value] = {}
    for user in tuple(rescale.result.uses):
        starts = user.operands[1].constant
        assert starts is not None
        row = int(starts[ROW_AXIS])
        first = row // ROWS * ROWS
        if first not in pieces:
            pieces[first] = _piece(graph, rescale, first)
        moved = [row - first if axis == ROW_AXIS else 0 for axis in range(len(starts))]
        place = graph.constant(moved, DType.SHAPE)
        graph.set_operand(user, 0, pieces[first])
        graph.set_operand(user, 1, place)


def _piece(graph: Graph, rescale: Operation, first: int) -> Value:
    """Compute some rows from the first on."""
    convolution = rescale.operands[0].producer
    assert convolution is not None
    source = convolution.operands[0]
    count = min(ROWS, source.shape[ROW_AXIS] - first)
    starts = [first if axis == ROW_AXIS else 0 for axis in range(4)]
    sizes = [count if axis == ROW_AXIS else extent for axis, extent in enumerate(source.shape)]
    places = [graph.constant(row, DType.SHAPE) for row in (starts, sizes)]
    value = _like(graph, rescale, "SLICE", [source, *places], source, count)
    operands = [value, *convolution.operands[1:]]
    value = _like(graph, convolution, "CONV2D", operands, convolution.result, count)
    operands = [value, *rescale.operands[1:]]
    return _like(graph, rescale, "RESCALE", operands, rescale.result, count)


def _like(
    graph: Graph, model: Operation, kind: str, operands: Sequence[Value], value: Value, rows: int
) -> Value:
    """Add an operation whose result is like a value, with fewer rows."""
    shape = tuple(rows if axis == ROW_AXIS else size for axis, size in enumerate(value.shape))
    attributes = dict(model.attributes) if model.kind == kind else {}
    return graph.add(
        kind,
        operands,
        [value.type.with_shape(shape)],
        attributes,
        origin=model.origin,
        group=model.group,
    ).result
