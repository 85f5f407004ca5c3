"""Fold a BatchNormalization into the weights of the convolution before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.frontends.onnx.draft import Draft, changed, has
from mizzen.frontends.onnx.model import Array, Node

MOST_BYTES = 1 << 27
"""Of the weights that are made anew."""


def folded_norms(nodes: Sequence[Node], outputs: Sequence[str], draft: Draft) -> list[Node]:
    """Fold each that follows a convolution of float constants, and is alone in that."""
    makers = {node.outputs[0]: node for node in nodes if node.kind in ("Conv", "ConvTranspose")}
    users: dict[str, int] = dict.fromkeys(outputs, 1)
    for node in nodes:
        for name in node.inputs:
            users[name] = users.get(name, 0) + 1
    placed: dict[int, list[Node]] = {}
    bytes_left = MOST_BYTES
    for node in nodes:
        before = makers.get(node.inputs[0]) if node.kind == "BatchNormalization" else None
        if before is None or users[before.outputs[0]] != 1:
            continue
        weights = draft.input_value(before, 1)
        if weights is None or weights.nbytes > bytes_left:
            continue
        merged = _merged(before, node, weights, draft)
        if merged is not None:
            bytes_left -= weights.nbytes
            placed |= {id(before): [], id(node): [merged]}
    return [part for node in nodes for part in placed.get(id(node), [node])]


def _merged(before: Node, node: Node, weights: Array, draft: Draft) -> Node | None:
    values = [draft.input_value(node, place) for place in range(1, 5)]
    bias = draft.input_value(before, 2)
    is_turned = before.kind == "ConvTranspose"
    if weights.dtype != np.float32 or (has(before, 2) and bias is None):
        return None
    if is_turned and before.attributes.get("group", 1) != 1:
        return None
    real = [value.astype(np.float64) for value in values if value is not None]
    channels = weights.shape[1 if is_turned else 0]
    if len(real) != 4 or any(value.shape != (channels,) for value in real):
        return None
    scale, shift, mean, variance = real
    factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    if not np.all(np.isfinite(factor)):
        return None
    lead = (1, channels) if is_turned else (channels,)
    spread = factor.reshape(*lead, *(1 for _ in range(weights.ndim - len(lead))))
    start = 0.0 if bias is None else bias.astype(np.float64)
    names = (
        draft.constant((weights * spread).astype(np.float32), f"{before.inputs[1]}:folded"),
        draft.constant(
            ((start - mean) * factor + shift).astype(np.float32), f"{node.outputs[0]}:bias"
        ),
    )
    return changed(before, inputs=(before.inputs[0], *names), outputs=(node.outputs[0],))
