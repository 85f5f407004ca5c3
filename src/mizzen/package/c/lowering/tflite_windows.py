"""TFLite's convolutions, products of matrices and pools.

Ref: TFLite, padding.h and kernel_util.cc (PopulateConvolutionQuantizationParams); TFLite Micro,
kernels/conv.cc, depthwise_conv.cc, transpose_conv.cc, fully_connected.cc, batch_matmul.cc and
pooling_common.cc (which sums have 64 bits).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mizzen.package.c.layout import Pool
from mizzen.package.c.lowering.context import Given, Rule, Shape, elements, ref
from mizzen.package.c.lowering.quantized import activation_limits, quantized_limits, scale_of
from mizzen.package.c.lowering.reduction import quantized_multiplier
from mizzen.package.c.lowering.strides import View, broadcast_strides, move, whole
from mizzen.package.c.lowering.windows import (
    POINT,
    Integers,
    Reals,
    Span,
    Weights,
    Window,
    convolve,
    image_strides,
    point_of,
)
from mizzen.package.device import Argument

Width = Callable[[Given, int | None], bool]
"""Whether sums of 16 bits have 64, by the bias."""

SAME = 0
INT32_TYPE = 2
"""The number of INT32 in the schema, for biases that are not there."""
FLOAT = np.dtype(np.float32)
LARGEST = float(np.finfo(np.float32).max)


def convolution(given: Given) -> None:
    """CONV_2D, in groups where the weights have fewer channels than the input."""
    source, filters, bias = _operands(given)
    shape, output = given.row(source).shape, given.row(given.output()).shape
    count, height, width, depth = given.row(filters).shape
    groups = shape[3] // depth
    weights = Weights(filters, depth, count // groups, (0, *_dense(height, width, depth)))
    window = _window(given, shape, output, (height, width))
    convolve(given, source, weights, bias, window, _arithmetic(given, source, filters, bias))


def depthwise(given: Given) -> None:
    """DEPTHWISE_CONV_2D."""
    source, filters, bias = _operands(given)
    shape, output = given.row(source).shape, given.row(given.output()).shape
    _, height, width, count = given.row(filters).shape
    weights = Weights(filters, 1, count // shape[3], (0, 1, width * count, count, 0))
    window = _window(given, shape, output, (height, width))
    how = _arithmetic(given, source, filters, bias, always_wide)
    convolve(given, source, weights, bias, window, how)


def transposed(given: Given) -> None:
    """TRANSPOSE_CONV: the weights go backwards over an input with gaps."""
    _, filters, source, *rest = given.tensors()
    given.must(source is not None and filters is not None, "input and weights must be given")
    source, filters = source or 0, filters or 0
    bias = rest[0] if rest else None
    shape, output = given.row(source).shape, given.row(given.output()).shape
    count, height, width, depth = given.row(filters).shape
    strides = _dense(height, width, depth)
    first = (height - 1) * strides[1] + (width - 1) * strides[2]
    backwards = (0, strides[0], -strides[1], -strides[2], 1)
    lines = _transposed_span(given, shape[1], output[1], height, "stride_h")
    columns = _transposed_span(given, shape[2], output[2], width, "stride_w")
    window = Window(
        shape[0], count, shape[3], lines, columns, image_strides(shape), image_strides(output)
    )
    weights = Weights(filters, depth, count, backwards, first)
    how = _arithmetic(given, source, filters, bias, always_wide)
    convolve(given, source, weights, bias, window, how)


def _transposed_span(given: Given, size: int, output: int, taps: int, name: str) -> Span:
    stride = given.whole(name, 1)
    reached = -(-output // stride)
    if given.whole("padding", SAME) != SAME:
        reached = (output + stride - taps) // stride
    pad = max(0, (reached - 1) * stride + taps - output) // 2
    return Span(output, taps, size, pad=taps - 1 - pad, up=stride)


def fully_connected(given: Given) -> None:
    """FULLY_CONNECTED."""
    source, filters, bias = _operands(given)
    count, depth = given.row(filters).shape[-2:]
    batches = elements(given.row(given.output()).shape) // count
    window = Window(batches, count, depth, POINT, POINT, (depth, 0, 0, 1), (count, 0, 0, 1))
    weights = Weights(filters, depth, count, (0, depth, 0, 0, 1))
    convolve(given, source, weights, bias, window, _arithmetic(given, source, filters, bias))


def product(given: Given) -> None:
    """BATCH_MATMUL: a convolution of rows, with weights that are computed."""
    one, other = given.present()
    turned = (bool(given.get("adj_x", False)), bool(given.get("adj_y", False)))
    how = _arithmetic(given, one, other, None, always_wide)
    how = Reals((-np.inf, np.inf), is_wide=False) if isinstance(how, Reals) else how
    matrices(given, one, other, turned, how)


def matrices(
    given: Given,
    one: int,
    other: int,
    turned: tuple[bool, bool],
    how: Integers | Reals,
    output: int | None = None,
) -> None:
    """Multiply matrices, whose batches broadcast; those that are turned have their rows last."""
    target = given.row(given.output() if output is None else output).shape
    height, width = target[-2:]
    batches = target[:-2]
    depth = given.row(one).shape[-2 if turned[0] else -1]
    one, of_one = _batched(given, one, batches)
    other, of_other = _batched(given, other, batches)
    across = (1, height) if turned[0] else (depth, 1)
    along = (depth, 1) if turned[1] else (1, width)
    lines = Span(height, 1, height)
    window = Window(elements(batches), width, depth, lines, POINT,
                    (of_one, across[0], 0, across[1]),
                    (height * width, width, 0, 1))  # fmt: skip
    weights = Weights(other, depth, width, (of_other, along[0], 0, 0, along[1]))
    convolve(given, one, weights, None, window, how, output)


def _batched(given: Given, index: int, batches: Shape) -> tuple[int, int]:
    """Return matrices as a tensor, and how far apart they are; batches that differ are copied."""
    tensor = given.row(index)
    matrix = tensor.shape[-2:]
    own = elements(tensor.shape[:-2])
    if own == 1:
        return index, 0
    if own == elements(batches):
        return index, elements(matrix)
    shape = (*batches, *matrix)
    target = given.lowering.temporary(shape, tensor.dtype)
    move(given, index, target, View(shape, broadcast_strides(tensor.shape, shape)), whole(shape))
    return target, elements(matrix)


def pooled(operation: Pool) -> Rule:
    """Return the rule of AVERAGE_POOL_2D or MAX_POOL_2D."""

    def rule(given: Given) -> None:
        (source,) = given.present()
        tensor, output = given.row(source), given.row(given.output())
        taps = (given.whole("filter_height"), given.whole("filter_width"))
        window = _window(given, tensor.shape, output.shape, taps)
        limits: tuple[Argument, Argument]
        if tensor.dtype == FLOAT:
            limits = _real_limits(given)
        else:
            given.must(
                tensor.dtype.name in ("int8", "int16"), "numbers must be float32 or quantised"
            )
            limits = quantized_limits(given, output)
        chosen = Pool.GREATEST if operation is Pool.MAXIMUM else operation
        emit_pool(given, source, chosen, window, 0, limits)

    return rule


def emit_pool(
    given: Given,
    source: int,
    operation: Pool,
    window: Window,
    divisor: int,
    limits: tuple[Argument, Argument],
) -> None:
    """Add a call of the kernel `pool`."""
    given.emit(
        "pool", (int(operation), ref(source), window.numbers, divisor, *limits), (given.output(),)
    )


def _operands(given: Given) -> tuple[int, int, int | None]:
    source, filters, *rest = given.tensors()
    given.must(source is not None and filters is not None, "input and weights must be given")
    return source or 0, filters or 0, rest[0] if rest else None


def _dense(height: int, width: int, depth: int) -> tuple[int, int, int, int]:
    return (height * width * depth, width * depth, depth, 1)


def _window(given: Given, shape: Shape, output: Shape, taps: tuple[int, int]) -> Window:
    lines = _span(given, shape[1], output[1], taps[0], "h")
    columns = _span(given, shape[2], output[2], taps[1], "w")
    strides = (image_strides(shape), image_strides(output))
    return Window(shape[0], output[3], shape[3], lines, columns, *strides)


def _span(given: Given, size: int, output: int, taps: int, name: str) -> Span:
    stride = given.whole(f"stride_{name}", 1)
    dilation = given.whole(f"dilation_{name}_factor", 1)
    reached = (output - 1) * stride + (taps - 1) * dilation + 1
    pad = max(0, reached - size) // 2 if given.whole("padding", SAME) == SAME else 0
    return Span(output, taps, size, stride, dilation, pad)


def wide_by_bias(given: Given, bias: int | None) -> bool:
    """Sums of 16 bits have 64 unless the bias has 32."""
    if bias is None:
        return given.whole("quantized_bias_type", 0) != INT32_TYPE
    return given.row(bias).dtype != np.int32


def always_wide(given: Given, bias: int | None) -> bool:
    """Sums of 16 bits have 64."""
    return True


def _arithmetic(
    given: Given, source: int, filters: int, bias: int | None, is_wide: Width = wide_by_bias
) -> Integers | Reals:
    tensors = [given.row(index) for index in (source, filters, given.output())]
    types = tuple(tensor.dtype.name for tensor in tensors)
    if types == ("float32",) * 3:
        return Reals(_real_limits(given), is_wide=False)
    known = types in (("int8",) * 3, ("int16", "int8", "int16"), ("int16",) * 3)
    given.must(known, "numbers must be float32, or int8 or int16 with weights of int8")
    one, output = float(scale_of(given, source)), float(scale_of(given, given.output()))
    count = given.row(given.output()).shape[-1]
    scales = tensors[1].scales if len(tensors[1].scales) > 1 else tensors[1].scales * count
    given.must(len(scales) == count, "weights must have one scale, or one for each channel")
    factors = tuple(
        quantized_multiplier(one * float(np.float32(scale)) / output) for scale in scales
    )
    points = (point_of(tensors[0]), point_of(tensors[1]), point_of(tensors[2]))
    wide = types[0] == "int16" and is_wide(given, bias)
    return Integers(factors, points, quantized_limits(given, tensors[2]), wide)


def _real_limits(given: Given) -> tuple[float, float]:
    low, high = activation_limits(given)
    return (-LARGEST if low is None else low, LARGEST if high is None else high)


RULES: Mapping[str, Rule] = {
    "tflite::CONV_2D": convolution,
    "tflite::DEPTHWISE_CONV_2D": depthwise,
    "tflite::TRANSPOSE_CONV": transposed,
    "tflite::FULLY_CONNECTED": fully_connected,
    "tflite::BATCH_MATMUL": product,
    "tflite::AVERAGE_POOL_2D": pooled(Pool.AVERAGE),
    "tflite::MAX_POOL_2D": pooled(Pool.MAXIMUM),
}
