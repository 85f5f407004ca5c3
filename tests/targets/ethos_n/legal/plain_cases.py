"""Cases of what has no weights."""

from __future__ import annotations

from dataclasses import replace

from mizzen.targets.ethos_n.network import (
    Addition,
    Concatenation,
    Constant,
    DepthToSpace,
    EstimateOnly,
    Input,
    LeakyRelu,
    MeanXy,
    Multiplication,
    Operation,
    Output,
    ReinterpretQuantization,
    Relu,
    Requantize,
    Reshape,
    Resize,
    ResizeAlgorithm,
    Sigmoid,
    SpaceToDepth,
    Split,
    StandalonePadding,
    Tanh,
    Transpose,
)
from mizzen.targets.ethos_n.tensors import (
    DataFormat,
    DataType,
    Padding,
    QuantizationInfo,
    Shape,
    TensorInfo,
)

from .cases import (
    BOTH,
    DEEPEST,
    MAP,
    NEW,
    OLD,
    PLAIN,
    TOO_DEEP,
    TWO_SCALES,
    TYPES,
    Broken,
    E,
    Kept,
    S,
    U,
    ask,
    feature_map,
    input_faults,
    layout_fault,
    of,
    scale_faults,
    tensor,
    zero_point_fault,
)

NEAREST = ResizeAlgorithm.NEAREST_NEIGHBOUR
ZERO = "Zero point out of range for"
NO_AXIS = "Quantization Dim should not be used on"
ONE_SCALE = "quantization scales must have a size of 1"
ALONG = of(axis=3)
DEEP = tensor(1, 16, 16, DEEPEST + 1)


def output_faults(along: Operation, several: Operation, title: str) -> list[Broken]:
    """Break the rules of the output's scales by two operations."""
    return [
        Broken("output-axis", ask(along, MAP), U, f"{title}: {NO_AXIS} Output"),
        Broken("output-scales", ask(several, MAP), U, f"{title}: Output {ONE_SCALE}"),
    ]


def _info_faults(make: type[Input | Constant], place: str, what: str) -> list[Broken]:
    return [
        Broken(f"{place}-depth", ask(make(DEEP)), U, f"{what} layer: {TOO_DEEP}"),
        Broken(
            f"{place}-zero-point",
            ask(make(feature_map(zero_point=-1))),
            U,
            f"{ZERO} {place} info",
        ),
    ]


NCHW = replace(MAP, format=DataFormat.NCHW)
BOUNDARIES = [
    *_info_faults(Input, "input", "Input"),
    Broken("batch", ask(Input(feature_map((2, 8, 8, 8)))), U, "Batch size must be 1"),
    Broken(
        "input-type", ask(Input(replace(MAP, data_type=DataType.S32))), U, f"Input layer {TYPES}"
    ),
    Broken("input-format", ask(Input(NCHW)), U, "Input layer must be NHWC or NHWCB"),
    Broken(
        "input-axis",
        ask(Input(replace(MAP, quantization=of(axis=3)))),
        U,
        f"Input layer: {NO_AXIS} Input",
    ),
    Broken(
        "input-scales",
        ask(Input(replace(MAP, quantization=TWO_SCALES))),
        U,
        f"Input layer: Input {ONE_SCALE}",
    ),
    *_info_faults(Constant, "constant", "Constant"),
    *input_faults(Output(), "Input layer", of_type="Output layer's input"),
    layout_fault(Output(), "An Output layer's input must be NHWC or NHWCB"),
    Broken(
        "output-format",
        ask(Output(DataFormat.HWIO), MAP),
        U,
        "An Output layer's format must be NHWC or NHWCB",
    ),
    *scale_faults(Output(), "Output layer"),
    zero_point_fault(Output()),
    Broken(
        "outputs-zero-point",
        ask(EstimateOnly((MAP, feature_map(zero_point=256)), "no such operation"), MAP),
        U,
        f"{ZERO} at least one output info in EstimateOnlyInfo",
    ),
    Broken("estimate", ask(EstimateOnly((MAP,), "no such operation"), MAP), E, ""),
]

