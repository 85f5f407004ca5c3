"""Convolutions and dense layers, sums of products with constant weights, RESCALEd to 8 bits.

With them what all windows over images have: padding of an operation's own, a PAD before it, a
SLICE that cuts. TOSA wants the last window to end where the padded image ends; front-ends cut off
what no window reaches. The Support Library leaves it out itself, so the SLICE is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from mizzen.graph import Array, Value
from mizzen.ops.data_layout import Pad, Slice
from mizzen.ops.tensor import Conv2d, DepthwiseConv2d, Pool2d, TransposeConv2d, Windowed
from mizzen.ops.type_conversion import Rescale
from mizzen.patterns import Const, Match, Pattern, Reject, Var, maybe, op
from mizzen.targets.ethos_n.network import (
    Convolution,
    DepthwiseConvolution,
    FullyConnected,
    MeanXy,
    Operand,
    Pooling,
    PoolingType,
    Requantize,
    TransposeConvolution,
    Weighted,
    output_infos,
)
from mizzen.targets.ethos_n.patterns.graph_values import (
    DATA_TYPES,
    Emission,
    Findings,
    Rescaling,
    contents,
    info_of,
    number,
    quantization_info,
    rescaling_of,
    unfit,
)
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    Padding,
    QuantizationInfo,
    Shape,
    Stride,
    TensorInfo,
)

Pads = tuple[int, int, int, int]
"""Top, bottom, left, right."""

X = Var("x")
"""What is looked at, before it is padded or cut."""
AMOUNTS, FILLING = Const("amounts"), Const("filling")
PAD = op(Pad, X, AMOUNTS, FILLING, once=True)
START = Const("start")
PADDED = maybe(PAD)
CUT = op(Slice, PADDED, START, once=True)
IMAGE = maybe(CUT)
"""What a window goes over, as the last operation takes it."""


@dataclass(frozen=True, slots=True)
class Window:
    """Where windows are: `padding` of the image `X`, and the step from one to the next."""

    padding: Padding
    stride: Stride


def window_of(match: Match, findings: Findings, filling: int) -> Window:
    """Read the window of a match's last windowed operation.

    filling  the number that a PAD must pad with
    """
    operation = next(each for each in match.operations if isinstance(each, (Pool2d, Windowed)))
    vertical, horizontal = operation.stride
    top, bottom, left, right = operation.pad
    if PAD in match:
        more = _amounts(match, findings, filling)
        top, bottom, left, right = top + more[0], bottom + more[1], left + more[2], right + more[3]
    if CUT in match:
        lines, columns = _cut(match, findings)
        bottom, right = max(bottom - lines, 0), max(right - columns, 0)
    return Window(Padding(top, bottom, left, right), Stride(horizontal, vertical))


def _amounts(match: Match, findings: Findings, filling: int) -> Pads:
    filled = number(match[FILLING])
    findings.need(
        filled == filling,
        "padding-number",
        f"padding number={filled}, padding number must = {filling}",
        limit=f"padding with {filling}",
        actual=str(filled),
        help="pad with the number that stands for zero",
    )
    pairs = contents(match[AMOUNTS]).reshape(-1, 2).tolist()
    plane = pairs[1:3] if len(pairs) == 4 else [[0, 0], [0, 0]]
    outside = len(pairs) != 4 or any((*pairs[0], *pairs[3]))
    findings.need(
        not outside,
        "padding-dimensions",
        f"padding={pairs}, padding must be of height and width",
        limit="padding of height and width",
        help="pad nothing but height and width",
    )
    (top, bottom), (left, right) = plane
    return top, bottom, left, right


def _cut(match: Match, findings: Findings) -> tuple[int, int]:
    """Return how many rows and columns are cut off at the end."""
    start = contents(match[START]).reshape(-1)
    before, after = match[CUT].input1.shape, match[CUT].result.shape
    lost = np.subtract(before, after).tolist()
    only_end = not start.any() and len(lost) == 4 and not (lost[0] or lost[3])
    findings.need(
        only_end,
        "cut",
        f"slice begin={start.tolist()}, a slice must leave out only what no window reaches",
        help="let the operator that takes the slice take the whole tensor",
    )
    return (lost[1], lost[2]) if only_end else (0, 0)


def needs_extents(findings: Findings, given: tuple[int, ...], value: Value) -> None:
    """Note where windows are at other places than in the graph: more was cut than they leave."""
    findings.need(
        given == value.shape,
        "extents",
        f"output shape={list(value.shape)}, output shape must = {list(given)}",
        limit=f"an output of {'x'.join(map(str, given))}",
        actual="x".join(map(str, value.shape)),
        help="let the operator take the whole tensor, and pad as SAME or VALID do",
    )


WEIGHTS, BIAS = Const("weights"), Const("bias")
INPUT_ZERO, WEIGHTS_ZERO = Const("input zero point"), Const("weights zero point")
OPERANDS = (WEIGHTS, BIAS, INPUT_ZERO, WEIGHTS_ZERO)

CONVOLUTION = op((Conv2d, DepthwiseConv2d), IMAGE, *OPERANDS, once=True)
CONVOLVED = op(Rescale, CONVOLUTION)
TRANSPOSED = op(TransposeConv2d, X, *OPERANDS, once=True)
SPREAD = op(Rescale, TRANSPOSED)
PRODUCT = op(Conv2d, X, *OPERANDS, once=True)
DENSE = op(Rescale, PRODUCT)

TO_HWIO = (1, 2, 3, 0)
"""From TOSA's weights [OC,KH,KW,IC]."""

