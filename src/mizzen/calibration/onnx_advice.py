"""What of a quantised ONNX network is in floating point, and where tensors share a scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mizzen.calibration.joins import Joined, few_levels
from mizzen.calibration.onnx_graph import DEQUANTIZE, LIMITS, QUANTIZE
from mizzen.calibration.seen import Seen
from mizzen.calibration.source import FloatOperator
from mizzen.diagnostics import Diagnostic, Origin

_MOVES = "Flatten Identity Reshape Slice Split Squeeze Transpose Unsqueeze"
MOVES = frozenset(_MOVES.split())
"""Operators that give elements of their first input as they are."""

JOIN = "Concat"
FLOAT = 1
"""Ref: ONNX, onnx.proto, TensorProto.FLOAT."""


def floating(quantised: Any, prepared: Any) -> Iterator[FloatOperator]:
    """Return the operators of a quantised network that compute in floating point.

    prepared  the network that it was made of, which knows the types of tensors
    """
    values = [*prepared.graph.value_info, *prepared.graph.input, *prepared.graph.output]
    real = {value.name for value in values if value.type.tensor_type.elem_type == FLOAT}
    real -= {tensor.name for tensor in prepared.graph.initializer}
    rounded = {node.input[0] for node in quantised.graph.node if node.op_type == QUANTIZE}
    limited = {
        node.input[0]
        for node in quantised.graph.node
        if node.op_type in LIMITS and node.output[0] in rounded
    }
    for index, node in enumerate(quantised.graph.node):
        if node.op_type in (QUANTIZE, DEQUANTIZE):
            continue
        taken = real & set(node.input) - limited
        if taken or real & set(node.output) - rounded - limited:
            yield FloatOperator(index, node.op_type, next(iter(node.output), node.name))


def joined(prepared: Any, seen: Seen, model: str, bits: int) -> Iterator[Diagnostic]:
    """Say which concatenations leave a tensor few levels: W319."""
    makers = {output: node for node in prepared.graph.node for output in node.output}
    users = [name for node in prepared.graph.node for name in node.input]
    for index, node in enumerate(prepared.graph.node):
        if node.op_type != JOIN:
            continue
        if node.output[0] in users and _is_joined_again(prepared, node):
            continue
        contents = dict(_contents(node.output[0], makers))
        origin = Origin(model, index, JOIN, node.output[0])
        yield from few_levels(Joined(node.output[0], contents, origin), seen, bits)


def _is_joined_again(prepared: Any, join: Any) -> bool:
    """Whether a concatenation only goes into others, for which it will be said."""
    names = {join.output[0]}
    for node in prepared.graph.node:
        if names & set(node.input):
            if node.op_type == JOIN:
                return True
            if node.op_type in MOVES:
                names.update(node.output)
    return False


def _contents(tensor: str, makers: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the tensors whose elements one has, and the operators that compute them."""
    node = makers.get(tensor)
    if node is None:
        yield tensor, ""
    elif node.op_type == JOIN:
        for name in node.input:
            yield from _contents(name, makers)
    elif node.op_type in MOVES:
        yield from _contents(node.input[0], makers)
    else:
        yield tensor, str(node.name)
