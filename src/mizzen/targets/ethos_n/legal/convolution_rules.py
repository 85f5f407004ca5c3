"""Rules of what has weights: convolutions and fully connected layers.

Ref: Ethos-N driver stack 23.02 and 25.03, `SupportQueries.cpp`.
"""

from __future__ import annotations

from typing import Any

from mizzen.targets.ethos_n.legal.tensor_rules import (
    BATCH,
    CALIBRATE,
    FEATURE_MAP_FORMATS,
    OUTPUT_INFO,
    REGISTER_LARGEST,
    V23_02,
    V25_03,
    VALID,
    Case,
    Measure,
    OperationRule,
    Step,
    bias_scales_of,
    bias_type,
    data_type,
    depth,
    first,
    input_layout,
    input_per_tensor,
    input_zero_point,
    layout,
    output,
    output_per_tensor,
    output_zero_point,
    overall_scale,
    padding_text,
    per_channel,
    rule,
    same_paddings,
    second,
    shape_text,
    sides,
    third,
    weights_zero_point,
)
from mizzen.targets.ethos_n.network import (
    Convolution,
    DepthwiseConvolution,
    FullyConnected,
    TransposeConvolution,
    Weighted,
)
from mizzen.targets.ethos_n.tensors import DataFormat, Shape
from mizzen.targets.rules import Breach, Level

Windowed = Convolution | DepthwiseConvolution | TransposeConvolution
"""Operations that move a kernel over planes."""

KERNEL_SIZES = (1, 2, 3, 5, 7, 9)
STRIDES = (1, 2)
TRANSPOSE_STRIDE = 2
STRIDED_KERNEL_LARGEST = 7
"""Largest kernel of a stride of 2, and of a transpose convolution without padding."""
NHWC = (DataFormat.NHWC,)
OTHER_KERNEL = (
    "use a kernel of 1, 2, 3, 5, 7 or 9; a larger one can be made of several convolutions"
)


def _bias_shape(case: Case[Weighted]) -> str | None:
    _, bias, weights = case.inputs
    depthwise = isinstance(case.operation, DepthwiseConvolution)
    channels = weights.shape[2] * weights.shape[3] if depthwise else weights.shape[3]
    if bias.shape == (1, 1, 1, channels):
        return None
    return f"{shape_text(bias)} for {channels} output channels"


@rule("weights-channels").must_have(
    "as many input channels of the weights as of the input",
    "export the network again; grouped convolutions must be split, one for each group",
    "Weights input channels dimension (I) must match Input channels dimension (C)",
)
def _weight_channels(case: Case[Weighted]) -> str | None:
    feature_map, _, weights = case.inputs
    if weights.shape[2] == feature_map.channels:
        return None
    return f"{weights.shape[2]} for {feature_map.channels} input channels"


@rule("window").must_have(
    "a kernel and strides of at least 1",
    "export the network again",
    "Invalid kernel/stride parameters",
)
def _zero_window(case: Case[Windowed]) -> str | None:
    stride, (height, width, _, _) = case.operation.stride, case.inputs[2].shape
    if height and width and stride.x and stride.y:
        return None
    return f"a kernel of {height}x{width} and a stride of {stride.y}x{stride.x}"


@rule("empty").must_have(
    "an output with elements",
    "pad the input, or use a smaller kernel",
    "Output tensor would be empty",
)
def _empty(case: Case[Windowed]) -> str | None:
    made = case.outputs[0]
    return None if made.elements else f"one of {shape_text(made)}"


def _kernel(case: Case[Windowed]) -> Breach | None:
    height, width = case.inputs[2].shape[:2]
    if height in KERNEL_SIZES and width in KERNEL_SIZES:
        return None
    return Breach(f"{height}x{width}", (width, height))


def _square_kernel(case: Case[DepthwiseConvolution]) -> Breach | None:
    height, width = case.inputs[2].shape[:2]
    if height == width:
        return _kernel(case)
    return Breach(f"{height}x{width}", (width, height))


def _stride(wanted: tuple[int, ...]) -> Measure[Windowed]:
    def measure(case: Case[Windowed]) -> str | None:
        x, y = case.operation.stride.x, case.operation.stride.y
        return None if x == y and x in wanted else f"{y}x{x}"

    return measure