REINTERPRET = ReinterpretQuantization(PLAIN)
ACTIVATIONS = [
    *input_faults(Relu(), "Input to relu"),
    Broken("bounds", ask(Relu(3, 2), MAP), U, "Relu has lower bound > upper bound"),
    layout_fault(Relu(), "Input to relu must be NHWC or NHWCB"),
    *scale_faults(Relu(), "Relu"),
    zero_point_fault(Relu()),
    *input_faults(LeakyRelu(0.5, PLAIN), "Input to leaky relu"),
    layout_fault(LeakyRelu(0.5, PLAIN), "Input to leaky relu must be NHWC or NHWCB"),
    *scale_faults(LeakyRelu(0.5, PLAIN), "Leaky Relu"),
    *output_faults(LeakyRelu(0.5, ALONG), LeakyRelu(0.5, TWO_SCALES), "Leaky Relu"),
    zero_point_fault(LeakyRelu(0.5, PLAIN)),
    Broken("output-zero-point", ask(LeakyRelu(0.5, of(300)), MAP), U, f"{ZERO} leakyReluInfo"),
    # The last is 1 in float32.
    *(
        Broken(
            "alpha",
            ask(LeakyRelu(alpha, PLAIN), MAP),
            E,
            "Leaky relu alpha must be less than 1 and greater than 0",
        )
        for alpha in (0.0, -0.5, 1.0, 1 - 1e-9)
    ),
    *(
        row
        for make, name, title in ((Sigmoid, "sigmoid", "Sigmoid"), (Tanh, "tanh", "tanh"))
        for row in (
            *input_faults(make(), f"Input to {name} layer", of_type=f"Input to {name} layer"),
            *scale_faults(make(), title),
            zero_point_fault(make()),
        )
    ),
    *input_faults(Requantize(PLAIN), "Input to requantize"),
    layout_fault(Requantize(PLAIN), "Input to requantize must be NHWC or NHWCB"),
    *scale_faults(Requantize(PLAIN), "Requantize"),
    *output_faults(Requantize(ALONG), Requantize(TWO_SCALES), "Requantize"),
    Broken(
        "requantize-scale",
        ask(Requantize(of(0, 1 / 128)), MAP),
        E,
        "Output scale must be bigger than input scale / 128",
    ),
    zero_point_fault(Requantize(PLAIN)),
    Broken("output-zero-point", ask(Requantize(of(-1)), MAP), U, f"{ZERO} requantizeInfo"),
    Broken(
        "output-zero-point",
        ask(Requantize(of(128), DataType.S8), MAP),
        U,
        f"{ZERO} requantizeInfo",
    ),
    Broken(
        "output-type",
        ask(Requantize(PLAIN, DataType.S32), MAP),
        U,
        f"Expected quantization output {TYPES}",
    ),
    *input_faults(REINTERPRET, "Input to reinterpret quantization"),
    layout_fault(REINTERPRET, "Input to reinterpret quantization must be NHWC or NHWCB"),
    zero_point_fault(REINTERPRET),
    Broken(
        "output-zero-point",
        ask(ReinterpretQuantization(of(256)), MAP),
        U,
        f"{ZERO} reinterpretQuantizationInfo",
    ),
]


