"""Cases of what has weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mizzen.targets.ethos_n.network import (
    Convolution,
    DepthwiseConvolution,
    FullyConnected,
    Query,
    TransposeConvolution,
)
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    Padding,
    QuantizationInfo,
    Stride,
)

from .cases import (
    BOTH,
    DEEPEST,
    NEW,
    OLD,
    PLAIN,
    TOO_DEEP,
    TWO_SCALES,
    TYPES,
    Broken,
    E,
    Kept,
    U,
    ask,
    of,
    tensor,
)

S32, HWIO, HWIM, NCHW = DataType.S32, DataFormat.HWIO, DataFormat.HWIM, DataFormat.NCHW
ONE = Padding(1, 1, 1, 1)
SCALED = of(0, 0.5)
IN = tensor(1, 16, 16, 16, quantization=SCALED)


def convolution(
    *,
    kernel: tuple[int, int] = (3, 3),
    extent: int = 16,
    outputs: int = 32,
    padding: Padding = ONE,
    stride: tuple[int, int] = (1, 1),
    output: QuantizationInfo = PLAIN,
    **tensors: Any,
) -> Query:
    """Ask for a convolution; `tensors` replaces fields, as in `weights_format`."""
    query = ask(
        Convolution(padding, Stride(*stride), output),
        tensor(1, extent, extent, 16, quantization=SCALED),
        tensor(1, 1, 1, outputs, type=S32, quantization=of(0, 0.125)),
        tensor(*kernel, 16, outputs, format=HWIO, quantization=of(0, 0.25)),
    )
    return changed(query, **tensors)


def changed(query: Query, **tensors: Any) -> Query:
    """Replace fields of the tensors: `bias_shape`, `weights_quantization`."""
    names = ("input", "bias", "weights")
    inputs = list(query.inputs)
    for name, value in tensors.items():
        which, _, field = name.partition("_")
        place = names.index(which)
        inputs[place] = replace(inputs[place], **{field: value})
    return Query(query.operation, tuple(inputs))


def depthwise(
    *,
    kernel: tuple[int, int] = (3, 3),
    padding: Padding = ONE,
    stride: tuple[int, int] = (1, 1),
    channels: int = 16,
    multiplier: int = 1,
    output: QuantizationInfo = PLAIN,
    **tensors: Any,
) -> Query:
    query = ask(
        DepthwiseConvolution(padding, Stride(*stride), output),
        tensor(1, 16, 16, channels, quantization=SCALED),
        tensor(1, 1, 1, channels * multiplier, type=S32, quantization=of(0, 0.125)),
        tensor(*kernel, channels, multiplier, format=HWIM, quantization=of(0, 0.25)),
    )
    return changed(query, **tensors)


def transposed(
    *, padding: Padding = ONE, stride: tuple[int, int] = (2, 2), **parameters: Any
) -> Query:
    query = convolution(padding=padding, stride=stride, **parameters)
    operation = query.operation
    assert isinstance(operation, Convolution)
    return Query(TransposeConvolution(padding, Stride(*stride), operation.output), query.inputs)


def connected(
    *, shape: tuple[int, int, int] = (1, 1, 64), output: QuantizationInfo = PLAIN, **tensors: Any
) -> Query:
    height, width, channels = shape
    query = ask(
        FullyConnected(output),
        tensor(1, *shape, quantization=SCALED),
        tensor(1, 1, 1, 32, type=S32, quantization=of(0, 0.125)),
        tensor(1, 1, height * width * channels, 32, format=HWIO, quantization=of(0, 0.25)),
    )
    return changed(query, **tensors)


def channel_scales(count: int, axis: int | None, each: float = 0.25) -> QuantizationInfo:
    return QuantizationInfo(0, (each,) * count, axis)


NEED = "must have quantization parameters with"
SCALE = "scale of input scale x weight scale"
KERNELS = "must be in { 1, 2, 3, 5, 7, 9 }"
COUNT = (
    "must have quantization scales with same number of elements as the quantization dim. Expected:"
)
OVERALL = "Overall scale (of the input * weights / output) should be in the range (2^-32, 65536)"


def _shared(make: Any, name: str, title: str, weights: str, layout: str, axis: int) -> list[Broken]:
    """Break the rules that the three convolutions share; `weights` begins the text of a type."""
    other = HWIO if layout == "HWIM" else HWIM
    channels = 16 if layout == "HWIM" else 32
    weights_axis = 3 if axis == 2 else 2
    input_format = "NHWC OR NHWCB" if layout == "HWIM" else "NHWC or NHWCB"
    per_channel = f"{title}: Per channel quantization axis must be"
    few = channel_scales(2, axis)
    zero = "Zero point out of range for"
    deep = f"Input to {name}: {TOO_DEEP}"
    rows = {
        "batch": (make(input_shape=(2, 16, 16, 16)), "Batch size must be 1"),
        "input-depth": (make(input_shape=(1, 16, 16, DEEPEST + 1)), deep),
        "input-type": (make(input_data_type=S32), f"Input to {name} {TYPES}"),
        "input-format": (make(input_format=NCHW), f"Input to {name} must be {input_format}"),
        "weights-type": (make(weights_data_type=S32), f"{weights} {TYPES}"),
        "weights-format": (make(weights_format=other), f"Weights for {name} must be {layout}"),
        "bias-type": (make(bias_data_type=DataType.U8), f"Bias for {name} must be INT32_QUANTIZED"),
        "bias-format": (make(bias_format=NCHW), f"Bias for {name} must be NHWC"),
        "bias-shape": (make(bias_shape=(1, 1, 1, 33)), "Invalid bias tensor dimensions"),
        "weights-channels": (
            make(input_shape=(1, 16, 16, 17)),
            "Weights input channels dimension (I) must match Input channels dimension (C)",
        ),
        "window": (make(stride=(0, 1)), "Invalid kernel/stride parameters"),
        "biases-axis": (
            make(bias_quantization=channel_scales(channels, 2, 0.125)),
            f"{per_channel} 3 for Biases",
        ),
        "biases-scales": (
            make(bias_quantization=channel_scales(2, 3, 0.125)),
            f"{title}: Biases {COUNT} {channels}, got: 2.",
        ),
        "weights-axis": (
            make(weights_quantization=channel_scales(channels, weights_axis)),
            f"{per_channel} {axis} for Weights",
        ),
        "weights-scales": (
            make(weights_quantization=few),
            f"{title}: Weights {COUNT} {channels}, got: 2.",
        ),
        "input-axis": (
            make(input_quantization=of(axis=3)),
            f"{title}: Quantization Dim should not be used on Input",
        ),
        "input-scales": (
            make(input_quantization=TWO_SCALES),
            f"{title}: Input quantization scales must have a size of 1",
        ),
        "output-axis": (
            make(output=of(axis=3)),
            f"{title}: Quantization Dim should not be used on Output",
        ),
        "output-scales": (
            make(output=TWO_SCALES),
            f"{title}: Output quantization scales must have a size of 1",
        ),
        "input-zero-point": (make(input_quantization=of(256, 0.5)), f"{zero} input info"),
        "output-zero-point": (make(output=of(-1)), f"{zero} convInfo"),
    }
    return [Broken(rule, query, U, message) for rule, (query, message) in rows.items()]


def _windows(make: Any, title: str) -> list[Broken]:
    return [
        Broken("padding", make(padding=Padding(0, 0, 1, 2)), E, "Unsupported padding.", OLD),
        Broken("padding", make(padding=Padding(8, 1, 1, 1)), E, "Unsupported padding."),
        Broken("overall-scale", make(output=of(0, 0.125 / 65536)), E, f"{title}: {OVERALL}", BOTH),
        Broken("overall-scale", make(output=of(0, -1.0)), E, f"{title}: {OVERALL}", BOTH),
    ]


BEYOND = of(256, 0.25)
OFF = "Zero point out of range for weights info"
CONVOLUTIONS = [
    *_shared(convolution, "conv", "Convolution", "Weight for conv", "HWIO", 3),
    *_windows(convolution, "Convolution"),
    Broken(
        "empty",
        convolution(extent=3, kernel=(5, 5), padding=Padding()),
        U,
        "Output tensor would be empty",
    ),
    Broken("output-depth", convolution(outputs=DEEPEST + 1), U, f"Output of conv: {TOO_DEEP}"),
    Broken("weights-zero-point", convolution(weights_quantization=BEYOND), U, OFF),
    Broken(
        "bias-quantization",
        convolution(bias_quantization=of(1, 0.125)),
        E,
        f"Bias for conv {NEED} zero point of 0",
    ),
    Broken(
        "bias-quantization",
        convolution(bias_quantization=of(0, 0.1250001)),
        E,
        f"Bias for conv {NEED} {SCALE}",
    ),
    *(
        Broken(
            "kernel",
            convolution(kernel=(height, width)),
            E,
            f"Unsupported kernel size. Width({width})/height({height}) {KERNELS}",
        )
        for height, width in ((4, 6), (8, 3), (3, 10), (11, 1))
    ),
    Broken(
        "stride",
        convolution(stride=(3, 3)),
        E,
        "Unsupported stride. Stride X and Y must be equal and in { 1, 2 }",
    ),
    Broken(
        "stride",
        convolution(stride=(1, 2)),
        E,
        "Unsupported stride. Stride X and Y must be equal and in { 1, 2 }",
    ),
    Broken(
        "strided-kernel",
        convolution(kernel=(1, 9), stride=(2, 2)),
        E,
        "Unsupported stride for kernel width/height > 7. Stride X and Y must be 1",
    ),
]
DEPTHWISE = [
    *_shared(depthwise, "depthwise conv", "Depthwise Convolution", "Weight for conv", "HWIM", 2),
    *_windows(depthwise, "Depthwise Convolution"),
    Broken(
        "empty",
        depthwise(input_shape=(1, 1, 16, 16), padding=Padding()),
        U,
        "Output tensor would be empty",
    ),
    Broken(
        "output-depth",
        depthwise(channels=1, multiplier=DEEPEST + 1),
        U,
        f"Output of depthwise conv: {TOO_DEEP}",
    ),
    Broken("weights-zero-point", depthwise(weights_quantization=BEYOND), U, OFF),
    Broken(
        "multiplier",
        depthwise(channels=2, multiplier=2),
        E,
        "If channel multiplier > 1 the weights input channels dimension must be 1",
    ),
    Broken(
        "bias-quantization",
        depthwise(bias_quantization=of(0, 0.5)),
        E,
        f"Bias for depthwise conv {NEED} zero point of 0 and {SCALE}",
    ),
    Broken(
        "kernel",
        depthwise(kernel=(3, 1)),
        E,
        f"Unsupported kernel size. Width(1)/height(3) {KERNELS}",
    ),
    Broken(
        "kernel",
        depthwise(kernel=(4, 4)),
        E,
        f"Unsupported kernel size. Width(4)/height(4) {KERNELS}",
    ),
    Broken(
        "stride",
        depthwise(stride=(4, 4)),
        E,
        "Unsupported stride. Stride X and Y must be equal and in { 1, 2 }",
    ),
    Broken(
        "strided-kernel",
        depthwise(kernel=(1, 1), stride=(2, 2), padding=Padding()),
        E,
        "Unsupported stride >1 with kernel size 1x1.",
    ),
]
TRANSPOSED = [
    *_shared(
        transposed,
        "transpose conv",
        "Transpose Convolution",
        "Weights for transpose conv",
        "HWIO",
        3,
    ),
    *_windows(transposed, "Tranpose Convolution"),
    Broken(
        "empty",
        transposed(extent=1, padding=Padding(2, 2, 2, 2)),
        U,
        "Output tensor would be empty",
    ),
    Broken(
        "output-depth", transposed(outputs=DEEPEST + 1), U, f"Output of transpose conv: {TOO_DEEP}"
    ),
    Broken("weights-zero-point", transposed(weights_quantization=BEYOND), E, OFF),
    *(
        Broken(
            "bias-quantization",
            transposed(bias_quantization=wrong),
            E,
            f"Bias for transpose conv {NEED} zero point of 0 and {SCALE}",
        )
        for wrong in (of(1, 0.125), of(0, 0.5))
    ),
    Broken(
        "kernel",
        transposed(kernel=(11, 3)),
        E,
        f"Unsupported kernel size. Width(3)/height(11) {KERNELS}",
    ),
    Broken(
        "stride",
        transposed(stride=(1, 1)),
        E,
        "Unsupported stride. Stride X and Y must be equal to 2",
    ),
    Broken(
        "unpadded-kernel",
        transposed(kernel=(9, 9), padding=Padding()),
        E,
        "Padding must be SAME for kernel > 7x7.",
    ),
]
_FC = "fully connected"
_FLAT = "Input to fully connected is expected to be one dimensional using the channels dimension."
CONNECTED = [
    Broken(rule, query, level, message)
    for rule, query, level, message in (
        ("batch", connected(input_shape=(2, 1, 1, 64)), U, "Batch size must be 1"),
        (
            "input-depth",
            connected(input_shape=(1, 1, 2, DEEPEST + 1)),
            U,
            f"Input to {_FC}: {TOO_DEEP}",
        ),
        ("input-type", connected(input_data_type=S32), U, f"Input to {_FC} {TYPES}"),
        (
            "input-format",
            connected(input_format=NCHW),
            U,
            f"Invalid data format. Only NHWC and NHWCB are supported for {_FC}",
        ),
        ("weights-type", connected(weights_data_type=S32), U, f"Weights for {_FC} {TYPES}"),
        ("weights-format", connected(weights_format=HWIM), U, f"Weights for {_FC} must be HWIO"),
        (
            "weights-plane",
            connected(weights_shape=(1, 2, 32, 32)),
            U,
            "Weights tensor must have H and W set to 1 as these dimensions are not needed.",
        ),
        (
            "weights-channels",
            connected(weights_shape=(1, 1, 65, 32)),
            U,
            "Weights tensor must have I dimension equal to the number of channels of the input "
            "tensor.",
        ),
        (
            "bias-type",
            connected(bias_data_type=DataType.S8),
            U,
            f"Bias for {_FC} must be INT32_QUANTIZED",
        ),
        ("bias-format", connected(bias_format=NCHW), U, f"Bias for {_FC} must be NHWC"),
        ("bias-shape", connected(bias_shape=(1, 1, 2, 16)), U, "Invalid bias tensor dimensions"),
        (
            "weights-scales",
            connected(weights_quantization=channel_scales(32, 3)),
            U,
            "Multiple quantization scales is not supported for FullyConnected operation",
        ),
        (
            "input-axis",
            connected(input_quantization=of(axis=3)),
            U,
            "Fully Connected: Quantization Dim should not be used on Input",
        ),
        (
            "input-scales",
            connected(input_quantization=TWO_SCALES),
            U,
            "Fully Connected: Input quantization scales must have a size of 1",
        ),
        ("weights-zero-point", connected(weights_quantization=BEYOND), E, OFF),
        (
            "input-zero-point",
            connected(input_quantization=of(-1, 0.5)),
            U,
            "Zero point out of range for input info",
        ),
        (
            "output-zero-point",
            connected(output=of(256)),
            U,
            "Zero point out of range for fullyConnectedInfo",
        ),
        ("input-shape", connected(shape=(2, 2, 16)), E, _FLAT),
        (
            "bias-quantization",
            connected(bias_quantization=of(2, 0.125)),
            E,
            f"Bias for {_FC} {NEED} zero point of 0 and {SCALE}",
        ),
        (
            "overall-scale",
            connected(output=of(0, 0.125 / 65536)),
            E,
            f"Fully Connected: {OVERALL}",
        ),
    )
]
BROKEN = [*CONVOLUTIONS, *DEPTHWISE, *TRANSPOSED, *CONNECTED]

KEPT = [
    Kept(convolution()),
    *(
        Kept(convolution(kernel=(size, 1), padding=Padding(size // 2, (size - 1) // 2, 0, 0)))
        for size in (1, 2, 3, 5, 7, 9)
    ),
    # An overall scale of 0 is in the range.
    Kept(convolution(weights_quantization=of(0, 0.0), bias_quantization=of(0, 0.0))),
    Kept(convolution(kernel=(9, 1), padding=Padding(4, 4, 0, 0))),
    Kept(convolution(kernel=(7, 7), stride=(2, 2), padding=Padding(3, 3, 3, 3))),
    Kept(convolution(kernel=(2, 2), padding=Padding(0, 1, 0, 1))),
    Kept(convolution(kernel=(2, 2), padding=Padding(1, 0, 1, 0))),
    Kept(convolution(kernel=(2, 2), padding=Padding(1, 1, 1, 1))),
    Kept(convolution(padding=Padding(7, 0, 3, 7)), NEW),
    Kept(convolution(outputs=DEEPEST)),
    Kept(convolution(output=of(255, 0.126 / 65536))),
    Kept(
        convolution(
            weights_quantization=channel_scales(32, 3),
            bias_quantization=channel_scales(32, 3, 0.125),
        )
    ),
    Kept(convolution(input_data_type=DataType.S8, input_quantization=of(-128, 0.5))),
    Kept(depthwise()),
    # Of a depthwise convolution the zero point of the bias is not looked at.
    Kept(depthwise(bias_quantization=of(1, 0.125))),
    Kept(depthwise(channels=1, multiplier=8)),
    Kept(depthwise(stride=(2, 2))),
    Kept(
        depthwise(
            weights_quantization=channel_scales(16, 2),
            bias_quantization=channel_scales(16, 3, 0.125),
        )
    ),
    Kept(transposed()),
    Kept(transposed(kernel=(9, 9), padding=Padding(4, 4, 4, 4))),
    Kept(transposed(kernel=(7, 7), padding=Padding())),
    Kept(connected()),
    # The output's scales are not counted.
    Kept(connected(output=TWO_SCALES)),
]
