"""What an operation that the host computes says about itself.

An operation of the domain ``onnx`` is an edge, where integers of the graph begin or end, or a node
that ONNX Runtime computes. It has its parameters as JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from mizzen.graph import DType, integer_range
from mizzen.ops.control_flow import Custom

DOMAIN = "onnx"

QUANTIZE = "onnx.quantize"
DEQUANTIZE = "onnx.dequantize"
SIGNED = "onnx.signed"
UNSIGNED = "onnx.unsigned"
NARROW = "onnx.narrow"
WIDEN = "onnx.widen"

EDGES = (QUANTIZE, DEQUANTIZE, SIGNED, UNSIGNED, NARROW, WIDEN)
"""Between numbers as the network has them and integers as the graph has them.

float32 to integers and back, integers without a sign to those with one and back, 64 bits to 32 and
back.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """How real numbers become integers with a sign, or the other way round.

    low, high  the least and greatest integer
    """

    scale: float
    zero_point: int
    low: int
    high: int

    @staticmethod
    def of(scale: float, zero_point: int, dtype: DType) -> Step:
        """Return the step for all integers of a type."""
        return Step(scale, zero_point, *integer_range(dtype))


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why a node stays with ONNX Runtime."""

    reason: str
    help: str | None


def step_note(step: Step) -> bytes:
    """Write a step."""
    parts = {
        "scale": step.scale,
        "zero_point": step.zero_point,
        "low": step.low,
        "high": step.high,
    }
    return json.dumps(parts, sort_keys=True).encode()


def step_of(operation: Custom) -> Step:
    """Read the step of an operation that quantises or dequantises."""
    return Step(**json.loads(operation.implementation_attrs))


def node_note(place: int, refusal: NodeRefusal) -> bytes:
    """Write which node an operation is, by its place among the model's, and why it is one."""
    parts = {"node": place, "reason": refusal.reason, "help": refusal.help}
    return json.dumps(parts, sort_keys=True).encode()


def node_of(operation: Custom) -> int:
    """Read the place of an operation's node among `Model.nodes`."""
    return int(json.loads(operation.implementation_attrs)["node"])


def noted(operation: Custom) -> NodeRefusal:
    """Read why ONNX Runtime has an operation."""
    parts = json.loads(operation.implementation_attrs)
    return NodeRefusal(parts["reason"], parts["help"])


def is_edge(operation: Custom) -> bool:
    """Whether an operation is where the graph's integers begin or end."""
    return operation.operator_name in EDGES
