"""Convolutions, linear layers, products: what a node says of them."""

from __future__ import annotations

import numpy as np

from mizzen.frontends.arrangement.windows import (
    channels_last_kernel,
    convolved,
    convolved_back,
    transposed_kernel,
)
from mizzen.frontends.arrangement.windows import linear as product_of_rows
from mizzen.frontends.quantized import layers
from mizzen.frontends.quantized.layers import IntLayer, bias_of
from mizzen.frontends.quantized.terms import Array, Pending, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.windows import convolution_of, need_batch, transposed_convolution_of
from mizzen.graph import Value


def conv2d(call: IntCall) -> Pending:
    """Convolve [N,C,H,W] or [N,C,W], groups too."""
    need_batch(call, len(call.shape_of("weight")))
    x, (integers, scales), how = call.real("input"), weight_of(call), convolution_of(call)
    weight = channels_last_kernel(integers)

    def emit(target: Target) -> Value:
        layer = layer_of(call, x, weight, scales, target)
        return convolved(call.b, x.value, layer, how, call.shape)

    return Pending(emit, call.shape)


def conv_transpose2d(call: IntCall) -> Pending:
    """Convolve [N,C,H,W] transposed; the weight is [C,O/groups,KH,KW]."""
    need_batch(call, len(call.shape_of("weight")))
    x, (integers, scales) = call.real("input"), weight_of(call, axis=1)
    how = transposed_convolution_of(call)
    weight = transposed_kernel(integers, how)
    scales = scales if scales.size == 1 else np.tile(scales, how.groups)

    def emit(target: Target) -> Value:
        layer = layer_of(call, x, weight, scales, target)
        return convolved_back(call.b, x.value, layer, how, call.shape)

    return Pending(emit, call.shape)


def convolution(call: IntCall) -> Pending:
    """Convolve, transposed or not: what the others are in core ATen."""
    return conv_transpose2d(call) if call["transposed"] else conv2d(call)


def linear(call: IntCall) -> Pending:
    """Multiply [..., C] by a weight [O,C]."""
    x, (integers, scales) = call.real("input"), weight_of(call)
    weight = integers[:, None, None, :]

    def emit(target: Target) -> Value:
        layer = layer_of(call, x, weight, scales, target)
        return product_of_rows(call.b, x.value, layer, call.shape)

    return Pending(emit, call.shape)


def layer_of(call: IntCall, x: Real, weight: Array, scales: Array, target: Target) -> IntLayer:
    """Return a layer of a node's weights [O,KH,KW,C], with their scales, and of its bias."""
    sums = scales * x.scale
    bias = None if call["bias"] is None else call.constant("bias")
    return IntLayer(call.b, x, weight, bias_of(bias, sums, weight.shape[0]), sums, target)


def weight_of(call: IntCall, axis: int = 0) -> tuple[Array, Array]:
    """Return the weight's integers, and its scales by output channel (or the only one)."""
    weight = call.constant("weight")
    if weight.integers is None or weight.quantization is None:
        raise RefusedError("its weight is not quantised", "give its module a configuration")
    quantization = weight.quantization
    call.need(quantization.axis in (None, axis), "its weight is quantised along another axis")
    call.need(not any(quantization.zero_points), "its weight's zero point is not 0")
    return weight.integers, np.asarray(quantization.scales, np.float64)


def matmul(call: IntCall) -> Pending:
    """[..., H, C] times [..., C, W]; leading dimensions must be the same."""
    names = ("self", "mat2" if "mat2" in call.arguments else "other")
    x, y = (call.real(name) for name in names)
    left, right = x.value.shape, y.value.shape
    call.need(
        len(left) >= 2 and len(right) >= 2 and left[:-2] == right[:-2],
        "its operands are no stacks of as many matrices",
        "expand the smaller operand to the other's leading dimensions",
    )
    call.need(x.value.dtype is y.value.dtype, "its operands have different types")
    return Pending(lambda target: layers.matmul(call.b, x, y, target, call.shape), call.shape)
