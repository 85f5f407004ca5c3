"""Convolutions and dense layers.

All of them are a sum with bias, RESCALE to the output's type and, where the fused activation
bounds more than the type does, CLAMP. Weights are constants with the file's quantisation (views of
it), the bias has scale input * weights of each channel, RESCALE's output the output's quantisation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mizzen.flatbuffer.tflite import TensorType as FileType
from mizzen.frontends.tflite.context import Call, kept, lowers, zero
from mizzen.frontends.tflite.lowering.lower_matmul import dense_of_computed
from mizzen.frontends.tflite.lowering.requantization import (
    Scale,
    activated,
    reach,
    rescale,
    scale_of,
    short_scale_of,
)
from mizzen.frontends.tflite.lowering.windows import window_of
from mizzen.frontends.tflite.model import Tensor
from mizzen.frontends.tflite.tflite_tensors import Array, quantization_of
from mizzen.graph import DType, Quantization, RoundingMode, Value
from mizzen.ops.tensor import Weighted

SUMS = {DType.INT8: DType.INT32, DType.INT16: DType.INT48}
"""Type of the input to type of the sums. Ref: TOSA 1.0, 2.3.3 CONV2D, supported types."""

LONG_SUMS = ("DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")
"""Operators that add up 16-bit data in 64 bits always; others if the bias has 64 bits."""

SUM_LIMIT, LONG_SUM_LIMIT = 1 << 31, 1 << 47
SHORT_IDENTITY = Scale(
    np.array([1 << 14]), np.array([14]), long=False, rounding=RoundingMode.SINGLE_ROUND
)


@lowers("CONV_2D")
def convolution(call: Call) -> Value:
    """[N,H,W,IC], weights [OC,KH,KW,IC]: [SLICE,] CONV2D, RESCALE [, CLAMP]."""
    layer = _layer(call, 0, 1, 2, axis=0)
    count, height, width, channels = _shape(call, layer.weights)
    call.need(layer.x.shape[-1:] == (channels,), "it convolves groups of channels")
    window = window_of(call, (height, width))
    weight = call.constant(1, layer.weights.shape, layer.quantization(0))
    bias = layer.bias(count)
    source, pad = window.lay(call.b, call.value())
    sums = call.b(
        "CONV2D",
        source,
        weight,
        bias,
        *layer.zeros(source),
        pad=pad,
        stride=window.stride,
        dilation=window.dilation,
    )
    return layer.finish(sums, height * width * channels)


@lowers("DEPTHWISE_CONV_2D")
def depthwise(call: Call) -> Value:
    """[N,H,W,C], weights [1,KH,KW,C*M]: [SLICE,] DEPTHWISE_CONV2D, RESCALE [, CLAMP].

    The weights are [KH,KW,C,M]; they have a quantisation unless both C and M are more than 1 and
    there are several scales.
    """
    layer = _layer(call, 0, 1, 2, axis=3)
    _, height, width, outputs = _shape(call, layer.weights)
    channels = layer.x.shape[-1]
    call.need(channels > 0 and outputs % channels == 0, "its channels do not fit its weights")
    multiplier = outputs // channels
    given = call.option("depth_multiplier", multiplier)
    call.need(given == multiplier, "its channels do not fit its multiplier")
    window = window_of(call, (height, width))
    axis = 2 if multiplier == 1 else 3 if channels == 1 else None
    weight = call.constant(1, (height, width, channels, multiplier), layer.quantization(axis))
    bias = layer.bias(outputs)
    source, pad = window.lay(call.b, call.value())
    sums = call.b(
        "DEPTHWISE_CONV2D",
        source,
        weight,
        bias,
        *layer.zeros(source),
        pad=pad,
        stride=window.stride,
        dilation=window.dilation,
    )
    return layer.finish(sums, height * width)


@lowers("TRANSPOSE_CONV")
def transposed(call: Call) -> Value:
    """[N,H,W,IC], weights [OC,KH,KW,IC]: TRANSPOSE_CONV2D, RESCALE [, CLAMP]."""
    layer = _layer(call, 2, 1, 3, axis=0)
    count, *kernel, channels = _shape(call, layer.weights)
    call.need(layer.x.shape[-1:] == (channels,), "its channels do not fit its weights")
    window = window_of(call, (kernel[0], kernel[1]))
    weight = call.constant(1, layer.weights.shape, layer.quantization(0))
    bias = layer.bias(count)
    call.need(len(call.output().shape) == 4, "its output is no image")
    pads: list[int] = []
    for axis in (0, 1):
        size, wanted = layer.x.shape[1 + axis], call.output().shape[1 + axis]
        before = window.before(wanted, axis)
        natural = (size - 1) * window.stride[axis] + kernel[axis]
        pads += [-before, wanted - natural + before]
    source = call.value(2)
    sums = call.b(
        "TRANSPOSE_CONV2D",
        source,
        weight,
        bias,
        *layer.zeros(source),
        out_pad=tuple(pads),
        stride=window.stride,
    )
    return layer.finish(sums, kernel[0] * kernel[1] * channels)


@lowers("FULLY_CONNECTED")
def dense(call: Call) -> Value:
    """[..., IC], weights [OC,IC]: RESHAPE, CONV2D, RESCALE [, CLAMP], RESHAPE.

    Rows are images of one pixel, [N,1,1,IC], the weights [OC,1,1,IC]. RESCALE of unsigned bytes
    rounds once, as the one kernel for them, LiteRT's, does; that one multiplies by the scale in
    float64, which differs by a step from the multiplier of 31 bits where a sum is that near to
    a tie. Of computed weights it is a MATMUL.
    """
    if call.input(1).data is None:
        return dense_of_computed(call)
    layer = _layer(call, 0, 1, 2, axis=0, dense=True)
    call.need(call.option("weights_format") == 0, "its weights are shuffled")
    call.need(len(layer.weights.shape) == 2, "its weights are no matrix")
    outputs, inputs = layer.weights.shape
    call.need(inputs > 0 and outputs > 0, "it has no weights")
    rows = layer.x.elements // inputs
    weight = call.constant(1, (outputs, 1, 1, inputs), layer.quantization(0))
    bias = layer.bias(outputs)
    b = call.b
    x = call.value()
    source = b("RESHAPE", x, b.shape([rows, 1, 1, inputs]), quantization=kept(x))
    sums = b(
        "CONV2D",
        source,
        weight,
        bias,
        *layer.zeros(source),
        pad=(0, 0, 0, 0),
        stride=(1, 1),
        dilation=(1, 1),
    )
    return b("RESHAPE", layer.finish(sums, inputs), b.shape(call.output().shape))


@dataclass(frozen=True, slots=True)
class _Layer:
    """What a convolution or dense layer has: tensors and how they are quantised.

    weight_scales  one, or one for each output channel
    """

    call: Call
    x: Tensor
    weights: Tensor
    bias_index: int
    input: Quantization
    output: Quantization
    weight_scales: Quantization
    dense: bool

    @property
    def per_channel(self) -> bool:
        return len(self.weight_scales.scales) > 1

    def quantization(self, axis: int | None) -> Quantization | None:
        """Return the quantisation of the weights, whose channels are an axis in the graph."""
        if not self.per_channel:
            return self.weight_scales
        if axis is None:
            return None
        return Quantization(self.weight_scales.scales, self.weight_scales.zero_points, axis)

    def zeros(self, source: Value) -> tuple[Value, Value]:
        """Return the zero points of input and weights as operands."""
        b = self.call.b
        weights = self.weight_scales.zero_points[0]
        return zero(b, source.dtype, self.input.zero_point), zero(b, DType.INT8, weights)

    def bias(self, channels: int) -> Value:
        """Return the bias, zeros if the operator has none."""
        call, dtype = self.call, SUMS[self._dtype]
        quantization = self._bias_quantization()
        if not call.has(self.bias_index):
            zeros = np.zeros(channels, dtype.numpy)
            b = call.b
            return b.graph.constant(
                zeros, dtype, quantization=quantization, origin=b.origin, group=b.group
            )
        tensor = call.input(self.bias_index)
        allowed = {FileType.INT32}
        if dtype is DType.INT48:
            long_only = call.operator.kind in LONG_SUMS
            allowed = {FileType.INT64} if long_only else {FileType.INT32, FileType.INT64}
        call.need(tensor.type in allowed, f"its bias is {tensor.type.name}")
        call.need(tensor.elements == channels, "its bias does not fit its channels")
        b = call.b
        value = b.graph.constant(
            call.contents(self.bias_index).reshape(channels),
            dtype,
            quantization=quantization,
            origin=b.origin,
            group=b.group,
        )
        value.name = tensor.name
        return value

    def _bias_quantization(self) -> Quantization:
        scales = tuple((self.input.scale * np.array(self.weight_scales.scales)).tolist())
        return Quantization(scales, (0,) * len(scales), 0 if self.per_channel else None)

    @property
    def _dtype(self) -> DType:
        return DType.INT16 if self.x.type is FileType.INT16 else DType.INT8

    def _scales(self) -> Array:
        """Return what sums are multiplied by, one number or one for each channel, as float64.

        LiteRT's kernels for unsigned bytes multiply the scales of input and weights in float32.
        """
        weights = np.array(self.weight_scales.scales)
        if self.x.type is FileType.UINT8 and not self.dense:
            weights = weights.astype(np.float32) * np.float32(self.input.scale)
            return weights.astype(np.float64) / self.output.scale
        return self.input.scale * weights / self.output.scale

    def finish(self, sums: Value, products: int) -> Value:
        """Scale sums of so many products, and the bias, to the output's integers; clamp them."""
        b, scales, bound = self.call.b, self._scales(), self._bound(sums, products)
        self.call.need(bound < LONG_SUM_LIMIT, "its 48-bit sums can overflow")
        short = sums.dtype is DType.INT32 or self._sums_are_short
        if short and sums.dtype is not DType.INT32:
            self.call.need(bound < SUM_LIMIT, "its 32-bit sums can overflow")
            sums = rescale(b, sums, SHORT_IDENTITY, DType.INT32, bound=bound)
        scale = scale_of(scales) if short else short_scale_of(scales)
        if self.dense and self.x.type is FileType.UINT8:
            scale = replace(scale, rounding=RoundingMode.SINGLE_ROUND)
        most = bound * float((scale.multipliers / np.exp2(scale.shifts)).max())
        self.call.need(most < SUM_LIMIT / 2 or short, "its scaled sums can overflow")
        value = rescale(
            b,
            sums,
            scale,
            self._dtype,
            bound=bound,
            zero_points=(0, self.output.zero_point),
            quantization=self.output,
        )
        return activated(self.call, value, self.output)

    @property
    def _sums_are_short(self) -> bool:
        """Whether TFLite adds up 16-bit data in 32 bits: the type of the bias says so."""
        if self.call.operator.kind in LONG_SUMS:
            return False
        if self.call.has(self.bias_index):
            return self.call.input(self.bias_index).type is FileType.INT32
        return int(self.call.option("quantized_bias_type")) == FileType.INT32

    def _bound(self, sums: Value, products: int) -> float:
        """Return what every sum is less than in magnitude."""
        assert isinstance(sums.producer, Weighted)
        constants = sums.producer.bias.constant
        assert constants is not None
        most = max(abs(int(constants.min())), abs(int(constants.max())))
        largest = reach(self._dtype, self.input.zero_point)
        weights = reach(DType.INT8, self.weight_scales.zero_points[0])
        return float(products * largest * weights + most + 1)


