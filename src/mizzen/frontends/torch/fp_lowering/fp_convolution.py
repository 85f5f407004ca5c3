"""Layers: convolutions, linear layers, products of matrices, attention.

A batch norm after a convolution is part of it. Ref: TOSA 1.0, 2.3.8 MATMUL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.movement import concat, lifted, reshape, sliced, tiled, transposed
from mizzen.frontends.arrangement.windows import (
    Layer,
    channels_last_kernel,
    convolved,
    convolved_back,
    transposed_kernel,
)
from mizzen.frontends.arrangement.windows import linear as product_of_rows
from mizzen.frontends.torch.fp_lowering import fp_arithmetic as a
from mizzen.frontends.torch.fp_lowering.fp_arithmetic import add, cast, filled, sum_type
from mizzen.frontends.torch.fp_lowering.fp_lower import Context, Fixed, FpCall, array_of
from mizzen.frontends.torch.fp_lowering.fp_reduction import (
    BATCH_NORM,
    Scaling,
    scaling_of,
    softmax_of,
)
from mizzen.frontends.torch.operators import overload_of
from mizzen.frontends.torch.program import Array
from mizzen.frontends.torch.windows import convolution_of, transposed_convolution_of
from mizzen.graph import DType, Value
from mizzen.ops import Builder


@dataclass(frozen=True, eq=False)
class FpLayer(Layer):
    """A layer of floating-point numbers: weight, bias [O], element type of the input.

    What a batch norm has scaled is float64 until it is written.
    """

    b: Builder
    weight: Array
    bias: Array
    dtype: DType

    def part(self, start: int, count: int) -> FpLayer:
        """Return some of the outputs."""
        outputs = slice(start, start + count)
        return replace(self, weight=self.weight[outputs], bias=self.bias[outputs])

    def product(self, kind: str, source: Value, weight: Array, attributes: dict[str, Any]) -> Value:
        """Add an operation."""
        zero = self.b.constant([0], self.dtype)
        return self.b(
            kind,
            source,
            filled(self.b, weight, self.dtype),
            filled(self.b, self.bias, self.dtype),
            zero,
            zero,
            acc_type=DType.FP32,
            **attributes,
        )


def conv2d(call: FpCall) -> Value:
    """Convolve [N,C,H,W], [C,H,W], [N,C,W] or [C,W], groups too."""
    weight = call.constant("weight")
    x = lifted(call.b, call.value("input"), weight.ndim)
    layer = _layer(call, channels_last_kernel(weight))
    return convolved(call.b, x, layer, convolution_of(call), call.shape)


def conv_transpose2d(call: FpCall) -> Value:
    """Convolve transposed; the weight is [C,O/groups,KH,KW]."""
    weight, how = call.constant("weight"), transposed_convolution_of(call)
    x = lifted(call.b, call.value("input"), weight.ndim)
    layer = _layer(call, transposed_kernel(weight, how))
    return convolved_back(call.b, x, layer, how, call.shape)


def convolution(call: FpCall) -> Value:
    """Convolve, transposed or not: what the others are in core ATen."""
    volumes = len(call.shape_of("weight")) == VOLUMES_RANK
    if call["transposed"]:
        call.need(not volumes, "TOSA has no transposed convolution of volumes")
        return conv_transpose2d(call)
    return conv3d(call) if volumes else conv2d(call)


VOLUMES_RANK = 5
"""Dimensions of volumes with batch and channels."""


def conv3d(call: FpCall) -> Value:
    """Convolve [N,C,D,H,W] or [C,D,H,W], groups too."""
    b, x, weight = call.b, call.value("input"), call.constant("weight")
    kernel, groups = weight.shape[2:], int(call["groups"])
    source = reshape(b, x, (*(1,) * (VOLUMES_RANK - x.type.rank), *x.shape))
    source = transposed(b, source, (0, 2, 3, 4, 1))
    source, pads = _fitting(call, source, kernel)
    attributes = {
        "pad": pads,
        "stride": _three(call["stride"]),
        "dilation": _three(call["dilation"]),
    }
    layer = _layer(call, weight.transpose(0, 2, 3, 4, 1))
    channels, each = source.shape[4] // groups, weight.shape[0] // groups
    values: list[Value] = []
    for group in range(groups):
        part = layer.part(group * each, each)
        given = sliced(b, source, 4, group * channels, channels)
        values.append(part.product("CONV3D", given, part.weight, attributes))
    return reshape(b, transposed(b, concat(b, values, 4), (0, 4, 1, 2, 3)), call.shape)


def _three(extents: Any) -> tuple[int, ...]:
    """Return depth, rows and columns of what is given once for all, or for each."""
    values = [extents] if isinstance(extents, int) else list(extents)
    return tuple(values if len(values) > 1 else values * 3)


def _fitting(call: FpCall, source: Value, kernel: Sequence[int]) -> tuple[Value, tuple[int, ...]]:
    """Return a volume without what no window reaches, which TOSA has not, and its borders."""
    padding, steps = call["padding"], _three(call["dilation"])
    reach = [step * (extent - 1) for step, extent in zip(steps, kernel, strict=True)]
    match padding:
        case "valid":
            before = after = [0, 0, 0]
        case "same":
            before = [extent // 2 for extent in reach]
            after = [extent - half for extent, half in zip(reach, before, strict=True)]
        case _:
            before = after = list(_three(padding))
    pads: list[int] = []
    for axis, stride in enumerate(_three(call["stride"])):
        size = source.shape[1 + axis]
        left = (size + before[axis] + after[axis] - reach[axis] - 1) % stride
        cut = max(left - after[axis], 0)
        source = sliced(call.b, source, 1 + axis, 0, size - cut)
        pads += [before[axis], after[axis] + cut - left]
    return source, tuple(pads)


def _layer(call: FpCall, kernel: Array) -> FpLayer:
    """Return a convolution's weight, outputs first, and bias, with the batch norm after it."""
    bias = call.fixed("bias")
    call.need(bias is not None or not call.given("bias"), "its bias is no constant")
    offset, dtype = _offset(bias, kernel.shape[0]), call.value("input").dtype
    scaling = _batch_norm_behind(call.context, call.node)
    if scaling is None:
        return FpLayer(call.b, kernel, offset, dtype)
    scaled = kernel * scaling.factor.reshape(-1, *(1,) * (kernel.ndim - 1))
    return FpLayer(call.b, scaled, offset * scaling.factor + scaling.offset, dtype)