RECORDED = 1e-5
"""Relative difference up to which recorded scales of weights are those that RESCALE has: some
kernels multiply scales in float32 first."""


def _is_one_pixel(match: Match) -> Reject | None:
    """The input is one pixel, the kernel 1x1."""
    height, width = match[X].shape[1:3]
    kernel = tuple(match[WEIGHTS].shape[1:3])
    if (height, width) != (1, 1) or kernel != (1, 1):
        return Reject(f"its input must be one pixel, and is {height}x{width}", match[PRODUCT])
    return None


PATTERNS = {
    "qnn_fc": Pattern("ethos-n.qnn_fc", DENSE, (_is_one_pixel,)),
    "qnn_conv2d": Pattern("ethos-n.qnn_conv2d", CONVOLVED),
    "qnn_conv2d_transpose": Pattern("ethos-n.qnn_conv2d_transpose", SPREAD),
}


@dataclass(frozen=True, slots=True)
class Weights:
    """Numbers [H,W,I,O] or [H,W,I,M] with their quantisation, the bias, and the output's."""

    data: Array
    info: TensorInfo
    bias: Array
    bias_info: TensorInfo
    output: QuantizationInfo


def convolution(emission: Emission, match: Match) -> None:
    """Add a convolution, depthwise where it is."""
    findings, result = Findings(), match.root.result
    findings.feature_map(match[X], result)
    _dilation(findings, match[CONVOLUTION])
    window = window_of(match, findings, number(match[INPUT_ZERO]))
    findings.settle()
    source = info_of(match[X])
    depthwise = match[CONVOLUTION].kind == "DEPTHWISE_CONV2D"
    # A single input channel is convolved with every kernel: that is no work apart.
    depthwise = depthwise and source.channels > 1
    weights = _weights(match, source, DataFormat.HWIM if depthwise else DataFormat.HWIO)
    kind = DepthwiseConvolution if depthwise else Convolution
    operation = kind(window.padding, window.stride, weights.output)
    (given,) = output_infos(operation, (source, weights.bias_info, weights.info))
    needs_extents(findings, given.shape, result)
    findings.settle()
    emission.bind(result, add(emission, operation, emission.operand(match[X]), weights))


def transposed(emission: Emission, match: Match) -> None:
    """Add a transposed convolution: TOSA's `out_pad` is negative where the library pads."""
    findings, result = Findings(), match.root.result
    findings.feature_map(match[X], result)
    pads = tuple(-amount for amount in match[TRANSPOSED]["out_pad"])
    findings.need(
        min(pads) >= 0,
        "output-padding",
        f"output padding={[-pad for pad in pads]}, output padding must be <= 0",
        limit="no output padding",
        actual=str([-pad for pad in pads]),
        help="let the transposed convolution give as many rows and columns as it reaches",
    )
    findings.settle()
    vertical, horizontal = match[TRANSPOSED]["stride"]
    source = info_of(match[X])
    weights = _weights(match, source, DataFormat.HWIO)
    operation = TransposeConvolution(
        Padding(pads[0], pads[1], pads[2], pads[3]), Stride(horizontal, vertical), weights.output
    )
    emission.bind(result, add(emission, operation, emission.operand(match[X]), weights))


def dense(emission: Emission, match: Match) -> None:
    """Add a dense layer of one pixel: [1,1,1,C]."""
    findings, result = Findings(), match.root.result
    findings.feature_map(match[X], result)
    _dilation(findings, match[PRODUCT])
    findings.settle()
    shape: Shape = (1, 1, 1, match[X].shape[3])
    weights = _weights(match, info_of(match[X], shape), DataFormat.HWIO)
    source = emission.operand(match[X], shape)
    emission.bind(result, add(emission, FullyConnected(weights.output), source, weights))


def add(emission: Emission, operation: Weighted, source: Operand, weights: Weights) -> Operand:
    """Add a layer with its constants."""
    bias = emission.constant(weights.bias_info, weights.bias)
    data = emission.constant(weights.info, weights.data)
    return emission.add(operation, source, bias, data)


def convolved_with_ones(
    emission: Emission,
    source: Operand,
    kernel: tuple[int, int],
    stride: Stride,
    output: QuantizationInfo,
) -> Operand:
    """Add a depthwise convolution that gives the mean of each window, without padding."""
    weights = weights_of(
        np.ones((*kernel, source.info.channels, 1), np.int8),
        np.array([1 / prod(kernel)]),
        0,
        np.zeros(1, np.int32),
        source.info,
        output,
        format=DataFormat.HWIM,
    )
    return add(emission, DepthwiseConvolution(Padding(), stride, output), source, weights)


