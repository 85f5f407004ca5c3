"""Convolutions, linear layers.

PyTorch has channels first, TOSA last: an operation is TRANSPOSE, CONV2D, RESCALE, TRANSPOSE. What
is done twice is taken out by the passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mizzen.frontends.refusal import RefusedError
from mizzen.frontends.torch.context import Call, lowers
from mizzen.frontends.torch.geometry import (
    channels_last_kernel,
    fit,
    need_batch,
    pads_of,
    pair,
    transposed_pads,
)
from mizzen.frontends.torch.int_lowering.rescale import requantize
from mizzen.frontends.torch.values import Array, Pending, Real, Target
from mizzen.graph import DType, Value
from mizzen.ops import Builder

TO_CHANNELS_LAST = (0, 2, 3, 1)
TO_CHANNELS_FIRST = (0, 3, 1, 2)

ACCUMULATORS = {DType.INT8: DType.INT32, DType.INT16: DType.INT48}
"""Type of the input to type of the sums. Ref: TOSA 1.0, 2.3.3 CONV2D, supported types."""


@lowers("aten.conv2d.default", "aten.conv2d.padding", "aten.conv1d.default", "aten.conv1d.padding")
def convolution(call: Call) -> Pending:
    """Convolve [N,C,H,W] or [N,C,W], groups too."""
    need_batch(call, "input")
    x, weight = call.real("input"), _weight(call)
    spatial = weight[0].ndim - 2
    kernel = pair(weight[0].shape[2:], 1)
    stride, dilation = pair(call["stride"], 1), pair(call["dilation"], 1)
    pads = pads_of(call["padding"], spatial, kernel, dilation)
    integers, scales = channels_last_kernel(weight[0], spatial), weight[1]
    groups = int(call["groups"])

    def emit(target: Target) -> Value:
        b = call.b
        source = _to_channels_last(b, x.value)
        source, pad = fit(b, source, kernel, stride, dilation, pads)
        bias = _bias(call, x, weight)
        emitter = _Emitter(b, x, stride, dilation, pad)
        value = emitter.grouped(source, integers, bias, scales * x.scale, groups, target)
        return _to_channels_first(b, value, spatial, target)

    return Pending(emit, call.shape)


@lowers("aten.linear.default")
def linear(call: Call) -> Pending:
    """Multiply [..., C] by a weight [O,C]: a convolution of one row with a kernel of 1x1."""
    x, weight = call.real("input"), _weight(call)
    integers, scales = weight
    outputs, inputs = integers.shape

    def emit(target: Target) -> Value:
        b = call.b
        rows = x.value.type.elements // inputs
        source = reshape(b, x.value, (1, rows, 1, inputs))
        emitter = _Emitter(b, x, (1, 1), (1, 1), (0, 0, 0, 0))
        bias = _bias(call, x, weight)
        kernel = integers.reshape(outputs, 1, 1, inputs)
        value = emitter.dense(source, kernel, bias, scales * x.scale, target)
        return reshape(b, value, call.shape, target)

    return Pending(emit, call.shape)


@lowers("aten.conv_transpose2d.input", "aten.conv_transpose1d.default")
def transposed(call: Call) -> Pending:
    """Transposed convolution of [N,C,H,W]; the weight is [C,O,KH,KW]."""
    need_batch(call, "input")
    x = call.real("input")
    integers, scales = _weight(call, axis=1)
    spatial = integers.ndim - 2
    stride, padding = pair(call["stride"], 1), pair(call["padding"], 0)
    extra = pair(call["output_padding"], 0)
    call.need(int(call["groups"]) == 1, "it is a transposed convolution with groups")
    call.need(pair(call["dilation"], 1) == (1, 1), "it is a dilated transposed convolution")
    kernel = channels_last_kernel(integers.swapaxes(0, 1), spatial)

    def emit(target: Target) -> Value:
        """Add the transposed convolution, and what gives the integers of `target`."""
        b = call.b
        source = _to_channels_last(b, x.value)
        out_pad = transposed_pads(padding, extra)
        value = b(
            "TRANSPOSE_CONV2D",
            source,
            b.constant(np.ascontiguousarray(kernel), DType.INT8),
            b.constant(_bias(call, x, (integers, scales), kernel.shape[0]), _sums(x)),
            b.constant([x.zero_point], x.value.dtype),
            b.constant([0], DType.INT8),
            out_pad=out_pad,
            stride=stride,
            acc_type=_sums(x),
        )
        value = requantize(b, value, scales * x.scale, target)
        return _to_channels_first(b, value, spatial, target)

    return Pending(emit, call.shape)


class _Emitter:
    """Adds the convolutions of one layer."""

    def __init__(
        self,
        b: Builder,
        x: Real,
        stride: tuple[int, int],
        dilation: tuple[int, int],
        pad: tuple[int, int, int, int],
    ) -> None:
        self.b = b
        self.x = x
        self.attributes: dict[str, Any] = {
            "pad": pad,
            "stride": stride,
            "dilation": dilation,
            "acc_type": _sums(x),
        }

    def grouped(
        self, source: Value, kernel: Array, bias: Array, scales: Array, groups: int, target: Target
    ) -> Value:
        """Convolve with a kernel [O,KH,KW,C/groups]."""
        channels = source.shape[3]
        outputs = kernel.shape[0]
        if groups == 1:
            return self.dense(source, kernel, bias, scales, target)
        if groups == channels:
            return self.depthwise(source, kernel, bias, scales, target)
        inputs, each = channels // groups, outputs // groups
        parts = [
            self.dense(
                slice_(self.b, source, 3, index * inputs, inputs),
                kernel[index * each : (index + 1) * each],
                bias[index * each : (index + 1) * each],
                scales if scales.size == 1 else scales[index * each : (index + 1) * each],
                target,
            )
            for index in range(groups)
        ]
        return self.b("CONCAT", *parts, axis=3, quantization=target.quantization)

    def dense(
        self, source: Value, kernel: Array, bias: Array, scales: Array, target: Target
    ) -> Value:
        """Convolve with a kernel [O,KH,KW,C]."""
        sums = self._sums("CONV2D", source, kernel, bias)
        return requantize(self.b, sums, scales, target)

    def depthwise(
        self, source: Value, kernel: Array, bias: Array, scales: Array, target: Target
    ) -> Value:
        """Convolve each channel by itself; the kernel [C*M,KH,KW,1] becomes [KH,KW,C,M]."""
        channels = source.shape[3]
        _, height, width, _ = kernel.shape
        weights = kernel.reshape(channels, -1, height, width).transpose(2, 3, 0, 1)
        sums = self._sums("DEPTHWISE_CONV2D", source, weights, bias)
        return requantize(self.b, sums, scales, target)

    def _sums(self, kind: str, source: Value, kernel: Array, bias: Array) -> Value:
        b, x = self.b, self.x
        return b(
            kind,
            source,
            b.constant(np.ascontiguousarray(kernel), DType.INT8),
            b.constant(bias, _sums(x)),
            b.constant([x.zero_point], x.value.dtype),
            b.constant([0], DType.INT8),
            **self.attributes,
        )


def reshape(b: Builder, value: Value, shape: Sequence[int], target: Target | None = None) -> Value:
    """Add a RESHAPE unless the value has the shape."""
    quantization = target.quantization if target else value.quantization
    if tuple(shape) == value.shape:
        return value
    return b("RESHAPE", value, b.shape(shape), quantization=quantization)


def transpose(b: Builder, value: Value, perms: Sequence[int]) -> Value:
    """Add a TRANSPOSE; the quantisation stays."""
    return b("TRANSPOSE", value, perms=tuple(perms), quantization=value.quantization)


def slice_(b: Builder, value: Value, axis: int, start: int, size: int) -> Value:
    """Add a SLICE along one axis, unless it takes everything."""
    if start == 0 and size == value.shape[axis]:
        return value
    starts = [start if index == axis else 0 for index in range(value.type.rank)]
    sizes = [size if index == axis else extent for index, extent in enumerate(value.shape)]
    quantization = value.quantization
    return b("SLICE", value, b.shape(starts), b.shape(sizes), quantization=quantization)


def _to_channels_last(b: Builder, value: Value) -> Value:
    if value.type.rank == 3:  # [N,C,W] is one row
        count, channels, width = value.shape
        value = reshape(b, value, (count, channels, 1, width))
    return transpose(b, value, TO_CHANNELS_LAST)


def _to_channels_first(b: Builder, value: Value, spatial: int, target: Target) -> Value:
    value = transpose(b, value, TO_CHANNELS_FIRST)
    if spatial == 1:
        count, channels, _, width = value.shape
        value = reshape(b, value, (count, channels, width), target)
    return value


def _weight(call: Call, axis: int = 0) -> tuple[Array, Array]:
    """Return the weight's integers, and its scales by output channel (or the only one)."""
    found = call.constant("weight")
    if found.integers is None or found.quantization is None:
        raise RefusedError("its weight is not quantised", "give its module a configuration")
    quantization = found.quantization
    call.need(quantization.axis in (None, axis), "its weight is quantised along another axis")
    call.need(not any(quantization.zero_points), "its weight's zero point is not 0")
    return found.integers, np.asarray(quantization.scales, np.float64)


def _bias(call: Call, x: Real, weight: tuple[Array, Array], outputs: int | None = None) -> Array:
    """Return the bias as integers of scale input x weight, zeros if there is none."""
    count = outputs if outputs is not None else weight[0].shape[0]
    if call["bias"] is None:
        return np.zeros(count, np.int64)
    found = call.constant("bias")
    scale = weight[1] * x.scale
    quantization = found.quantization
    if found.integers is not None and quantization is not None:
        same = np.allclose(np.asarray(quantization.scales), scale, rtol=1e-6, atol=0.0)
        if same and not any(quantization.zero_points):
            return found.integers.astype(np.int64)
    limit = 2**31 - 1
    return np.clip(np.rint(found.real.astype(np.float64) / scale), -limit, limit).astype(np.int64)


def _sums(x: Real) -> DType:
    return ACCUMULATORS[x.value.dtype]