_JOIN = Concatenation(3, PLAIN)
_UNEVEN = (
    "Concatenation along the channels dimension (axis 3) requires input tensors with a multiple of "
    "16 channels"
)
_SPLIT = Split(3, (16, 32))
_SPLIT_INPUT = tensor(1, 16, 16, 48)
JOINING = [
    Broken("inputs", ask(_JOIN), U, "Must have at least one input"),
    *input_faults(_JOIN, "Input tensors"),
    layout_fault(_JOIN, "Input to concatenation must be NHWC or NHWCB"),
    # One input after the other is looked at: the type of the first comes before the second's batch.
    Broken(
        "input-type",
        ask(_JOIN, replace(MAP, data_type=DataType.S32), feature_map((2, 16, 16, 16))),
        U,
        f"Input tensors {TYPES}",
    ),
    *(
        Broken(
            "axis",
            ask(Concatenation(axis, PLAIN), MAP, MAP),
            U,
            "Concatenation axis must refer to a valid dimension (0-3)",
        )
        for axis in (4, -1)
    ),
    Broken(
        "inputs-shape",
        ask(_JOIN, MAP, tensor(1, 16, 15, 16)),
        U,
        "Input tensors must have the same size along all dimensions except the concatenation "
        "dimension",
    ),
    Broken(
        "inputs-axis",
        ask(_JOIN, MAP, replace(MAP, quantization=of(axis=3))),
        U,
        f"{NO_AXIS} any Inputs of Concat",
    ),
    Broken(
        "output-axis",
        ask(Concatenation(3, of(axis=3)), MAP),
        U,
        f"Concatenation: {NO_AXIS} Output",
    ),
    Broken(
        "output-scales",
        ask(Concatenation(3, TWO_SCALES), MAP),
        U,
        f"Concatenation: Output {ONE_SCALE}",
    ),
    Broken(
        "input-zero-point",
        ask(_JOIN, MAP, feature_map(zero_point=256)),
        U,
        f"{ZERO} at least one input info",
    ),
    Broken(
        "output-zero-point",
        ask(Concatenation(3, of(200)), MAP, replace(MAP, data_type=DataType.S8)),
        U,
        f"{ZERO} concatInfo",
    ),
    Broken(
        "requantize-scale",
        ask(Concatenation(3, PLAIN), MAP, replace(MAP, quantization=of(0, 128.0))),
        E,
        "Output scales must be bigger than input scale / 128",
    ),
    Broken(
        "output-depth",
        ask(_JOIN, tensor(1, 16, 16, DEEPEST), tensor(1, 16, 16, 1)),
        U,
        f"Output of concatenation: {TOO_DEEP}",
    ),
    Broken(
        "batch-axis",
        ask(Concatenation(0, PLAIN), MAP, MAP),
        E,
        "Concatenation cannot be performed along batch axis (axis 0)",
    ),
    Broken("channels", ask(_JOIN, MAP, tensor(1, 16, 16, 17)), E, _UNEVEN, OLD),
    *input_faults(_SPLIT, "Input tensor"),
    Broken("outputs", ask(Split(3, ()), MAP), U, "Must have at least 1 output"),
    layout_fault(_SPLIT, "Input tensor must be NHWC or NHWCB"),
    *(
        Broken(
            "axis",
            ask(Split(axis, (16,)), MAP),
            U,
            "Axis must refer to a valid dimension (0-3)",
        )
        for axis in (4, -1)
    ),
    Broken(
        "sizes",
        ask(Split(1, (8, 9)), MAP),
        U,
        "Sizes must sum to the total size of the input tensor along the split axis",
    ),
    *scale_faults(_SPLIT, "Split", base=_SPLIT_INPUT),
    zero_point_fault(_SPLIT, _SPLIT_INPUT),
    Broken(
        "output-depth",
        ask(Split(2, (1, 0)), tensor(1, 16, 1, DEEPEST + 1)),
        U,
        f"Output of split: {TOO_DEEP}",
    ),
    Broken(
        "batch-axis",
        ask(Split(0, (1,)), MAP),
        U,
        "Split cannot be performed along batch axis (axis 0)",
    ),
    Broken(
        "channels",
        ask(Split(3, (8, 8)), MAP),
        E,
        "Split along the channels dimension (axis 3) requires all output sizes (specified in "
        "splitInfo.m_Sizes) to be multiples of 16",
        OLD,
    ),
]


def _binary(make: type[Addition | Multiplication], name: str, title: str) -> list[Broken]:
    wide, deep = replace(MAP, data_type=DataType.S32), DEEP
    beyond, along = feature_map(zero_point=256), replace(MAP, quantization=of(axis=3))
    operation = make(PLAIN)
    layout = "Input to addition must be NHWC or NHWCB"
    profiles = BOTH if make is Addition else NEW
    rows: list[tuple[str, TensorInfo, TensorInfo, str]] = [
        ("batch", MAP, feature_map((2, 16, 16, 16)), "Batch size must be 1"),
        ("input-depth", deep, MAP, f"Input0 to {name}: {TOO_DEEP}"),
        ("second-input-depth", MAP, deep, f"Input1 to {name}: {TOO_DEEP}"),
        ("input-zero-point", beyond, MAP, f"{ZERO} input0 info"),
        ("second-input-zero-point", MAP, beyond, f"{ZERO} input1 info"),
        *(
            (
                title.lower(),
                MAP,
                feature_map(shape),
                f"{title} must be either equal or one of the tensor's height must be 1",
            )
            for title, shape in (
                ("Height", (1, 8, 16, 16)),
                ("Width", (1, 16, 8, 16)),
                ("Channels", (1, 16, 16, 8)),
            )
        ),
        ("input-type", wide, MAP, f"Input to {name} {TYPES}"),
        ("second-input-type", MAP, wide, f"Input to {name} {TYPES}"),
        (
            "inputs-type",
            MAP,
            replace(MAP, data_type=DataType.S8),
            f"Inputs to {name} must have the same data type",
        ),
        ("input-format", NCHW, MAP, layout),
        ("second-input-format", MAP, NCHW, layout),
        ("inputs-axis", MAP, along, f"{NO_AXIS} any Inputs of {title}"),
    ]
    stretch = "Cannot stretch along the requested dimensions."
    return [
        *(Broken(rule, ask(operation, a, b), U, text, profiles) for rule, a, b, text in rows),
        Broken(
            "output-zero-point",
            ask(make(of(256)), MAP, MAP),
            U,
            f"{ZERO} outputQuantizationInfo",
            profiles,
        ),
        Broken("broadcast", ask(operation, MAP, feature_map((1, 1, 1, 16))), E, stretch, profiles),
    ]


