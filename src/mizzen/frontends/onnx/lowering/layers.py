"""Convolutions, transposed or not, and products with constant weights: sums, rounded once.

Weights are constants with integers of 8 bits, one scale or one for each output. A bias becomes
integers of the sums' scale, whichever integers the model has for it, or none; so does a constant
that is added to the sums before they are quantised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from mizzen.frontends.arrangement.movement import reshape, transposed
from mizzen.frontends.arrangement.windows import (
    Convolution,
    channels_last_kernel,
    convolved,
    convolved_back,
    linear,
    transposed_kernel,
)
from mizzen.frontends.onnx.lowering.call import OnnxCall
from mizzen.frontends.onnx.lowering.windows import SAME_LOWER, SAME_UPPER, pair, placement
from mizzen.frontends.onnx.model import Array
from mizzen.frontends.quantized.layers import BIAS_MAXIMUM, IntLayer, bias_of, matmul
from mizzen.frontends.quantized.scales import typed
from mizzen.frontends.quantized.terms import Constant, Pending, Real, Target
from mizzen.frontends.refusal import RefusedError
from mizzen.graph import DType, Quantization, Value, integer_range

Build = Callable[[IntLayer], Value]
"""Adds what computes a layer."""


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """The weights of a layer, int8, as operations take them: [O,KH,KW,C].

    scales  by output, or one for all
    """

    integers: Array
    scales: Array
    zero_point: int


def conv(call: OnnxCall) -> Pending:
    """Convolve [N,C,H,W] or [N,C,W], groups too."""
    x, weight = call.real(0), weight_of(call, 1, axis=0)
    place = placement(call, weight.integers.shape[2:])
    own = replace(weight, integers=channels_last_kernel(weight.integers))
    convolution = Convolution(place.stride, place.dilation, place.pads, call.whole("group", 1))
    _need_groups(call, convolution.groups, len(weight.integers))
    bias = call.constant(2) if call.given(2) else None

    def build(layer: IntLayer) -> Value:
        return convolved(call.b, x.value, layer, convolution, call.shape)

    return _layer(call, x, own, bias, build, axis=1)


def _need_groups(call: OnnxCall, groups: int, outputs: int) -> None:
    channels = call.shape_of(0)[1]
    call.need(
        groups > 0 and channels % groups == 0 and outputs % groups == 0,
        f"its {channels} channels and {outputs} outputs do not make {groups} groups",
    )


def conv_transpose(call: OnnxCall) -> Pending:
    """Convolve [N,C,H,W] or [N,C,W] transposed; the weight is [C,O/groups,KH,KW]."""
    x, weight = call.real(0), weight_of(call, 1, axis=1)
    groups = call.whole("group", 1)
    _need_groups(call, groups, weight.integers.shape[1] * groups)
    convolution = _transposed_placement(call, weight.integers.shape[2:], groups)
    kernel = transposed_kernel(weight.integers, convolution, weight.zero_point)
    scales = weight.scales if weight.scales.size == 1 else np.tile(weight.scales, groups)
    bias = call.constant(2) if call.given(2) else None

    def build(layer: IntLayer) -> Value:
        return convolved_back(call.b, x.value, layer, convolution, call.shape)

    own = Weight(kernel, scales, weight.zero_point)
    return _layer(call, x, own, bias, build, axis=1)


def _transposed_placement(call: OnnxCall, kernel: Sequence[int], groups: int) -> Convolution:
    """Return what is cut away so that the result has its shape."""
    spatial = len(call.shape_of(0)) - 2
    call.need(
        spatial in (1, 2) and len(kernel) == len(call.shape) - 2 == spatial,
        f"its input has {spatial + 2} dimensions, and windows go over 3 or 4",
    )
    stride, dilation = (pair(call, name, 1, spatial) for name in ("strides", "dilations"))
    way, given = call.text("auto_pad", "NOTSET"), call.wholes("pads", (0,) * (2 * spatial))
    call.need(len(given) == 2 * spatial, "its pads do not fit its images")
    cuts: list[int] = []
    for axis in range(spatial):
        step, spread = (each[-spatial:][axis] for each in (stride, dilation))
        whole = step * (call.shape_of(0)[2 + axis] - 1) + (kernel[axis] - 1) * spread + 1
        total = whole - call.shape[2 + axis]
        if way in (SAME_UPPER, SAME_LOWER) or "output_shape" in call.node.attributes:
            # What is added because the result is larger goes behind.
            total = max(total + pair(call, "output_padding", 0, spatial)[-spatial:][axis], 0)
            half = int(total / 2)
            front = half if way == SAME_UPPER else total - half
        else:
            front = given[axis]
        cuts += [front, whole - call.shape[2 + axis] - front]
    pads = (0, 0, cuts[0], cuts[1]) if spatial == 1 else (cuts[0], cuts[1], cuts[2], cuts[3])
    return Convolution(stride, dilation, pads, groups)


def gemm(call: OnnxCall) -> Pending:
    """Multiply two matrices, one or both transposed, times a number, and add a row."""
    alpha, beta = call.number("alpha", 1.0), call.number("beta", 1.0)
    call.need(np.isfinite(alpha) and alpha > 0, f"its alpha is {alpha}, and no positive number")
    call.need(len(call.shape_of(0)) == len(call.shape_of(1)) == 2, "it is no product of matrices")
    bias = None
    if call.given(2) and beta != 0:
        constant = call.constant(2)
        exact = constant if beta == 1 else Constant(constant.real * np.float32(beta))
        bias = _flat(exact, call.shape[1])
        call.need(bias is not None, "what it adds is not one number for each column")
    x = call.real(0)
    if call.whole("transA", 0):
        x = _turned(call, x)
    is_turned = bool(call.whole("transB", 0))
    if not isinstance(call.term(1), Constant):
        call.need(bias is None, "it adds a bias to a product of two computed matrices",
                  "add the bias by an operator of its own")  # fmt: skip
        y = call.real(1)
        return _product(call, x, _turned(call, y) if is_turned else y, alpha)
    weight = weight_of(call, 1, axis=0 if is_turned else 1)
    return _linear(call, x, weight, is_turned, bias, alpha)


def _turned(call: OnnxCall, x: Real) -> Real:
    return Real(transposed(call.b, x.value, (1, 0)))


def _flat(bias: Constant, outputs: int, axis: int = -1) -> Constant | None:
    """Return a bias as one number for each output; None where it is not."""
    shape = bias.real.shape
    extents = [extent for extent in shape if extent != 1]
    if not extents:
        return Constant(np.full(outputs, bias.real.reshape(()), np.float32))
    place = next(index for index, extent in enumerate(shape) if extent != 1) - len(shape)
    if len(extents) > 1 or extents[0] != outputs or place != axis:
        return None
    integers = None if bias.integers is None else bias.integers.reshape(outputs)
    return replace(bias, real=bias.real.reshape(outputs), integers=integers)


def mat_mul(call: OnnxCall) -> Pending:
    """Multiply [..., H, C] by [..., C, W]; one of one dimension is a row or a column."""
    term = call.term(1)
    shape = call.shape_of(1)
    is_matrix = len(shape) <= 2 or prod(shape[:-2]) == 1
    x = call.real(0)
    if isinstance(term, Constant) and is_matrix and len(shape) <= max(len(call.shape_of(0)), 2):
        weight = weight_of(call, 1, axis=max(len(shape) - 1, 0))
        matrix = weight.integers.reshape(shape[-2:] if len(shape) > 1 else (*shape, 1))
        return _linear(call, x, replace(weight, integers=matrix), False, None, 1.0)
    return _product(call, x, call.real(1), 1.0)


def _product(call: OnnxCall, x: Real, y: Real, alpha: float) -> Pending:
    """Multiply two tensors that are computed, or one."""
    call.need(x.value.dtype is y.value.dtype, "its operands have different types",
              "quantise both to 8 bits, or both to 16")  # fmt: skip
    left, right = (
        Real(_lifted(call, each.value, front)) for each, front in ((x, True), (y, False))
    )

    def emit(target: Target) -> Value:
        scaled = target.scale / alpha
        own = replace(target, quantization=Quantization((scaled,), (target.zero_point,)),
                      low=target.low / alpha, high=target.high / alpha)  # fmt: skip
        return typed(matmul(call.b, left, right, own, call.shape), target)

    return Pending(emit, call.shape)


def _lifted(call: OnnxCall, value: Value, front: bool) -> Value:
    """Return a tensor of one dimension as a row or a column."""
    if value.type.rank > 1:
        return value
    extent = value.shape[0]
    return reshape(call.b, value, (1, extent) if front else (extent, 1))


def _linear(
    call: OnnxCall, x: Real, weight: Weight, is_turned: bool, bias: Constant | None, alpha: float
) -> Pending:
    """Multiply by a constant matrix, [O,C] if it is turned, else [C,O]."""
    matrix = weight.integers if is_turned else weight.integers.T
    outputs, inputs = matrix.shape
    own = replace(
        weight,
        integers=matrix.reshape(outputs, 1, 1, inputs),
        scales=weight.scales * alpha,
    )
    return _layer(call, x, own, bias, lambda layer: linear(call.b, x.value, layer, call.shape))


def _layer(
    call: OnnxCall,
    x: Real,
    weight: Weight,
    bias: Constant | None,
    build: Build,
    axis: int = -1,
    further: Array | None = None,
) -> Pending:
    """Return a layer's result, which a further bias can go into.

    axis  of the outputs in the result
    """
    call.need(
        x.value.dtype is DType.INT8 or not weight.zero_point,
        "its weight has a zero point, and its input 16 bits",
        "quantise the weight symmetrically",
    )
    outputs = len(weight.integers)
    sums = weight.scales * x.scale
    integers = bias_of(bias, sums, outputs)
    if bias is not None:
        steps = _steps(bias.real, sums)
        integers = np.where(np.abs(steps) > BIAS_MAXIMUM, steps, integers)
    if further is not None:
        integers = integers + _steps(further, sums)

    def emit(target: Target) -> Value:
        own = _with_room(x, weight, integers, sums / target.scale)
        return build(IntLayer(call.b, x, weight.integers, own, sums, target, weight.zero_point))

    def with_bias(constant: Constant) -> Pending | None:
        rank = len(call.shape)
        flat = _flat(constant, outputs, axis if axis < 0 else axis - rank)
        if flat is None or further is not None or outputs != call.shape[axis]:
            return None
        return _layer(call, x, weight, bias, build, axis, flat.real)

    if further is None:
        call.context.sums[call.node.outputs[0]] = with_bias
    return Pending(emit, call.shape)


def _steps(reals: Array, scales: Array) -> Array:
    """Return numbers in steps of sums, however many."""
    with np.errstate(over="ignore"):
        steps = np.rint(reals.astype(np.float64) / scales)
    return np.clip(np.nan_to_num(steps), -LARGEST, LARGEST).astype(np.int64)


def _with_room(x: Real, weight: Weight, bias: Array, steps: Array) -> Array:
    """Return a bias with which no sum leaves 32 bits, which those of 8 bits have.

    steps  of the result in one of the sums, by output or for all

    A channel whose weights are all next to nothing has sums of a scale as small, and a bias of as
    many bits as there are: it is cut where that changes no result.
    """
    if x.value.dtype is not DType.INT8 or len(bias) != len(weight.integers):
        return bias
    factors = np.abs(weight.integers.astype(np.int64) - weight.zero_point)
    low, high = integer_range(DType.INT8)
    greatest = max(high - x.zero_point, x.zero_point - low)
    most = factors.reshape(len(factors), -1).sum(1) * greatest
    limit = BIAS_MAXIMUM - most
    cut = np.clip(bias, -limit, limit)
    saturates = (np.abs(cut) - most) * steps > STEPS
    harmless = saturates | (np.abs(bias - cut) * steps < HALF)
    if limit.min(initial=0) < 0 or not np.all(harmless):
        raise RefusedError(
            "its sums do not fit into 32 bits: its bias is large for the scales of its input and "
            "weight",
            "calibrate the model again, with data that reach its inputs' whole range",
        )
    return cut


LARGEST = (1 << 39) - 1
"""The greatest bias: sums of 16 bits have 48, and NPUs' biases 40."""

HALF = 0.5
STEPS = 1 << 16
"""More steps than a result has."""


def weight_of(call: OnnxCall, index: int, axis: int) -> Weight:
    """Return an input as weights; `axis` is that of the outputs, of which each may have a scale."""
    weight = call.constant(index)
    quantization = weight.quantization
    if weight.integers is None or quantization is None:
        raise RefusedError(
            "its weight is not quantised", "quantise weights too, to 8 bits (DequantizeLinear)"
        )
    call.need(weight.integers.dtype.itemsize == 1, f"its weight is of {weight.integers.dtype.name}",
              "quantise weights to 8 bits")  # fmt: skip
    call.need(
        quantization.axis in (None, axis),
        f"its weight has a scale for each index of dimension {quantization.axis}, which is not "
        "that of its outputs",
        "quantise it with one scale for each output, or one for all",
    )
    zeros = set(quantization.zero_points)
    call.need(
        len(zeros) == 1,
        "its weight has a zero point for each channel",
        "quantise weights symmetrically, or with one scale",
    )
    low, high = integer_range(DType.INT8)
    zero = zeros.pop()
    call.need(low <= zero <= high, f"its weight's zero point is {zero}")
    return Weight(weight.integers, np.asarray(quantization.scales, np.float64), zero)