def _layer(
    call: Call, x: int, weights: int, bias: int, *, axis: int, dense: bool = False
) -> _Layer:
    """Read a layer's tensors; refuse types that no kernel of TFLite takes."""
    source, filters = call.input(x), call.input(weights)
    call.need_types(FileType.INT8, FileType.INT16, FileType.UINT8, tensors=(source, call.output()))
    wanted = FileType.UINT8 if source.type is FileType.UINT8 else FileType.INT8
    call.need(filters.type is wanted, f"its weights are {filters.type.name}")
    call.need(len(source.shape) == 4 or dense, "its input is no image")
    scales = quantization_of(filters)
    call.need(scales is not None, "its weights have no scale")
    assert scales is not None
    channels = filters.shape[axis] if len(filters.shape) > axis else 0
    several = len(scales.scales)
    fits = several == 1 or (several == channels and scales.axis == axis)
    call.need(fits, "its weights have not one scale for each output channel")
    shifted = wanted is FileType.UINT8 or (dense and several == 1)
    points = sorted(set(scales.zero_points))
    holds = len(points) == 1 if shifted else points == [0]
    first = next((row for row in points if row), 0)
    call.need(
        holds,
        f'its weights "{filters.name}" have a zero point of {first}, and its kernels take '
        f"{'one for all of them' if shifted else '0'}",
        help="quantise the weights symmetrically, as TensorFlow Lite does, with zero points of 0",
    )
    return _Layer(
        call,
        source,
        filters,
        bias,
        call.quantization(source),
        call.quantization(call.output()),
        scales,
        dense,
    )


def _shape(call: Call, weights: Tensor) -> tuple[int, int, int, int]:
    call.need(len(weights.shape) == 4, "its weights are no images")
    a, b, c, d = weights.shape
    call.need(min(a, b, c, d) > 0, "it has no weights")
    return a, b, c, d
