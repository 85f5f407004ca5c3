"""Softmax as exponentials, and attention as products, a mask and softmax.

Softmax of 16 bits stays whole: its integers take more bits inside, and no range that is calibrated.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from mizzen.frontends.torch.operators.row import UNIT, Range
from mizzen.quantize.decompose.arithmetic import argument
from mizzen.quantize.decompose.masks import bound_masks
from mizzen.quantize.decompose.rewriting import Rewriter, aten, finite, shape_of
from mizzen.quantize.nodes import FAR, HIDES, KNOWN_RANGE, MASKED

BELOW = Range(FAR[8] / 256, 127, 16 / (1 << 15))
"""How far scores are below their greatest: further, masked ones have no weight."""


def softmax(rewriter: Rewriter, node: Node) -> Node | None:
    """Return ``exp(x - max) / sum(exp(x - max))`` along an axis.

    Five tables and reductions of the integers' own width, and a product whose range is [0, 1).
    """
    hides = bound_masks(rewriter, node.args[0], node)
    if rewriter.is_wide(node):
        return None
    value, axis = node.args[:2]
    below = _below_maximum(rewriter, value, axis)
    if hides:
        below.meta[KNOWN_RANGE] = BELOW
    exponential = rewriter.call(aten.exp.default, below)
    total = rewriter.call(aten.sum.dim_IntList, exponential, [axis], True)
    inverse = rewriter.call(aten.reciprocal.default, total)
    result = rewriter.call(aten.mul.Tensor, exponential, inverse)
    result.meta[KNOWN_RANGE] = UNIT
    return result


def log_softmax(rewriter: Rewriter, node: Node) -> Node | None:
    """Return ``(x - max) - log(sum(exp(x - max)))`` along an axis."""
    hides = bound_masks(rewriter, node.args[0], node)
    if rewriter.is_wide(node):
        node.meta |= {HIDES: 1.0} if hides else {}
        return None
    value, axis = node.args[:2]
    below = _below_maximum(rewriter, value, axis)
    exponential = rewriter.call(aten.exp.default, below)
    total = rewriter.call(aten.sum.dim_IntList, exponential, [axis], True)
    result = rewriter.call(aten.sub.Tensor, below, rewriter.call(aten.log.default, total))
    if hides:
        below.meta[HIDES] = result.meta[HIDES] = 1.0
    return result


def logsumexp(rewriter: Rewriter, node: Node) -> Node | None:
    """Return ``max + log(sum(exp(x - max)))`` along axes."""
    hides = bound_masks(rewriter, node.args[0], node)
    if rewriter.is_wide(node):
        return None
    value, axes, keep = node.args[0], node.args[1], bool(argument(node, 2, "keepdim", False))
    axes = [axes] if isinstance(axes, int) else axes
    greatest = rewriter.call(aten.amax.default, value, axes, True)
    below = rewriter.call(aten.sub.Tensor, value, greatest)
    if hides:
        below.meta[HIDES] = 1.0
    exponential = rewriter.call(aten.exp.default, below)
    total = rewriter.call(aten.sum.dim_IntList, exponential, axes, True)
    result = rewriter.call(aten.add.Tensor, rewriter.call(aten.log.default, total), greatest)
    return result if keep else rewriter.call(aten.squeeze.dims, result, axes)


def _below_maximum(rewriter: Rewriter, value: Any, axis: Any) -> Node:
    greatest = rewriter.call(aten.amax.default, value, [axis], True)
    return rewriter.call(aten.sub.Tensor, value, greatest)


def attention(rewriter: Rewriter, node: Node) -> Node | None:
    """Return ``softmax(q @ k.T / sqrt(d) + mask) @ v``, with dropout of the weights in training.

    The factor is not an operation: it changes the scale of the scores, not their integers.
    """
    query, key, value = node.args[:3]
    assert isinstance(query, Node)
    assert isinstance(key, Node)
    assert isinstance(value, Node)
    mask = _mask(rewriter, node)
    key, value = (_each_group(rewriter, query, shared) for shared in (key, value))
    scale = argument(node, 6, "scale")
    scale = 1 / math.sqrt(shape_of(query)[-1]) if scale is None else scale
    transposed = rewriter.call(aten.transpose.int, key, -2, -1)
    scores = rewriter.call(aten.matmul.default, query, transposed)
    scores = rewriter.call(aten.mul.Tensor, scores, scale)
    scores = _masked(rewriter, scores, mask)
    weights = rewriter.call(aten.softmax.int, scores, -1)
    dropped = float(argument(node, 4, "dropout_p", 0.0))
    if dropped and rewriter.is_qat:
        weights = rewriter.call(aten.dropout.default, weights, dropped, True)
    result = rewriter.call(aten.matmul.default, weights, value)
    return _without_hidden_rows(rewriter, result, mask)


def _each_group(rewriter: Rewriter, query: Node, shared: Node) -> Node:
    """Repeat heads that several of the query's heads share."""
    heads, groups = shape_of(query)[-3:-2], shape_of(shared)[-3:-2]
    if len(shape_of(query)) < 4 or heads == groups:
        return shared
    return rewriter.call(aten.repeat_interleave.self_int, shared, heads[0] // groups[0], -3)


def _without_hidden_rows(rewriter: Rewriter, result: Node, mask: Any) -> Node:
    """Make rows zero of which a constant mask hides every score, as PyTorch does."""
    if not isinstance(mask, torch.Tensor):
        return result
    hidden = ~mask if mask.dtype == torch.bool else torch.isneginf(mask)
    empty = hidden.all(-1, keepdim=True)
    if not bool(empty.any()):
        return result
    shown = rewriter.constant((~empty).float(), "shown")
    return rewriter.call(aten.mul.Tensor, result, shown)


def _mask(rewriter: Rewriter, node: Node) -> Any:
    """Return the mask of an attention, as a node or a constant; None where there is not one."""
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