@rule("strided-kernel", Level.ESTIMATE_ONLY).must_have(
    f"a kernel of at most {STRIDED_KERNEL_LARGEST} where the stride is 2",
    "use a stride of 1, or a smaller kernel",
    "Unsupported stride for kernel width/height > 7. Stride X and Y must be 1",
)
def _strided_kernel(case: Case[Convolution]) -> str | None:
    height, width = case.inputs[2].shape[:2]
    if case.operation.stride.x <= 1 or max(height, width) <= STRIDED_KERNEL_LARGEST:
        return None
    return f"a kernel of {height}x{width} and a stride of {case.operation.stride.x}"


@rule("strided-kernel", Level.ESTIMATE_ONLY).must_have(
    "a stride of 1 where the kernel is 1x1",
    "use max pooling of size 1 and stride 2 after a stride of 1",
    "Unsupported stride >1 with kernel size 1x1.",
)
def _strided_point(case: Case[DepthwiseConvolution]) -> str | None:
    if case.operation.stride.x == 1 or case.inputs[2].shape[:2] != (1, 1):
        return None
    return f"a stride of {case.operation.stride.x}"


@rule("multiplier", Level.ESTIMATE_ONLY).must_have(
    "a channel multiplier of 1, or one input channel",
    "write it as a convolution whose other weights are 0",
    "If channel multiplier > 1 the weights input channels dimension must be 1",
)
def _multiplier(case: Case[DepthwiseConvolution]) -> str | None:
    _, _, channels, multiplier = case.inputs[2].shape
    if multiplier == 1 or channels == 1:
        return None
    return f"a multiplier of {multiplier} for {channels} channels"


def _bias_zero_point(case: Case[Weighted]) -> str | None:
    zero_point = case.inputs[1].quantization.zero_point
    return str(zero_point) if zero_point else None


def _bias_scales(case: Case[Weighted]) -> str | None:
    feature_map, bias, weights = case.inputs
    scales, wanted = bias.quantization.scales, bias_scales_of(feature_map, weights)
    if scales == wanted:
        return None
    for have, want in zip(scales, wanted, strict=False):
        if have != want:
            return f"{have:.9g} where it is {want:.9g}"
    return f"{len(scales)} scales where there are {len(wanted)}"


def _bias_quantization(case: Case[Weighted]) -> str | None:
    zero_point = _bias_zero_point(case)
    return _bias_scales(case) if zero_point is None else f"a zero point of {zero_point}"


def _plane(case: Case[Windowed]) -> Shape:
    """Return the extents that SAME is reckoned from: of the plane that a kernel moves over."""
    transposed = isinstance(case.operation, TransposeConvolution)
    return case.outputs[0].shape if transposed else case.input.shape


def _is_same(case: Case[Windowed]) -> bool:
    height, width = case.inputs[2].shape[:2]
    operation = case.operation
    return operation.padding in same_paddings(_plane(case), (height, width), operation.stride)


@rule("padding", Level.ESTIMATE_ONLY, V23_02).must_have(
    "no padding, or SAME with the odd element at the end, at the start, or at both",
    "use VALID or SAME padding, or pad before it",
    "Unsupported padding.",
)
def _padding(case: Case[Windowed]) -> str | None:
    padding = case.operation.padding
    return None if padding == VALID or _is_same(case) else padding_text(padding)


@rule("padding", Level.ESTIMATE_ONLY, V25_03).must_have(
    f"at most {REGISTER_LARGEST} elements of padding at each side, or SAME",
    "use less padding, or pad before it",
    "Unsupported padding.",
)
def _wide_padding(case: Case[Windowed]) -> str | None:
    padding = case.operation.padding
    if max(sides(padding)) <= REGISTER_LARGEST or _is_same(case):
        return None
    return padding_text(padding)


@rule("unpadded-kernel", Level.ESTIMATE_ONLY).must_have(
    f"SAME padding where the kernel is over {STRIDED_KERNEL_LARGEST}",
    "use SAME padding, or a smaller kernel",
    "Padding must be SAME for kernel > 7x7.",
)
def _unpadded_kernel(case: Case[TransposeConvolution]) -> str | None:
    height, width = case.inputs[2].shape[:2]
    if case.operation.padding != VALID or max(height, width) <= STRIDED_KERNEL_LARGEST:
        return None
    return f"none and a kernel of {height}x{width}"


_PADDING: tuple[OperationRule[Windowed], ...] = (
    _padding,
    _wide_padding,
)


def _bias_shape_rule(channels: str) -> OperationRule[Weighted]:
    return rule("bias-shape").must_have(
        f"a bias of shape [1, 1, 1, {channels}]",
        "give one bias for each output channel",
        "Invalid bias tensor dimensions",
    )(_bias_shape)


