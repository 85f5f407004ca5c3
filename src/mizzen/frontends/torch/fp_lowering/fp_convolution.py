"""Convolutions, linear layers; a batch norm behind a convolution is part of it.

Ref: TOSA 1.0, 2.3.3 CONV2D, 2.3.5 DEPTHWISE_CONV2D, 2.3.11 TRANSPOSE_CONV2D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mizzen.frontends.torch.context import overload_of
from mizzen.frontends.torch.fp_lowering.fp_arithmetic import add, filled, sum_type
from mizzen.frontends.torch.fp_lowering.fp_context import (
    Call,
    Context,
    Fixed,
    Result,
    array_of,
    lowers,
)
from mizzen.frontends.torch.fp_lowering.fp_normalization import BATCH_NORM, Scaling, scaling_of
from mizzen.frontends.torch.fp_lowering.fp_shapes import (
    channels_first,
    concat,
    image,
    reshape,
    slice_,
    transpose,
)
from mizzen.frontends.torch.geometry import (
    channels_last_kernel,
    fit,
    pads_of,
    pair,
    transposed_pads,
)
from mizzen.frontends.torch.values import Array
from mizzen.graph import DType, Value
from mizzen.ops import Builder


@dataclass(frozen=True, eq=False)
class _Layer:
    """Weight [O,KH,KW,C/groups] or [C*M,KH,KW,1], bias [O], and the element type of the input.

    What a batch norm has scaled is float64 until it is written.
    """

    weight: Array
    bias: Array
    dtype: DType

    def part(self, start: int, count: int) -> _Layer:
        """Return some of the outputs."""
        rows = slice(start, start + count)
        return _Layer(self.weight[rows], self.bias[rows], self.dtype)


@lowers("aten.conv2d.default", "aten.conv2d.padding", "aten.conv1d.default", "aten.conv1d.padding")
def convolution(call: Call) -> Value:
    """Convolve [N,C,H,W], [C,H,W], [N,C,W] or [C,W], groups too."""
    b, weight = call.b, call.constant("weight")
    spatial = weight.ndim - 2
    kernel = pair(weight.shape[2:], 1)
    stride, dilation = pair(call["stride"], 1), pair(call["dilation"], 1)
    pads = pads_of(call["padding"], spatial, kernel, dilation)
    source, pad = fit(b, image(b, call.value("input"), spatial), kernel, stride, dilation, pads)
    layer = _scaled(call, channels_last_kernel(weight, spatial))
    attributes: dict[str, Any] = {"pad": pad, "stride": stride, "dilation": dilation}
    value = _grouped(b, source, layer, int(call["groups"]), attributes)
    return channels_first(b, value, call.shape)


def _grouped(
    b: Builder, source: Value, layer: _Layer, groups: int, attributes: dict[str, Any]
) -> Value:
    channels, outputs = source.shape[3], layer.weight.shape[0]
    if groups == 1:
        return _sums(b, "CONV2D", source, layer.weight, layer, attributes)
    if groups == channels:
        height, width = layer.weight.shape[1:3]
        weight = layer.weight.reshape(channels, -1, height, width).transpose(2, 3, 0, 1)
        return _sums(b, "DEPTHWISE_CONV2D", source, weight, layer, attributes)
    inputs, each = channels // groups, outputs // groups
    parts = [layer.part(index * each, each) for index in range(groups)]
    return concat(
        b,
        [
            _sums(b, "CONV2D", slice_(b, source, 3, index * inputs, inputs), part.weight, part,
                  attributes)
            for index, part in enumerate(parts)
        ],
        axis=3,
    )  # fmt: skip


def _sums(
    b: Builder, kind: str, source: Value, weight: Array, layer: _Layer, attributes: dict[str, Any]
) -> Value:
    zero = b.constant([0], layer.dtype)
    return b(
        kind,
        source,
        filled(b, weight, layer.dtype),
        filled(b, layer.bias, layer.dtype),
        zero,
        zero,
        acc_type=DType.FP32,
        **attributes,
    )


def _scaled(call: Call, kernel: Array) -> _Layer:
    """Return a convolution's weight, outputs first, and bias, with the batch norm behind it."""
    bias = call.fixed("bias")
    call.need(bias is not None or not call.given("bias"), "its bias is no constant")
    offset = _offset(bias, kernel.shape[0])
    dtype = call.value("input").dtype
    scaling = _batch_norm_behind(call.context, call.node)
    if scaling is None:
        return _Layer(kernel, offset, dtype)
    scaled = kernel * scaling.factor.reshape(-1, *(1,) * (kernel.ndim - 1))
    return _Layer(scaled, offset * scaling.factor + scaling.offset, dtype)


def _batch_norm_behind(context: Context, node: Any) -> Scaling | None:
    """Return what the batch norm that is the only user of a node does, and mark it as done."""
    users: list[Any] = list(node.users)
    if len(users) != 1 or overload_of(users[0]) not in BATCH_NORM:
        return None
    (user,) = users
    scaling = scaling_of(user, lambda given: _constant(context, given))
    if scaling is not None:
        context.absorbed.add(user)
    return scaling


