"""Let integers, not numbers, be moved where a network begins and ends.

A writer that turns images (tf2onnx) puts Transpose or Reshape before the first QuantizeLinear, and
behind the last DequantizeLinear. Both only move elements, and one scale is for all of them, so the
integers are the same the other way round, and an NPU can move them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mizzen.frontends.onnx.draft import Draft, changed
from mizzen.frontends.onnx.model import ONNX, Node, TensorType

MOVES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose")
"""Operators that move the elements of their first input, as their constants say."""


def integers_moved(
    nodes: Sequence[Node], inputs: Sequence[str], outputs: Sequence[str], draft: Draft
) -> list[Node]:
    """Quantise inputs before they are moved, and moved integers after: nodes in order."""
    quantised = _at_inputs(list(nodes), inputs, outputs, draft)
    return _at_outputs(quantised, outputs, draft)


def _at_inputs(
    nodes: list[Node], inputs: Sequence[str], outputs: Sequence[str], draft: Draft
) -> list[Node]:
    makers, users = _makers(nodes), _users(nodes, outputs)
    placed: dict[int, list[Node]] = {}
    for node in nodes:
        if node.kind != "QuantizeLinear" or not _is_of_all(node, draft):
            continue
        moves = _moves_before(node.inputs[0], makers, users, draft)
        source = moves[0].inputs[0] if moves else ""
        if source in inputs:
            placed[id(node)] = _quantised_first(node, moves, source, draft)
            placed |= {id(move): [] for move in moves}
    return [part for node in nodes for part in placed.get(id(node), [node])]


def _at_outputs(nodes: list[Node], outputs: Sequence[str], draft: Draft) -> list[Node]:
    makers, users = _makers(nodes), _users(nodes, outputs)
    placed: dict[int, list[Node]] = {}
    for name in outputs:
        moves = _moves_before(name, makers, users, draft)
        reader = makers.get(moves[0].inputs[0]) if moves else None
        if (
            reader is not None
            and reader.kind == "DequantizeLinear"
            and reader.inputs[0] not in draft.constants
            and users[reader.outputs[0]] == 1
            and _is_of_all(reader, draft)
        ):
            placed[id(reader)] = []
            placed |= {id(move): [] for move in moves}
            placed[id(moves[-1])] = _dequantised_last(reader, moves, draft)
    return [part for node in nodes for part in placed.get(id(node), [node])]


def _makers(nodes: Sequence[Node]) -> dict[str, Node]:
    return {name: node for node in nodes for name in node.outputs if name}


def _users(nodes: Sequence[Node], outputs: Sequence[str]) -> dict[str, int]:
    users = dict.fromkeys(outputs, 1)
    for node in nodes:
        for name in node.inputs:
            users[name] = users.get(name, 0) + 1
    return users


def _is_of_all(node: Node, draft: Draft) -> bool:
    """Whether a node's scale is constant, and of the whole tensor."""
    return node.domain == ONNX and all(
        name in draft.constants and draft.constants[name].size == 1 for name in node.inputs[1:]
    )


def _moves_before(
    name: str, makers: Mapping[str, Node], users: Mapping[str, int], draft: Draft
) -> list[Node]:
    """Collect the nodes that only move what becomes a tensor, in order; each has one user."""
    moves: list[Node] = []
    while users[name] == 1 and (node := makers.get(name)) is not None and node.kind in MOVES:
        if not all(other in draft.constants for other in node.inputs[1:]):
            break
        moves.append(node)
        name = node.inputs[0]
    return moves[::-1]


def _quantised_first(node: Node, moves: Sequence[Node], source: str, draft: Draft) -> list[Node]:
    dtype = draft.types[node.outputs[0]].dtype
    name = draft.fresh(f"{source}:quantized")
    draft.types[name] = TensorType(dtype, draft.shape(source))
    first = changed(node, inputs=(source, *node.inputs[1:]), outputs=(name,))
    return [first, *_moving(moves, name, node.outputs[0], draft)]


def _dequantised_last(reader: Node, moves: Sequence[Node], draft: Draft) -> list[Node]:
    result = moves[-1].outputs[0]
    name = draft.fresh(f"{result}:quantized")
    draft.types[name] = TensorType(draft.types[reader.inputs[0]].dtype, draft.shape(result))
    last = changed(reader, inputs=(name, *reader.inputs[1:]), outputs=(result,))
    return [*_moving(moves, reader.inputs[0], name, draft), last]


def _moving(moves: Sequence[Node], source: str, result: str, draft: Draft) -> list[Node]:
    """Move another tensor as nodes do; the last makes the result."""
    dtype = draft.types[source].dtype
    parts: list[Node] = []
    for move in moves:
        name = result if move is moves[-1] else draft.fresh(f"{move.outputs[0]}:quantized")
        draft.types[name] = TensorType(dtype, draft.shape(move.outputs[0]))
        parts.append(changed(move, inputs=(source, *move.inputs[1:]), outputs=(name,)))
        source = name
    return parts