def _kernel_rule(limit: str, measure: Measure[Any]) -> OperationRule[Any]:
    return rule("kernel", Level.ESTIMATE_ONLY).must_have(
        limit,
        OTHER_KERNEL,
        "Unsupported kernel size. Width(%d)/height(%d) must be in { 1, 2, 3, 5, 7, 9 }",
    )(measure)


_KERNEL = _kernel_rule("kernel extents of 1, 2, 3, 5, 7 or 9", _kernel)
_SQUARE_KERNEL = _kernel_rule("a square kernel of 1, 2, 3, 5, 7 or 9", _square_kernel)


def _stride_rule(wanted: tuple[int, ...], limit: str, message: str) -> OperationRule[Windowed]:
    return rule("stride", Level.ESTIMATE_ONLY).must_have(
        limit, f"use {limit}", f"Unsupported stride. Stride X and Y must be {message}"
    )(_stride(wanted))


_STRIDE = _stride_rule(STRIDES, "a stride of 1x1 or 2x2", "equal and in { 1, 2 }")
_TRANSPOSE_STRIDE = _stride_rule((TRANSPOSE_STRIDE,), "a stride of 2x2", "equal to 2")


def _bias_rule(
    name: str, limit: str, message: str, measure: Measure[Weighted]
) -> OperationRule[Weighted]:
    return rule("bias-quantization", Level.ESTIMATE_ONLY).must_have(
        f"a bias with {limit}",
        CALIBRATE,
        f"Bias for {name} must have quantization parameters with {message}",
    )(measure)


_BIAS_ZERO = "zero point of 0"
_BIAS_SCALE = "scale of input scale x weight scale"
_BIAS_EXACT = "a scale of exactly input scale * weight scale, in float32"
_BIAS_ALL = f"a zero point of 0 and {_BIAS_EXACT}"


def _tensor_rules(
    name: str,
    *,
    weights: str,
    weights_format: DataFormat,
    input_layout_message: str,
    bias_channels: str,
) -> tuple[Step[Windowed], ...]:
    """Make the rules of the tensors, up to that of the output's depth.

    name     the operation in the library's messages
    weights  the same where the type of the weights is wrong
    """
    return (
        BATCH,
        depth("input-depth", f"Input to {name}", first),
        data_type("input-type", f"Input to {name}", first),
        layout("input-format", FEATURE_MAP_FORMATS, input_layout_message, first),
        data_type("weights-type", weights, third),
        layout(
            "weights-format",
            (weights_format,),
            f"Weights for {name} must be {weights_format.value}",
            third,
        ),
        bias_type(f"Bias for {name}"),
        layout("bias-format", NHWC, f"Bias for {name} must be NHWC", second),
        _bias_shape_rule(bias_channels),
        _weight_channels,
        _zero_window,
        _empty,
        depth("output-depth", f"Output of {name}", output),
    )


def _quantization_rules(what: str, weights_axis: int) -> tuple[Step[Windowed], ...]:
    """Make the rules of axes and numbers of scales, and of the output info."""
    return (
        *per_channel("Biases", what, 3, second),
        *per_channel("Weights", what, weights_axis, third),
        *input_per_tensor(what),
        *output_per_tensor(what),
        OUTPUT_INFO,
    )


