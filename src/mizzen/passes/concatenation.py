"""Put first in a CONCAT what can only be written there."""

from __future__ import annotations

import numpy as np

from mizzen.graph import DType, Graph, Value
from mizzen.ops.data_layout import Concat
from mizzen.ops.tensor import Conv2d, TransposeConv2d
from mizzen.ops.type_conversion import Rescale
from mizzen.passes.pipeline import Pass
from mizzen.patterns import Match, Pattern, Reject, Rule, Rules, Var, find, of, op

CHANNELS = 3
INPUT_CHANNELS = 3
"""Dimensions of CONV2D's images [N, H, W, C] and of its weights [OC, KH, KW, IC]."""

FIRST = Var("first")
SECOND = op(Rescale, op(TransposeConv2d, once=True), result=of(DType.INT8), once=True)
JOIN = op(Concat, FIRST, SECOND, having={"axis": CHANNELS})
IN_PIECES = Pattern("what is made in pieces", SECOND)


def _begins_whole(match: Match) -> Reject | None:
    """The first part is not made in pieces too."""
    producer = match[FIRST].producer
    if producer is not None and find(match.graph, IN_PIECES, producer) is not None:
        return Reject("the first part must not be in pieces too", producer)
    return None


def _is_added_up(match: Match) -> Reject | None:
    """One image is joined, and nothing but CONV2Ds with constant weights takes it."""
    joined = match[JOIN].result
    if joined in match.graph.outputs or joined.shape[0] != 1:
        return Reject("the joined tensor must be one image and no output")
    for user in joined.uses:
        if not isinstance(user, Conv2d) or user.weight.constant is None:
            return Reject("every user must be CONV2D with constant weights", user)
    return None


def _exchange(graph: Graph, match: Match) -> None:
    join = match[JOIN]
    first, second = join.input1[:2]
    graph.set_operand(join, 0, second)
    graph.set_operand(join, 1, first)
    depths = (first.shape[CHANNELS], second.shape[CHANNELS])
    for user in join.result.uses:
        assert isinstance(user, Conv2d)
        graph.set_operand(user, Conv2d.weight.index, _turned(graph, user.weight, depths))


def _turned(graph: Graph, weights: Value, depths: tuple[int, int]) -> Value:
    """Return weights whose first two blocks of input channels have changed places."""
    array = weights.constant
    assert array is not None
    first, both = depths[0], sum(depths)
    blocks = (array[..., first:both], array[..., :first], array[..., both:])
    return graph.constant_like(weights, np.concatenate(blocks, axis=INPUT_CHANNELS))


PATTERN = Pattern("channels joined behind others", JOIN, (_begins_whole, _is_added_up))
RULES = Rules([Rule(PATTERN, _exchange)])

BEGIN_JOINS = Pass("begin-joins", RULES.rewrite)
"""Let CONCATs of channels begin with a transposed convolution, where only CONV2Ds read them.

An NPU makes a transposed convolution in pieces; at the start of a larger tensor the pieces are
in their place at once, elsewhere the whole is moved. A convolution does not mind the order of
the channels that it adds up: its weights change places as they do.
"""
