"""Bring linear layers into the shape in which an NPU multiplies fastest."""

from __future__ import annotations

from mizzen.graph import Graph
from mizzen.ops.builder import reshaped
from mizzen.ops.tensor import Conv2d
from mizzen.passes.pipeline import Pass
from mizzen.patterns import Is, Match, Pattern, Reject, Rule, Rules, Var, op

LEAST_WIDTH = 2
"""Pixels that an NPU computes at once beside each other; a column of single ones is half idle."""

LEAST_PIXELS = 8
"""Fewer fit into one block whatever their shape."""


SOURCE = Var("source", Is("one pixel wide", lambda value: value.shape[2] == 1))
KERNEL = Var("weights", Is("a kernel of 1x1", lambda value: value.shape[1:3] == (1, 1)))
CONVOLUTION = op(Conv2d, SOURCE, KERNEL, having={"stride": (1, 1), "pad": (0, 0, 0, 0)})


def _has_pixels(match: Match) -> Reject | None:
    """The image has more pixels than fit into one block whatever their shape."""
    batch, rows, *_ = match[SOURCE].shape
    if batch * rows < LEAST_PIXELS:
        return Reject(f"pixels must be at least {LEAST_PIXELS}, and are {batch * rows}")
    return None


def _widen(graph: Graph, match: Match) -> None:
    operation, source = match[CONVOLUTION], match[SOURCE]
    result = operation.result
    pixels = source.shape[0] * source.shape[1]
    # Rows stay as many as can be: a compiler cuts an image that does not fit between rows.
    width = LEAST_WIDTH if pixels % LEAST_WIDTH == 0 else pixels
    image = (1, pixels // width, width)
    value = reshaped(graph, operation, source, (*image, source.shape[3]))
    operands = (value, *operation.operands[1:])
    type = result.type.with_shape((*image, result.shape[3]))
    wide = graph.add_beside(operation, operation.kind, operands, type, operation.attributes)
    graph.supersede(result, reshaped(graph, operation, wide, result.shape))


PATTERN = Pattern("a linear layer in a column", CONVOLUTION, (_has_pixels,))
RULES = Rules([Rule(PATTERN, _widen)])

WIDEN_COLUMNS = Pass("widen-columns", RULES.rewrite)
"""Let CONV2D of single pixels, one column of them, work on rows instead.

A linear layer on a sequence is a convolution with a kernel of 1x1. To it the shape of its image
is all the same, but an NPU that computes blocks of two by two pixels leaves half of itself idle
in an image that is one pixel wide.
"""