def _constant(context: Context, node: Any) -> Array | None:
    found = context.terms.get(node)
    return array_of(found.tensor) if isinstance(found, Fixed) else None


@lowers("aten.convolution.default")
def general(call: Call) -> Result:
    """Convolve, transposed or not: what the others are in core ATen."""
    return transposed(call) if call["transposed"] else convolution(call)


@lowers("aten.linear.default")
def linear(call: Call) -> Value:
    """Multiply [..., C] by a weight [O,C]: a convolution of one row with a kernel of 1x1."""
    weight = call.fixed("weight")
    if weight is None or (call.given("bias") and call.fixed("bias") is None):
        return _product(call)
    return projected(call, call.value("input"), weight, call.fixed("bias"), call.shape)


def projected(
    call: Call, x: Value, weight: Array, bias: Array | None, shape: Sequence[int]
) -> Value:
    """Multiply [..., C] by a weight [O,C] and add a bias [O]."""
    b, (outputs, inputs) = call.b, weight.shape
    source = reshape(b, x, (1, x.type.elements // inputs, 1, inputs))
    layer = _Layer(weight.reshape(outputs, 1, 1, inputs), _offset(bias, outputs), x.dtype)
    attributes = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1)}
    return reshape(b, _sums(b, "CONV2D", source, layer.weight, layer, attributes), shape)


def _offset(bias: Array | None, outputs: int) -> Array:
    if bias is None:
        return np.zeros(outputs, np.float64)
    return bias.astype(np.float64)


def _product(call: Call) -> Value:
    """Multiply by a weight that the model computes."""
    b, x, weight = call.b, call.value("input"), call.value("weight")
    outputs, inputs = weight.shape
    source = reshape(b, x, (1, x.type.elements // inputs, inputs))
    columns = reshape(b, transpose(b, weight, (1, 0)), (1, inputs, outputs))
    zero = b.constant([0], x.dtype)
    value = b("MATMUL", source, columns, zero, zero, dtype=sum_type(x.dtype))
    value = reshape(b, value, call.shape)
    if value.dtype is not x.dtype:
        value = b("CAST", value, dtype=x.dtype)
    return add(b, value, call.value("bias")) if call.given("bias") else value


@lowers("aten.conv_transpose2d.input", "aten.conv_transpose1d.default")
def transposed(call: Call) -> Value:
    """Transposed convolution; the weight is [C,O/groups,KH,KW]. Dilation puts zeros between."""
    b, weight = call.b, call.constant("weight")
    spatial, groups = weight.ndim - 2, int(call["groups"])
    stride, padding = pair(call["stride"], 1), pair(call["padding"], 0)
    extra = pair(call["output_padding"], 0)
    source = image(b, call.value("input"), spatial)
    kernel = _spread(weight, pair(call["dilation"], 1))
    channels = source.shape[3] // groups
    whole = np.concatenate(np.split(kernel, groups), axis=1).swapaxes(0, 1)
    layer = _scaled(call, channels_last_kernel(whole, spatial))
    each = layer.weight.shape[0] // groups
    pads = transposed_pads(padding, extra)
    values = [
        _transposed(
            b,
            slice_(b, source, 3, group * channels, channels),
            layer.part(group * each, each),
            stride,
            pads,
        )
        for group in range(groups)
    ]
    return channels_first(b, concat(b, values, 3), call.shape)


def _spread(weight: Array, dilation: tuple[int, int]) -> Array:
    """Put zeros between the elements of a kernel [..., KH, KW] or [..., KW]."""
    space = weight.ndim - 2
    for axis, step in zip(range(2, weight.ndim), dilation[-space:], strict=True):
        shape = list(weight.shape)
        shape[axis] = (shape[axis] - 1) * step + 1
        found: Array = np.zeros(shape, weight.dtype)
        found.swapaxes(0, axis)[::step] = weight.swapaxes(0, axis)
        weight = found
    return weight


def _transposed(
    b: Builder, source: Value, layer: _Layer, stride: tuple[int, int], pads: Sequence[int]
) -> Value:
    """Add the operation, then cut away what TOSA's `out_pad` cannot: a whole kernel or more."""
    kernel = layer.weight.shape[1:3]
    able = [max(pad, 1 - kernel[index // 2]) for index, pad in enumerate(pads)]
    value = _sums(
        b,
        "TRANSPOSE_CONV2D",
        source,
        layer.weight,
        layer,
        {"out_pad": tuple(able), "stride": stride},
    )
    cuts = [able[index] - pads[index] for index in range(4)]
    for axis in (0, 1):
        before, after = cuts[2 * axis], cuts[2 * axis + 1]
        value = slice_(b, value, 1 + axis, before, value.shape[1 + axis] - before - after)
    return value
