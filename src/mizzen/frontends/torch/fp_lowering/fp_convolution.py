"""Convolutions, linear layers; a batch norm behind a convolution is part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mizzen.frontends.torch.fp_lowering.fp_arithmetic import add, cast, filled, sum_type
from mizzen.frontends.torch.fp_lowering.fp_context import Context, Fixed, FpCall, array_of
from mizzen.frontends.torch.fp_lowering.fp_normalization import BATCH_NORM, Scaling, scaling_of
from mizzen.frontends.torch.operators import overload_of
from mizzen.frontends.torch.program import Array
from mizzen.frontends.torch.shapes import reshape, transpose
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
        rows = slice(start, start + count)
        return replace(self, weight=self.weight[rows], bias=self.bias[rows])

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
    weight = channels_last_kernel(call.constant("weight"))
    return convolved(call, call.value("input"), _layer(call, weight))


def conv_transpose2d(call: FpCall) -> Value:
    """Convolve transposed; the weight is [C,O/groups,KH,KW]."""
    weight = transposed_kernel(call, call.constant("weight"))
    return convolved_back(call, call.value("input"), _layer(call, weight))


def convolution(call: FpCall) -> Value:
    """Convolve, transposed or not: what the others are in core ATen."""
    return conv_transpose2d(call) if call["transposed"] else conv2d(call)


def _layer(call: FpCall, kernel: Array) -> FpLayer:
    """Return a convolution's weight, outputs first, and bias, with the batch norm behind it."""
    bias = call.fixed("bias")
    call.need(bias is not None or not call.given("bias"), "its bias is no constant")
    offset, dtype = _offset(bias, kernel.shape[0]), call.value("input").dtype
    scaling = _batch_norm_behind(call.context, call.node)
    if scaling is None:
        return FpLayer(call.b, kernel, offset, dtype)
    scaled = kernel * scaling.factor.reshape(-1, *(1,) * (kernel.ndim - 1))
    return FpLayer(call.b, scaled, offset * scaling.factor + scaling.offset, dtype)


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
    b, (outputs, inputs) = call.b, weight.shape
    source = reshape(b, x, (1, x.type.elements // inputs, 1, inputs))
    kernel = weight.reshape(outputs, 1, 1, inputs)
    layer = FpLayer(b, kernel, _offset(bias, outputs), x.dtype)
    return reshape(b, layer.product("CONV2D", source, kernel, POINTWISE), shape)


def _offset(bias: Array | None, outputs: int) -> Array:
    if bias is None:
        return np.zeros(outputs, np.float64)
    return bias.astype(np.float64)


def _product(call: FpCall) -> Value:
    """Multiply by a weight that the model computes."""
    b, x, weight = call.b, call.value("input"), call.value("weight")
    outputs, inputs = weight.shape
    source = reshape(b, x, (1, x.type.elements // inputs, inputs))
    columns = reshape(b, transpose(b, weight, (1, 0)), (1, inputs, outputs))
    zero = b.constant([0], x.dtype)
    value = b("MATMUL", source, columns, zero, zero, dtype=sum_type(x.dtype))
    value = cast(b, reshape(b, value, call.shape), x.dtype)
    return add(b, value, call.value("bias")) if call.given("bias") else value
