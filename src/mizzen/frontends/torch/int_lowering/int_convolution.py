"""Convolutions, linear layers, products: sums, which one RESCALE brings to the result's scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from mizzen.frontends.arrangement.movement import reshape
from mizzen.frontends.quantized.scales import requantize
from mizzen.frontends.quantized.terms import Pending, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.int_lowering.int_context import IntCall
from mizzen.frontends.torch.movement import need_batch
from mizzen.frontends.torch.program import Array
from mizzen.frontends.torch.windows import (
    POINTWISE,
    Layer,
    channels_last_kernel,
    convolved,
    convolved_back,
    transposed_kernel,
)
from mizzen.graph import DType, Value
from mizzen.ops import Builder

ACCUMULATORS = {DType.INT8: DType.INT32, DType.INT16: DType.INT48}
"""Type of the input to type of the sums. Ref: TOSA 1.0, 2.3.3 CONV2D, supported types."""


def conv2d(call: IntCall) -> Pending:
    """Convolve [N,C,H,W] or [N,C,W], groups too."""
    need_batch(call, len(call.shape_of("weight")))
    x, (integers, scales) = call.real("input"), weight_of(call)
    weight = channels_last_kernel(integers)

    def emit(target: Target) -> Value:
        return convolved(call, x.value, layer_of(call, x, weight, scales, target))

    return Pending(emit, call.shape)


def conv_transpose2d(call: IntCall) -> Pending:
    """Convolve [N,C,H,W] transposed; the weight is [C,O/groups,KH,KW]."""
    need_batch(call, len(call.shape_of("weight")))
    x, (integers, scales) = call.real("input"), weight_of(call, axis=1)
    weight = transposed_kernel(call, integers)
    scales = scales if scales.size == 1 else np.tile(scales, int(call["groups"]))

    def emit(target: Target) -> Value:
        return convolved_back(call, x.value, layer_of(call, x, weight, scales, target))

    return Pending(emit, call.shape)


def convolution(call: IntCall) -> Pending:
    """Convolve, transposed or not: what the others are in core ATen."""
    return conv_transpose2d(call) if call["transposed"] else conv2d(call)


def linear(call: IntCall) -> Pending:
    """Multiply [..., C] by a weight [O,C]: a convolution of one row with a kernel of 1x1."""
    x, (integers, scales) = call.real("input"), weight_of(call)
    outputs, inputs = integers.shape
    weight = integers.reshape(outputs, 1, 1, inputs)

    def emit(target: Target) -> Value:
        source = reshape(call.b, x.value, (1, x.value.type.elements // inputs, 1, inputs))
        layer = layer_of(call, x, weight, scales, target)
        return reshape(call.b, layer.product("CONV2D", source, weight, POINTWISE), call.shape)

    return Pending(emit, call.shape)


@dataclass(frozen=True, eq=False)
class IntLayer(Layer):
    """A layer on integers that stand for `x`, which gives those of a target.

    scales  of the sums, by output or one for all
    """

    b: Builder
    x: Real
    weight: Array
    bias: Array
    scales: Array
    target: Target

    def part(self, start: int, count: int) -> IntLayer:
        """Return some of the outputs."""
        outputs = slice(start, start + count)
        scales = self.scales if self.scales.size == 1 else self.scales[outputs]
        return replace(self, weight=self.weight[outputs], bias=self.bias[outputs], scales=scales)

    def product(self, kind: str, source: Value, weight: Array, attributes: dict[str, Any]) -> Value:
        """Add an operation, and what gives the target's integers of its sums."""
        b, dtype = self.b, self.x.value.dtype
        sums = b(
            kind,
            source,
            b.constant(np.ascontiguousarray(weight), DType.INT8),
            b.constant(self.bias, ACCUMULATORS[dtype]),
            b.constant([self.x.zero_point], dtype),
            b.constant([0], DType.INT8),
            acc_type=ACCUMULATORS[dtype],
            **attributes,
        )
        return requantize(b, sums, self.scales, self.target)


def layer_of(call: IntCall, x: Real, weight: Array, scales: Array, target: Target) -> IntLayer:
    """Return a layer of a node's weights [O,KH,KW,C], with their scales, and of its bias."""
    sums = scales * x.scale
    return IntLayer(call.b, x, weight, _bias(call, sums, weight.shape[0]), sums, target)


def weight_of(call: IntCall, axis: int = 0) -> tuple[Array, Array]:
    """Return the weight's integers, and its scales by output channel (or the only one)."""
    weight = call.constant("weight")
    if weight.integers is None or weight.quantization is None:
        raise RefusedError("its weight is not quantised", "give its module a configuration")
    quantization = weight.quantization
    call.need(quantization.axis in (None, axis), "its weight is quantised along another axis")
    call.need(not any(quantization.zero_points), "its weight's zero point is not 0")
    return weight.integers, np.asarray(quantization.scales, np.float64)


def _bias(call: IntCall, scale: Array, outputs: int) -> Array:
    """Return the bias as integers of the sums' scale, zeros if there is none."""
    if call["bias"] is None:
        return np.zeros(outputs, np.int64)
    bias = call.constant("bias")
    quantization = bias.quantization
    if bias.integers is not None and quantization is not None:
        same = np.allclose(np.asarray(quantization.scales), scale, rtol=1e-6, atol=0.0)
        if same and not any(quantization.zero_points):
            return bias.integers.astype(np.int64)
    limit = 2**31 - 1
    return np.clip(np.rint(bias.real.astype(np.float64) / scale), -limit, limit).astype(np.int64)


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

    def emit(target: Target) -> Value:
        b = call.b
        count = prod(left[:-2])
        value = b(
            "MATMUL",
            reshape(b, x.value, (count, *left[-2:])),
            reshape(b, y.value, (count, *right[-2:])),
            b.constant([x.zero_point], x.value.dtype),
            b.constant([y.zero_point], y.value.dtype),
        )
        value = requantize(b, value, x.scale * y.scale, target)
        return reshape(b, value, call.shape)

    return Pending(emit, call.shape)
