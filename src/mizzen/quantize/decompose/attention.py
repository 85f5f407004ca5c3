"""Attention, as products, a mask and softmax."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from mizzen.quantize.decompose.arithmetic import argument
from mizzen.quantize.decompose.rewriting import Rewriter, aten, shape_of

MASKED = -16.0
"""What a mask adds instead of minus infinity.

A score masked with it gets at most e**-16 of the weight of the others, below every step of 8 and 16
bits; a larger number would only make the scores' own steps coarser.
"""


def attention(rewriter: Rewriter, node: Node) -> Node | None:
    """Return ``softmax(q @ k.T / sqrt(d) + mask) @ v``; dropout is left out.

    The factor is no operation: it changes the scale of the scores, not their integers.
    """
    query, key, value = node.args[:3]
    assert isinstance(query, Node)
    assert isinstance(key, Node)
    assert isinstance(value, Node)
    if float(argument(node, 4, "dropout_p", 0.0)) > 0 and rewriter.is_qat:
        return None
    if argument(node, 7, "enable_gqa", False):
        return None
    scale = argument(node, 6, "scale")
    scale = 1 / math.sqrt(shape_of(query)[-1]) if scale is None else scale
    transposed = rewriter.call(aten.transpose.int, key, -2, -1)
    scores = rewriter.call(aten.matmul.default, query, transposed)
    scores = rewriter.call(aten.mul.Tensor, scores, scale)
    scores = _masked(rewriter, scores, _mask(rewriter, node))
    weights = rewriter.call(aten.softmax.int, scores, -1)
    return rewriter.call(aten.matmul.default, weights, value)


def _mask(rewriter: Rewriter, node: Node) -> Any:
    """Return the mask of an attention, as a node or a constant; None where there is none."""
    mask = argument(node, 3, "attn_mask")
    if argument(node, 5, "is_causal", False):
        query, key = node.args[0], node.args[1]
        assert isinstance(query, Node)
        assert isinstance(key, Node)
        return torch.ones(shape_of(query)[-2], shape_of(key)[-2], dtype=torch.bool).tril()
    constant = rewriter.value(mask)
    return mask if constant is None else constant


def _masked(rewriter: Rewriter, scores: Node, mask: Any) -> Node:
    if mask is None:
        return scores
    if isinstance(mask, torch.Tensor):
        if mask.dtype == torch.bool:
            mask = torch.where(mask, 0.0, MASKED)
        if not bool(mask.any()):
            return scores
        return rewriter.call(aten.add.Tensor, scores, rewriter.constant(finite(mask), "mask"))
    if mask.meta["val"].dtype == torch.bool:
        hidden = rewriter.call(aten.logical_not.default, mask)
        return rewriter.call(aten.masked_fill.Scalar, scores, hidden, MASKED)
    return rewriter.call(aten.add.Tensor, scores, mask)


def finite(values: torch.Tensor) -> torch.Tensor:
    """Return a mask with what stands for minus infinity in it."""
    return torch.where(values <= -1e4, MASKED, values)


def masked_fill(rewriter: Rewriter, node: Node) -> Node | None:
    """Fill with a number that has a place in the range of the others."""
    value = node.args[2]
    if isinstance(value, (int, float)) and value <= -1e4:
        return rewriter.call(node.target, node.args[0], node.args[1], MASKED)
    return None