BINARY = [
    *_binary(Addition, "addition", "Addition"),
    *_binary(Multiplication, "Multiplication", "Multiplication"),
    Broken(
        "release",
        ask(Multiplication(PLAIN), MAP, MAP),
        U,
        "Multiplication is not in release 23.02",
        OLD,
    ),
]
PLANE = tensor(1, 8, 8, 16)
MEAN = [
    *input_faults(MeanXy(), "Input to MeanXy layer", base=PLANE),
    *scale_faults(MeanXy(), "Mean", base=PLANE),
    zero_point_fault(MeanXy(), PLANE),
    *(
        Broken(
            "plane",
            ask(MeanXy(), tensor(1, *extents, 16)),
            U,
            "MeanXy is supported for 7x7 and 8x8 as HeightxWidth only",
        )
        for extents in ((6, 6), (9, 9), (7, 8))
    ),
]


def _transpose_faults() -> list[Broken]:
    swap = Transpose((0, 2, 1, 3))
    faults = [row for row in input_faults(swap, "Input to transpose") if row.rule != "batch"]
    texts: tuple[tuple[str, Shape, str], ...] = (
        ("batch-axis", (1, 0, 2, 3), "Transpose of batch(0) axis is not allowed"),
        ("axes", (0, 1, 2, 4), "Transpose of dimensions > 3 are not allowed"),
        ("axes", (0, 1, 2, -1), "Transpose of dimensions > 3 are not allowed"),
        ("unique", (0, 1, 1, 3), "Transpose axes must be unique"),
    )
    return [
        *faults,
        layout_fault(swap, "Input must be NHWC or NHWCB"),
        *(Broken(rule, ask(Transpose(axes), MAP), U, text) for rule, axes, text in texts),
        *scale_faults(swap, "Transpose", E),
        zero_point_fault(swap),
        Broken(
            "output-depth",
            ask(Transpose((0, 3, 2, 1)), tensor(1, DEEPEST + 1, 16, 1)),
            U,
            f"Output of transpose: {TOO_DEEP}",
        ),
        Broken("estimate", ask(swap, MAP), E, "", OLD),
    ]