def requantized(emission: Emission, source: Operand, output: QuantizationInfo) -> Operand:
    """Add the same reals in another quantisation.

    The library requantises what a pooling is made of, if it can, not what it gives: numbers that
    the output cannot hold would be missing in a mean. After one, a convolution takes the place.
    """
    operation = emission.network[source.operation_id].operation
    averages = isinstance(operation, Pooling) and operation.type is PoolingType.AVG
    if averages or isinstance(operation, MeanXy):
        return convolved_with_ones(emission, source, (1, 1), Stride(), output)
    return emission.add(Requantize(output), source)


def weights_of(
    data: Array,
    scales: Array,
    zero_point: int,
    bias: Array,
    source: TensorInfo,
    output: QuantizationInfo,
    *,
    data_type: DataType = DataType.S8,
    format: DataFormat = DataFormat.HWIO,
) -> Weights:
    """Return weights with all that the library must know of them.

    scales  one, or one for each output channel (HWIO) or input channel (HWIM); several that are
            equal become one. The bias' are exactly input scale * weight scale, in float32.
    """
    rounded = np.asarray(scales, np.float32).reshape(-1)
    if rounded.size > 1 and (rounded == rounded[0]).all():
        rounded = rounded[:1]
    axis = None if rounded.size == 1 else 3 if format is DataFormat.HWIO else 2
    sums = np.float32(source.quantization.scale) * rounded
    height, width, inputs, last = data.shape
    outputs = last if format is DataFormat.HWIO else inputs * last
    info = TensorInfo(
        (height, width, inputs, last),
        data_type,
        format,
        QuantizationInfo(zero_point, tuple(rounded.tolist()), axis),
    )
    bias_info = TensorInfo(
        (1, 1, 1, outputs),
        DataType.S32,
        quantization=QuantizationInfo(0, tuple(sums.tolist()), None if axis is None else 3),
    )
    whole = np.broadcast_to(bias.reshape(-1), (outputs,)).reshape(1, 1, 1, outputs)
    return Weights(data, info, whole, bias_info, output)


def _weights(match: Match, source: TensorInfo, format: DataFormat) -> Weights:
    """Read the constants of a layer and of the RESCALE after it."""
    rescaling, output = rescaling_of(match.root), quantization_info(match.root.result)
    value = match[WEIGHTS]
    _zero_points(match, source, rescaling, output)
    data_type = DATA_TYPES.get(value.dtype)
    if data_type is None:
        raise unfit(
            "weights-type",
            f"dtype='{value.dtype.numpy.name}', dtype must be either uint8, int8 or int32",
            limit="weights of 8 bits",
            actual=value.dtype.value,
        )
    data, bias = _in_order(match), contents(match[BIAS])
    scales = _scales(value, rescaling, source.quantization, output)
    return weights_of(
        data,
        scales,
        number(match[WEIGHTS_ZERO]),
        bias,
        source,
        output,
        data_type=data_type,
        format=format,
    )


def _in_order(match: Match) -> Array:
    """Return the weights as [H,W,I,M] of a depthwise convolution, else as [H,W,I,O]."""
    data = contents(match[WEIGHTS])
    depthwise = CONVOLUTION in match and match[CONVOLUTION].kind == "DEPTHWISE_CONV2D"
    return data if depthwise else data.transpose(TO_HWIO)


def _scales(
    weights: Value, rescaling: Rescaling, source: QuantizationInfo, output: QuantizationInfo
) -> Array:
    """Return the scales of weights: what RESCALE makes them, or those recorded where they agree.

    RESCALE multiplies sums by input scale * weight scale / output scale, to 31 bits.
    """
    derived = rescaling.ratios * output.scale / source.scale
    recorded = weights.quantization
    if recorded is not None:
        scales = np.asarray(recorded.scales)
        fits = scales.size in (1, derived.size)
        if fits and np.allclose(derived, scales, rtol=RECORDED, atol=0.0):
            return np.broadcast_to(scales, derived.shape)
    return derived


def _zero_points(
    match: Match, source: TensorInfo, rescaling: Rescaling, output: QuantizationInfo
) -> None:
    """Refuse zero points that are not those of the tensors."""
    findings = Findings()
    pairs = (
        ("input", number(match[INPUT_ZERO]), source.quantization.zero_point),
        ("sums", rescaling.before, 0),
        ("output", rescaling.after, output.zero_point),
    )
    for name, given, wanted in pairs:
        findings.need(
            given == wanted,
            "zero-point",
            f"{name} zero point={given}, {name} zero point must = {wanted}",
            limit=f"a zero point of {wanted}",
            actual=str(given),
        )
    findings.settle()


def _dilation(findings: Findings, operation: Windowed) -> None:
    dilation = list(operation.dilation)
    findings.need(
        dilation == [1, 1],
        "dilation",
        f"dilation={dilation}, dilation must = [1, 1]",
        limit="no dilation",
        actual=str(dilation),
        help="use a larger kernel with zeros between its weights",
    )