CONVOLUTION: tuple[Step[Convolution], ...] = (
    *_tensor_rules(
        "conv",
        weights="Weight for conv",
        weights_format=DataFormat.HWIO,
        input_layout_message="Input to conv must be NHWC or NHWCB",
        bias_channels="O",
    ),
    *_quantization_rules("Convolution", 3),
    weights_zero_point(Level.UNSUPPORTED),
    input_zero_point(),
    output_zero_point("convInfo"),
    _bias_rule("conv", "a zero point of 0", _BIAS_ZERO, _bias_zero_point),
    _bias_rule("conv", _BIAS_EXACT, _BIAS_SCALE, _bias_scales),
    _KERNEL,
    _STRIDE,
    _strided_kernel,
    *_PADDING,
    overall_scale("Convolution"),
)
DEPTHWISE_CONVOLUTION: tuple[Step[DepthwiseConvolution], ...] = (
    *_tensor_rules(
        "depthwise conv",
        weights="Weight for conv",
        weights_format=DataFormat.HWIM,
        input_layout_message="Input to depthwise conv must be NHWC OR NHWCB",
        bias_channels="I * M",
    ),
    *_quantization_rules("Depthwise Convolution", 2),
    _multiplier,
    weights_zero_point(Level.UNSUPPORTED),
    input_zero_point(),
    output_zero_point("convInfo"),
    # The message speaks of the zero point too, but the library does not look at it.
    _bias_rule("depthwise conv", _BIAS_EXACT, f"{_BIAS_ZERO} and {_BIAS_SCALE}", _bias_scales),
    _SQUARE_KERNEL,
    _STRIDE,
    _strided_point,
    *_PADDING,
    overall_scale("Depthwise Convolution"),
)
TRANSPOSE_CONVOLUTION: tuple[Step[TransposeConvolution], ...] = (
    *_tensor_rules(
        "transpose conv",
        weights="Weights for transpose conv",
        weights_format=DataFormat.HWIO,
        input_layout_message="Input to transpose conv must be NHWC or NHWCB",
        bias_channels="O",
    ),
    *_quantization_rules("Transpose Convolution", 3),
    weights_zero_point(Level.ESTIMATE_ONLY),
    input_zero_point(),
    output_zero_point("convInfo"),
    _bias_rule("transpose conv", _BIAS_ALL, f"{_BIAS_ZERO} and {_BIAS_SCALE}", _bias_quantization),
    _KERNEL,
    _TRANSPOSE_STRIDE,
    *_PADDING,
    _unpadded_kernel,
    # The library spells it so.
    overall_scale("Tranpose Convolution"),
)


@rule("weights-plane").must_have(
    "weights with H and W of 1",
    "reshape the weights to [1, 1, I, O]",
    "Weights tensor must have H and W set to 1 as these dimensions are not needed.",
)
def _weights_plane(case: Case[FullyConnected]) -> str | None:
    height, width = case.inputs[2].shape[:2]
    return None if (height, width) == (1, 1) else f"{height}x{width}"


@rule("weights-channels").must_have(
    "as many input channels of the weights as elements of the input",
    "export the network again",
    "Weights tensor must have I dimension equal to the number of channels of the input tensor.",
)
def _weights_inputs(case: Case[FullyConnected]) -> str | None:
    _, height, width, channels = case.input.shape
    wanted, given = height * width * channels, case.inputs[2].shape[2]
    return None if given == wanted else f"{given} for {wanted} elements"


@rule("weights-scales").must_have(
    "one scale of the weights and one of the bias",
    "quantise the weights for the whole tensor, or write it as a convolution of kernel 1x1",
    "Multiple quantization scales is not supported for FullyConnected operation",
)
def _several_scales(case: Case[FullyConnected]) -> str | None:
    _, bias, weights = case.inputs
    counts = len(weights.quantization.scales), len(bias.quantization.scales)
    if counts == (1, 1):
        return None
    return f"{counts[0]} scales of the weights and {counts[1]} of the bias"


@rule("input-shape", Level.ESTIMATE_ONLY).must_have(
    "an input of shape [1, 1, 1, C]",
    "reshape the input to [1, 1, 1, C] before it",
    "Input to fully connected is expected to be one dimensional using the channels dimension.",
)
def _not_flat(case: Case[FullyConnected]) -> str | None:
    shape = case.input.shape
    return None if shape[:3] == (1, 1, 1) else f"one of {shape_text(case.input)}"


FULLY_CONNECTED: tuple[Step[FullyConnected], ...] = (
    BATCH,
    depth("input-depth", "Input to fully connected", first),
    data_type("input-type", "Input to fully connected", first),
    input_layout("Invalid data format. Only NHWC and NHWCB are supported for fully connected"),
    data_type("weights-type", "Weights for fully connected", third),
    layout("weights-format", (DataFormat.HWIO,), "Weights for fully connected must be HWIO", third),
    _weights_plane,
    _weights_inputs,
    bias_type("Bias for fully connected"),
    layout("bias-format", NHWC, "Bias for fully connected must be NHWC", second),
    _bias_shape_rule("O"),
    _several_scales,
    *input_per_tensor("Fully Connected"),
    weights_zero_point(Level.ESTIMATE_ONLY),
    input_zero_point(),
    output_zero_point("fullyConnectedInfo"),
    OUTPUT_INFO,
    _not_flat,
    _bias_rule("fully connected", _BIAS_ALL, f"{_BIAS_ZERO} and {_BIAS_SCALE}", _bias_quantization),
    overall_scale("Fully Connected"),
)
