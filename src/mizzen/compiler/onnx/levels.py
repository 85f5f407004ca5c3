"""Say where a quantised ONNX network's rounding leaves little of a tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from mizzen.compiler.levels import (
    ADDED,
    JOINED,
    MOST_CONTENTS,
    RESCALED,
    Content,
    Remedy,
    Steps,
    lost,
)
from mizzen.diagnostics import Diagnostic
from mizzen.frontends.onnx.model import Model, Node

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"

REAL_BITS = 32
"""Of a result that was not rounded yet."""

ENDS = {
    **dict.fromkeys(("Sigmoid", "HardSigmoid", "Softmax"), (0.0, 1.0)),
    "Tanh": (-1.0, 1.0),
}
"""Operators whose results lie between two numbers, whatever they take."""

JOINS = frozenset({"Concat"})
SUMS = frozenset({"Add", "Sub"})
_MOVES = (
    "DepthToSpace Expand Flatten Gather Identity MaxPool Pad Reshape Resize Slice SpaceToDepth "
    "Split Squeeze Tile Transpose Unsqueeze"
)
MOVES = JOINS | frozenset(_MOVES.split())

Contents = dict[str, tuple[Content, ...]]
"""A tensor's name to those whose numbers lie in it."""


def few_levels(model: Model) -> Iterator[Diagnostic]:
    """Say which roundings of a network leave a tensor too few levels: W319."""
    producer = {name: node for node in model.nodes for name in node.outputs}
    users: dict[str, list[Node]] = {}
    for node in model.nodes:
        for name in node.inputs:
            users.setdefault(name, []).append(node)
    contents: Contents = {}
    for node in model.nodes:
        if node.kind == QUANTIZE:
            yield from _rounded(model, node, contents, producer, users)
        elif node.kind == DEQUANTIZE:
            contents[node.outputs[0]] = contents.get(node.inputs[0], ())
        elif node.kind in ENDS:
            contents[node.outputs[0]] = (Content(node.name, *ENDS[node.kind], REAL_BITS),)
        elif node.kind in MOVES | SUMS:
            handed = {each for name in node.inputs for each in contents.get(name, ())}
            kept = tuple(sorted(handed, key=lambda content: content.name))[:MOST_CONTENTS]
            contents |= dict.fromkeys(node.outputs, kept)


def _rounded(
    model: Model,
    node: Node,
    contents: Contents,
    producer: Mapping[str, Node],
    users: Mapping[str, list[Node]],
) -> Iterator[Diagnostic]:
    """Judge one rounding, and follow what is left after it."""
    steps = _steps_of(model, node)
    if steps is None:
        return
    source, result = node.inputs[0], node.outputs[0]
    maker = producer.get(source)
    is_sum = maker is not None and maker.kind in SUMS
    levels = steps.levels_of_summand if is_sum else steps.levels_of
    kept: list[Content] = []
    for content in contents.get(source, ()):
        if (left := levels(content)) >= steps.levels_wanted(content):
            kept.append(content)
        else:
            origin = model.origin(node if maker is None else maker)
            yield lost(content, left, steps, source, origin, _way(maker, result, users))
    own = (Content(source, steps.low, steps.high, steps.bits),)
    contents[result] = own if is_sum or not kept else tuple(kept)


def _steps_of(model: Model, node: Node) -> Steps | None:
    """Return how a node rounds; None where it has a scale for each channel, or a computed one."""
    scale = model.constants.get(node.inputs[1])
    dtype = model.types[node.outputs[0]].dtype
    if scale is None or scale.size != 1 or dtype.kind not in "iu" or dtype.itemsize > 2:
        return None
    zero = model.constants.get(node.inputs[2]) if len(node.inputs) > 2 else None
    size, at = float(scale.reshape(())), 0 if zero is None else int(zero.reshape(()))
    limits = np.iinfo(dtype)
    ends = (size * (int(limits.min) - at), size * (int(limits.max) - at))
    return Steps(size, *ends, 8 * dtype.itemsize)


def _way(maker: Node | None, result: str, users: Mapping[str, list[Node]]) -> Remedy:
    """Return the remedy: what is joined with others later has their scale."""
    real = [name for user in users.get(result, ()) for name in user.outputs]
    behind = {user.kind for name in real for user in users.get(name, ())}
    if behind & JOINS or (maker is not None and maker.kind in JOINS):
        return JOINED
    return ADDED if maker is not None and maker.kind in SUMS else RESCALED
