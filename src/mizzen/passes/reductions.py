"""Find greatest numbers along rows, where an NPU finds many at once."""

from __future__ import annotations

from math import prod

from mizzen.graph import Graph
from mizzen.ops.builder import reshaped
from mizzen.ops.reduction import ReduceMax
from mizzen.passes.pipeline import Pass
from mizzen.patterns import Is, Match, Pattern, Reject, Rule, Rules, Var, op

LEAST_ROWS = 8
"""Rows from which on turning them costs less than it saves."""


SOURCE = Var("source", Is("of integers", lambda value: value.dtype.is_integer))
MAXIMUM = op(ReduceMax, SOURCE)


def _rows(shape: tuple[int, ...]) -> int:
    return next((size for size in reversed(shape[:-1]) if size > 1), 1)


def _along_rows(match: Match) -> Reject | None:
    """The axis is the last one, and rows are enough to be worth turning."""
    shape, axis = match[SOURCE].shape, match[MAXIMUM].axis
    last = len(shape) - 1
    if axis != last or last == 0:
        return Reject(f"axis must be the last of several, and is {axis} of {len(shape)}")
    if shape[last] == 1:
        return Reject("rows must have more than one element")
    if _rows(shape) < LEAST_ROWS:
        return Reject(f"rows must be at least {LEAST_ROWS}, and are {_rows(shape)}")
    return None


def _turn(graph: Graph, match: Match) -> None:
    operation, value = match[MAXIMUM], match[SOURCE]
    result = operation.result
    rows, width = _rows(value.shape), value.shape[-1]
    batch = prod(value.shape[:-1]) // rows
    flat = reshaped(graph, operation, value, (batch, rows, width))
    across = flat.type.with_shape((batch, width, rows))
    turned = graph.add_beside(operation, "TRANSPOSE", (flat,), across, {"perms": (0, 2, 1)})
    type, attributes = result.type.with_shape((batch, 1, rows)), {**operation.attributes, "axis": 1}
    greatest = graph.add_beside(operation, operation.kind, (turned,), type, attributes)
    graph.supersede(result, reshaped(graph, operation, greatest, result.shape))


PATTERN = Pattern("maxima along rows", MAXIMUM, (_along_rows,))
RULES = Rules([Rule(PATTERN, _turn)])

TURN_MAXIMA = Pass("turn-maxima", RULES.rewrite)
"""Turn a tensor before the greatest of its last dimension is found.

An NPU finds the greatest with a pooling, of many channels at once. Along the last dimension
there is a single channel; that costs more than it does to turn rows into channels first.
"""