def _batch_norm_behind(context: Context, node: Any) -> Scaling | None:
    """Return the scaling of the batch norm that is the only user of a node, and mark it as done."""
    users: list[Any] = list(node.users)
    if len(users) != 1 or overload_of(users[0]) not in BATCH_NORM:
        return None
    (user,) = users
    scaling = scaling_of(user, lambda given: _constant(context, given))
    if scaling is not None:
        context.absorbed.add(user)
    return scaling


def _constant(context: Context, node: Any) -> Array | None:
    term = context.terms.get(node)
    return array_of(term.tensor) if isinstance(term, Fixed) else None


def linear(call: FpCall) -> Value:
    """Multiply [..., C] by a weight [O,C]: a convolution of one row with a kernel of 1x1."""
    weight = call.fixed("weight")
    if weight is None or (call.given("bias") and call.fixed("bias") is None):
        return _product(call)
    return projected(call, call.value("input"), weight, call.fixed("bias"), call.shape)


def projected(
    call: FpCall, x: Value, weight: Array, bias: Array | None, shape: Sequence[int]
) -> Value:
    """Multiply [..., C] by a weight [O,C] and add a bias [O]."""
    kernel = weight[:, None, None, :]
    layer = FpLayer(call.b, kernel, _offset(bias, weight.shape[0]), x.dtype)
    return product_of_rows(call.b, x, layer, shape)


def _offset(bias: Array | None, outputs: int) -> Array:
    if bias is None:
        return np.zeros(outputs, np.float64)
    return bias.astype(np.float64)


def _product(call: FpCall) -> Value:
    """Multiply by a weight that the model computes."""
    b, x, weight = call.b, call.value("input"), call.value("weight")
    outputs, inputs = weight.shape
    source = reshape(b, x, (1, x.type.elements // inputs, inputs))
    columns = reshape(b, transposed(b, weight, (1, 0)), (1, inputs, outputs))
    zero = b.constant([0], x.dtype)
    value = b("MATMUL", source, columns, zero, zero, dtype=sum_type(x.dtype))
    value = cast(b, reshape(b, value, call.shape), x.dtype)
    return add(b, value, call.value("bias")) if call.given("bias") else value


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
        turned = np.ascontiguousarray(weight.T)
        offset = np.broadcast_to(bias, (turned.shape[0],))
        return projected(call, call.value(names[1]), turned, offset, call.shape)
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
    turned = transposed(b, key, [*range(rank - 2), rank - 1, rank - 2])
    scores = multiplied(b, a.mul(b, query, scale), turned)
    scores = _masked(call, scores)
    return reshape(b, multiplied(b, softmax_of(b, scores, scores.type.rank - 1), value), call.shape)


def _repeated(b: Builder, x: Value, heads: int) -> Value:
    """Repeat each head of keys or values for as many heads of queries, one after the other."""
    *front, count, length, width = x.shape
    lifted = reshape(b, x, (*front, count, 1, length, width))
    repeated = tiled(b, lifted, (*front, count, heads // count, length, width))
    return reshape(b, repeated, (*front, heads, length, width))


def _masked(call: FpCall, scores: Value) -> Value:
    b = call.b
    if call["is_causal"]:
        lines, columns = scores.shape[-2:]
        hidden = np.triu(np.full((lines, columns), -np.inf), 1)
        return a.add(b, scores, a.filled(b, hidden, scores.dtype))
    if not call.given("attn_mask"):
        return scores
    mask = call.value("attn_mask")
    if mask.dtype is DType.BOOL:
        return a.select(b, mask, scores, -np.inf, scores.dtype)
    return a.add(b, scores, mask)
