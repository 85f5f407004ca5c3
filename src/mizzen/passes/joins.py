"""Put first in a CONCAT what can only be written there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mizzen.graph import Array, DType, Graph, Value
from mizzen.patterns import Match, Pattern, Reject, Rule, Rules, Var, find, of, op

CHANNELS = 3
INPUT_CHANNELS = 3
"""Dimensions of CONV2D's images [N, H, W, C] and of its weights [OC, KH, KW, IC]."""

FIRST = Var("first")
SECOND = op("RESCALE", op("TRANSPOSE_CONV2D", once=True), result=of(DType.INT8), once=True)
JOIN = op("CONCAT", FIRST, SECOND, having={"axis": CHANNELS})
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
        if user.kind != "CONV2D" or user.operands[1].constant is None:
            return Reject("every user must be CONV2D with constant weights", user)
    return None


def _exchange(graph: Graph, match: Match) -> None:
    join = match[JOIN]
    first, second = join.operands[:2]
    graph.set_operand(join, 0, second)
    graph.set_operand(join, 1, first)
    depths = (first.shape[CHANNELS], second.shape[CHANNELS])
    for user in join.result.uses:
        graph.set_operand(user, 1, _turned(graph, user.operands[1], depths))


def _turned(graph: Graph, weights: Value, depths: tuple[int, int]) -> Value:
    """Return weights whose first two blocks of input channels have changed places."""
    array: Array | None = weights.constant
    producer = weights.producer
    assert array is not None
    assert producer is not None
    first, both = depths[0], sum(depths)
    blocks = (array[..., first:both], array[..., :first], array[..., both:])
    return graph.constant(
        np.concatenate(blocks, axis=INPUT_CHANNELS),
        weights.dtype,
        quantization=weights.quantization,
        origin=producer.origin,
        group=producer.group,
    )


PATTERN = Pattern("channels joined behind others", JOIN, (_begins_whole, _is_added_up))
RULES = Rules([Rule(PATTERN, _exchange)])


@dataclass(frozen=True, slots=True)
class BeginJoins:
    """Let CONCATs of channels begin with a transposed convolution, where only CONV2Ds read them.

    An NPU makes a transposed convolution in pieces; at the start of a larger tensor the pieces are
    in their place at once, elsewhere the whole is moved. A convolution does not mind the order of
    the channels that it adds up: its weights change places as they do.
    """

    name: ClassVar[str] = "begin-joins"

    def run(self, graph: Graph) -> bool:
        """Rewrite the graph; True if anything changed."""
        return RULES.rewrite(graph)
