"""Compute the projection of a sequence in pieces, each when its steps need it."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.graph import DType, Graph, Operation, Value
from mizzen.ops.data_layout import Slice
from mizzen.ops.tensor import Conv2d
from mizzen.ops.type_conversion import Rescale
from mizzen.passes.pipeline import Pass
from mizzen.patterns import Is, Match, Pattern, Reject, Rule, Rules, Var, of, op

ROWS = 4
"""Steps of a piece. Fewer need less memory, and read the weights more often."""

LONG = 2 * ROWS
"""Shorter sequences stay as they are."""

ROW_AXIS = 1


CONVOLUTION = op(
    Conv2d,
    weight=Var("weights", Is("a kernel of 1x1", lambda value: value.shape[1:3] == (1, 1))),
    having={"stride": (1, 1), "pad": (0, 0, 0, 0)},
    once=True,
)
RESCALE = op(Rescale, CONVOLUTION, result=of(DType.INT8, DType.INT16))


def _is_long(match: Match) -> Reject | None:
    """The sequence has more rows than a few pieces are worth."""
    shape = match[RESCALE].result.shape
    if len(shape) != 4 or shape[ROW_AXIS] <= LONG:
        return Reject(
            f"rows must be more than {LONG}, of a shape like 1x{LONG + 1}x1x8, not {shape}"
        )
    return None


def _gives_rows(match: Match) -> Reject | None:
    """Every user takes a single row."""
    result = match[RESCALE].result
    if not result.uses:
        return Reject("somebody must take a row, and nobody does")
    for user in result.uses:
        if not _takes_a_row(user, result.shape):
            return Reject("every user must take one row, and this one does not", user)
    return None


def _takes_a_row(user: Operation, shape: Sequence[int]) -> bool:
    if not isinstance(user, Slice):
        return False
    wanted = tuple(1 if axis == ROW_AXIS else extent for axis, extent in enumerate(shape))
    return user.result.shape == wanted


def _split(graph: Graph, match: Match) -> None:
    rescale = match[RESCALE]
    pieces: dict[int, Value] = {}
    for user in tuple(rescale.result.uses):
        assert isinstance(user, Slice)
        starts = user.start.constant
        assert starts is not None
        row = int(starts[ROW_AXIS])
        first = row // ROWS * ROWS
        if first not in pieces:
            pieces[first] = _piece(graph, rescale, first)
        moved = [row - first if axis == ROW_AXIS else 0 for axis in range(len(starts))]
        place = graph.constant(moved, DType.SHAPE)
        graph.set_operand(user, Slice.input1.index, pieces[first])
        graph.set_operand(user, Slice.start.index, place)


def _piece(graph: Graph, rescale: Rescale, first: int) -> Value:
    """Compute some rows from the first on."""
    convolution = rescale.input.producer
    assert isinstance(convolution, Conv2d)
    source = convolution.input
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
    return graph.add_beside(model, kind, operands, value.type.with_shape(shape), attributes)


PATTERN = Pattern("a projection taken by rows", RESCALE, (_is_long, _gives_rows))
RULES = Rules([Rule(PATTERN, _split)])

SPLIT_PROJECTIONS = Pass("split-projections", RULES.rewrite)
"""Cut CONV2D with a kernel of 1x1 along its rows where only single rows of it are taken.

A recurrent layer takes one row in each step. Whole, the projection lies in memory until the
last step, and is the largest tensor there.
"""