PAD = StandalonePadding(Padding(1, 2, 3, 7))
BIGGER = Resize(NEAREST, 32, 32, PLAIN)
BLOCKS = SpaceToDepth(2)
MOVEMENT = [
    *(
        row
        for row in input_faults(Reshape((1, 1, 1, 4096)), "Input to reshape")
        if row.rule != "input-type"
    ),
    Broken("batch", ask(Reshape((2, 8, 16, 16)), MAP), U, "Batch size must be 1"),
    Broken(
        "elements",
        ask(Reshape((1, 1, 1, 4095)), MAP),
        U,
        "Total elements in the input doesn't match new dimensions",
    ),
    *scale_faults(Reshape((1, 1, 1, 4096)), "Reshape"),
    zero_point_fault(Reshape((1, 1, 1, 4096))),
    Broken(
        "output-depth",
        ask(Reshape((1, 1, 2, DEEPEST + 1)), tensor(1, 2, 1, DEEPEST + 1)),
        U,
        f"Output of reshape: {TOO_DEEP}",
    ),
    *input_faults(DepthToSpace(2), "Input to depth to space"),
    layout_fault(DepthToSpace(2), "Input must be NHWC or NHWCB"),
    *(
        Broken(
            "channels",
            ask(DepthToSpace(block), MAP),
            U,
            "Number of channels of input must be an exact multiple of the square of the block size",
        )
        for block in (3, 0)
    ),
    *scale_faults(DepthToSpace(2), "Depth to Space"),
    zero_point_fault(DepthToSpace(2)),
    Broken("block", ask(DepthToSpace(4), MAP), E, "Only block size of 2 is supported"),
    *(row for row in input_faults(BLOCKS, "Input to space to depth") if row.rule != "batch"),
    *(
        Broken("block", ask(SpaceToDepth(block), MAP), U, "Block size must be larger than 1")
        for block in (1, 0)
    ),
    Broken(
        "plane",
        ask(SpaceToDepth(3), tensor(1, 9, 16, 16)),
        U,
        "Input width and height must be a multiple of the block size",
    ),
    *scale_faults(BLOCKS, "Space to Depth", E),
    zero_point_fault(BLOCKS),
    Broken(
        "output-depth",
        ask(BLOCKS, tensor(1, 8, 8, DEEPEST // 4 + 1)),
        U,
        "Output of space to depth: Tensor max depth cannot fit in SRAM (459008 / 458752)",
    ),
    Broken("sram", ask(BLOCKS, tensor(1, 2, 65536, 16)), U, "The tensor is too large"),
    Broken("estimate", ask(BLOCKS, MAP), E, ""),
    *input_faults(BIGGER, "Input to resize"),
    layout_fault(BIGGER, "Input must be NHWC or NHWCB"),
    Broken(
        "height",
        ask(Resize(NEAREST, 33, 32, PLAIN), MAP),
        U,
        "Requested height isn't supported",
    ),
    Broken(
        "width",
        ask(Resize(NEAREST, 32, 30, PLAIN), MAP),
        U,
        "Requested width isn't supported",
    ),
    Broken(
        "parity",
        ask(Resize(NEAREST, 31, 32, PLAIN), MAP),
        S,
        "Requested width and height have different parity, result might be inaccurate",
    ),
    zero_point_fault(BIGGER),
    Broken(
        "output-zero-point",
        ask(Resize(NEAREST, 31, 32, of(256)), MAP),
        U,
        f"{ZERO} resizeInfo",
    ),
    *_transpose_faults(),
    *(
        replace(row, profiles=NEW)
        for row in (
            *input_faults(PAD, "Input to standalone padding"),
            layout_fault(PAD, "Input to standalone padding must be NHWC OR NHWCB"),
            zero_point_fault(PAD),
            Broken("empty", ask(PAD, tensor(1, 0, 8, 8)), U, "Output tensor would be empty"),
            Broken(
                "padding",
                ask(StandalonePadding(Padding(0, 0, 0, 8)), MAP),
                U,
                "Padding not supported",
            ),
        )
    ),
    Broken("release", ask(PAD, MAP), U, "StandalonePadding is not in release 23.02", OLD),
]
BROKEN = [*BOUNDARIES, *ACTIVATIONS, *JOINING, *BINARY, *MEAN, *MOVEMENT]

SIGNED = replace(MAP, data_type=DataType.S8, quantization=of(-128))
KEPT = [
    Kept(ask(Input(MAP))),
    Kept(ask(Input(tensor(1, 16, 1, DEEPEST + 1)))),
    Kept(ask(Input(tensor(1, 16, 16, DEEPEST)))),
    Kept(ask(Input(feature_map(zero_point=255)))),
    Kept(ask(Input(SIGNED))),
    Kept(ask(Constant(tensor(1, 1, 1, 4, type=DataType.S32)))),
    Kept(ask(Output(DataFormat.NHWCB), MAP)),
    Kept(ask(Relu(2, 2), MAP)),
    Kept(ask(LeakyRelu(0.999, PLAIN), MAP)),
    Kept(ask(Sigmoid(), NCHW)),
    Kept(ask(Tanh(), NCHW)),
    Kept(ask(Requantize(of(255, 0.0079)), MAP)),
    Kept(ask(Requantize(of(255), DataType.U8), SIGNED)),
    Kept(ask(REINTERPRET, replace(MAP, quantization=TWO_SCALES))),
    Kept(ask(_JOIN, MAP, MAP)),
    # Scales of an input are not counted; the first is taken.
    Kept(ask(_JOIN, replace(MAP, quantization=QuantizationInfo(0, (1.0, 1000.0))), MAP)),
    Kept(ask(_JOIN, MAP, tensor(1, 16, 16, 17)), NEW),
    Kept(ask(Concatenation(2, PLAIN), tensor(1, 4, 5, 3), tensor(1, 4, 6, 3))),
    Kept(ask(_SPLIT, _SPLIT_INPUT)),
    Kept(ask(Split(3, (8, 8)), MAP), NEW),
    Kept(ask(Split(1, (5, 11)), MAP)),
    Kept(ask(Addition(PLAIN), MAP, replace(MAP, format=DataFormat.NHWCB))),
    Kept(ask(Multiplication(PLAIN), MAP, MAP), NEW),
    Kept(ask(MeanXy(), PLANE)),
    Kept(ask(MeanXy(), tensor(1, 7, 7, 16))),
    Kept(ask(Reshape((1, 1, 1, 4096)), MAP)),
    # The output is taken to have 8-bit elements.
    Kept(ask(Reshape((1, 1, 1, 16)), tensor(1, 1, 1, 4, type=DataType.S32))),
    Kept(ask(DepthToSpace(2), MAP)),
    Kept(ask(Transpose((0, 2, 1, 3)), MAP), NEW),
    Kept(ask(BIGGER, MAP)),
    Kept(ask(Resize(NEAREST, 31, 31, of(255)), MAP)),
    Kept(ask(PAD, MAP), NEW),
]
