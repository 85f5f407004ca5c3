"""Products of matrices, attention. Ref: TOSA 1.0, 2.3.8 MATMUL."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

import numpy as np

from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_context import FpCall
from mizzen.frontends.torch.fp_lowering.fp_convolution import projected
from mizzen.frontends.torch.fp_lowering.fp_reduction import softmax_of
from mizzen.frontends.torch.shapes import reshape, tiled, transpose
from mizzen.graph import DType, Value
from mizzen.ops import Builder


def matmul(call: FpCall) -> Value:
    """Multiply matrices or vectors, batches too."""
    names = list(call.arguments)
    weight = call.fixed(names[1])
    x = call.value(names[0])
    if weight is not None and weight.ndim == 2:
        return projected(call, x, np.ascontiguousarray(weight.T), None, call.shape)
    return reshape(call.b, multiplied(call.b, x, call.value(names[1])), call.shape)


def addmm(call: FpCall) -> Value:
    """beta * input + alpha * a product of matrices."""
    b, names = call.b, list(call.arguments)
    weight, bias = call.fixed("mat2"), call.fixed("self")
    plain = call["alpha"] == 1 and call["beta"] == 1
    if weight is not None and bias is not None and bias.ndim == 1 and plain:
        rows = np.ascontiguousarray(weight.T)
        offset = np.broadcast_to(bias, (rows.shape[0],))
        return projected(call, call.value(names[1]), rows, offset, call.shape)
    value = reshape(b, multiplied(b, call.value(names[1]), call.value(names[2])), call.shape)
    value = value if call["alpha"] == 1 else a.mul(b, value, call["alpha"])
    other = call.value("self")
    return a.add(b, other if call["beta"] == 1 else a.mul(b, other, call["beta"]), value)


def multiplied(b: Builder, x: Value, y: Value) -> Value:
    """Multiply [..., H, C] by [..., C, W], batches broadcast; a vector is a row or a column."""
    if x.type.rank == 1:
        x = reshape(b, x, (1, *x.shape))
    if y.type.rank == 1:
        y = reshape(b, y, (*y.shape, 1))
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    zero = b.constant([0], x.dtype)
    value = b(
        "MATMUL",
        _batched(b, x, batch),
        _batched(b, y, batch),
        zero,
        zero,
        dtype=a.sum_type(x.dtype),
    )
    return a.cast(b, reshape(b, value, (*batch, x.shape[-2], y.shape[-1])), x.dtype)


def _batched(b: Builder, x: Value, batch: Sequence[int]) -> Value:
    """Return [N, H, C] with N the product of the batch."""
    x = tiled(b, x, (*batch, *x.shape[-2:]))
    return reshape(b, x, (prod(batch), *x.shape[-2:]))


def scaled_dot_product_attention(call: FpCall) -> Value:
    """softmax(q k' * scale + mask) v."""
    b = call.b
    call.need(not call["dropout_p"], "it drops out", "call `model.eval()` before export")
    query, key, value = (call.value(name) for name in ("query", "key", "value"))
    if call.arguments.get("enable_gqa"):
        key, value = (_repeated(b, each, query.shape[-3]) for each in (key, value))
    scale = 1.0 / sqrt(query.shape[-1]) if call["scale"] is None else float(call["scale"])
    rank = key.type.rank
    turned = transpose(b, key, [*range(rank - 2), rank - 1, rank - 2])
    scores = multiplied(b, a.mul(b, query, scale), turned)
    scores = _masked(call, scores)
    return reshape(b, multiplied(b, softmax_of(b, scores, scores.type.rank - 1), value), call.shape)


def _repeated(b: Builder, x: Value, heads: int) -> Value:
    """Repeat each head of keys or values for as many heads of queries, one after the other."""
    *front, count, rows, width = x.shape
    lifted = reshape(b, x, (*front, count, 1, rows, width))
    repeated = tiled(b, lifted, (*front, count, heads // count, rows, width))
    return reshape(b, repeated, (*front, heads, rows, width))


def _masked(call: FpCall, scores: Value) -> Value:
    b = call.b
    if call["is_causal"]:
        rows, columns = scores.shape[-2:]
        hidden = np.triu(np.full((rows, columns), -np.inf), 1)
        return a.add(b, scores, a.filled(b, hidden, scores.dtype))
    if not call.given("attn_mask"):
        return scores
    mask = call.value("attn_mask")
    if mask.dtype is DType.BOOL:
        return a.select(b, mask, scores, -np.inf, scores.dtype)
    return a.add(b, scores, mask)
