"""What rules of operations are made of: how a row is made, and the rules that many share.

First the vocabulary: what is asked about, and rows. Then rules of feature maps, weights and biases
(extents, types, layouts) and of given output infos; then of quantisation: axes, numbers of scales,
zero points, ranges of scales. The library computes with scales in float32; so do these rules. The
paddings of windows that move over a plane are here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.config import Capabilities, Profile
from mizzen.targets.ethos_n.network import (
    Addition,
    Concatenation,
    Convolution,
    DepthwiseConvolution,
    FullyConnected,
    LeakyRelu,
    Multiplication,
    Operation,
    ReinterpretQuantization,
    Requantize,
    Resize,
    TransposeConvolution,
    Weighted,
    output_infos,
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
from mizzen.targets.rules import Breach, ForEach, Found, Head, Level, Rule

O_co = TypeVar("O_co", bound=Operation, covariant=True)
O = TypeVar("O", bound=Operation)  # noqa: E741  an operation, as in the one above

BOTH = (Profile.V23_02, Profile.V25_03)
V23_02 = (Profile.V23_02,)
V25_03 = (Profile.V25_03,)


@dataclass(frozen=True, slots=True)
class Case(Generic[O_co]):
    """An operation that is asked about.

    expected  the output infos that it should have; None where none were given
    """

    operation: O_co
    inputs: tuple[TensorInfo, ...]
    capabilities: Capabilities
    expected: tuple[TensorInfo, ...] | None = None

    @property
    def input(self) -> TensorInfo:
        """The first input."""
        return self.inputs[0]

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What it makes of its inputs.

        For rules that stand after those of its parameters, which may make it impossible to tell.
        """
        return output_infos(self.operation, self.inputs)


Measure = Callable[[Case[O]], Found]
OperationRule = Rule[Case[O]]
Step = OperationRule[O] | ForEach[Case[O]]


def rule(
    id: str,
    level: Level = Level.UNSUPPORTED,
    profiles: tuple[Profile, ...] = BOTH,
    *,
    fills: bool = False,
) -> Head:
    """Begin a row; what it must have comes with the help, and with the library's message."""
    return Head(id, on=profiles, level=level, fills=fills)


def each_input(*rules: OperationRule[O]) -> ForEach[Case[O]]:
    """Return rules tested on one input after the other; each is the only one then."""
    return ForEach(_by_input, rules)


def _by_input(case: Case[O]) -> Iterable[Case[O]]:
    return (replace(case, inputs=(info,)) for info in case.inputs)


def shape_text(info: TensorInfo) -> str:
    """Write a shape."""
    return "x".join(map(str, info.shape))


Pick = Callable[[Case[O]], TensorInfo]
"""Returns the tensor that a rule is about."""

CHUNK_BYTES = 8 * 8
"""SRAM for each channel: the least part of a plane that NHWC can be turned into bricks by."""

EIGHT_BITS = (DataType.U8, DataType.S8)
FEATURE_MAP_FORMATS = (DataFormat.NHWC, DataFormat.NHWCB)
QUANTIZE = "quantise it to INT8 or UINT8"


def first(case: Case[Operation]) -> TensorInfo:
    """Return the first input."""
    return case.inputs[0]


def second(case: Case[Operation]) -> TensorInfo:
    """Return the second input: of weighted operations the bias."""
    return case.inputs[1]


def third(case: Case[Operation]) -> TensorInfo:
    """Return the third input: of weighted operations the weights."""
    return case.inputs[2]


def output(case: Case[Operation]) -> TensorInfo:
    """Return the first output."""
    return case.outputs[0]


def batch(*pick: Pick[O]) -> OperationRule[O]:
    """Make the rule that feature maps hold one element of a batch."""

    def measure(case: Case[O]) -> Breach | None:
        counts = (one(case).shape[0] for one in pick)
        return next((Breach(f"one of {count}") for count in counts if count != 1), None)

    return rule("batch").must_have(
        "a batch of 1",
        "export the network with a batch of 1, and run it for each element of the batch",
        "Batch size must be 1",
    )(measure)


BATCH = batch(first)


def is_too_deep(info: TensorInfo, sram_bytes: int) -> bool:
    """Whether the channels of one chunk do not fit; where W is 1, channels can be split."""
    return info.width != 1 and CHUNK_BYTES * info.channels > sram_bytes


def deep(info: TensorInfo, sram_bytes: int) -> Breach:
    """Tell that the channels do not fit."""
    chunk = CHUNK_BYTES * info.channels
    actual = f"{info.channels} channels, which take {chunk} of {sram_bytes} bytes"
    return Breach(actual, (chunk, sram_bytes))


def depth(id: str, what: str, pick: Pick[O]) -> OperationRule[O]:
    """Make the rule that the channels of a tensor fit in the SRAM."""

    def measure(case: Case[O]) -> Breach | None:
        info, sram_bytes = pick(case), case.capabilities.sram_bytes
        return deep(info, sram_bytes) if is_too_deep(info, sram_bytes) else None

    return depth_rule(id, what, measure)


def depth_rule(id: str, what: str, measure: Measure[O]) -> OperationRule[O]:
    """Make the rule that `depth` makes, with another measure."""
    tensor = id.removesuffix("-depth").replace("-", " ")
    return rule(id).must_have(
        f"channels of the {tensor} that fit in the SRAM, {CHUNK_BYTES} bytes each, "
        "unless it is 1 wide",
        "split the channels over several operations, or take a variant with more SRAM",
        f"{what}: Tensor max depth cannot fit in SRAM (%d / %d)",
    )(measure)


def data_type(id: str, what: str, pick: Pick[O]) -> OperationRule[O]:
    """Make the rule that a tensor has 8 bits."""

    def measure(case: Case[O]) -> Breach | None:
        type_ = pick(case).data_type
        return None if type_ in EIGHT_BITS else Breach(type_.value)

    return rule(id).must_have(
        f"{_tensor(id)} of UINT8 or INT8",
        QUANTIZE,
        f"{what} must be UINT8_QUANTIZED or INT8_QUANTIZED",
    )(measure)


def bias_type(what: str) -> OperationRule[Operation]:
    """Make the rule that the bias has 32 bits."""

    def measure(case: Case[Operation]) -> Breach | None:
        type_ = case.inputs[1].data_type
        return None if type_ is DataType.S32 else Breach(type_.value)

    return rule("bias-type").must_have(
        "a bias of INT32", "give the bias as INT32", f"{what} must be INT32_QUANTIZED"
    )(measure)


def layout(
    id: str, wanted: tuple[DataFormat, ...], message: str, pick: Pick[O]
) -> OperationRule[O]:
    """Make the rule that a tensor has one of some formats."""
    names = " or ".join(format_.value for format_ in wanted)

    def measure(case: Case[O]) -> Breach | None:
        format_ = pick(case).format
        return None if format_ in wanted else Breach(format_.value)

    return rule(id).must_have(f"{_tensor(id)} in {names}", f"give it in {names}", message)(measure)


def input_layout(message: str) -> OperationRule[Operation]:
    """Make the rule that the first input is a feature map by its format."""
    return layout("input-format", FEATURE_MAP_FORMATS, message, first)


def _tensor(id: str) -> str:
    """Name the tensor that a rule is about, from the rule's name."""
    tensor = id.rpartition("-")[0].replace("-", " ")
    article = {"inputs": "", "weights": ""}.get(tensor, "an " if tensor[0] in "aeiou" else "a ")
    return f"{article}{tensor}"


def _differs(case: Case[Operation]) -> str | None:
    """Compare the given output infos; one without elements stands for "tell me"."""
    return _difference(case, lambda given, made: bool(given.elements) and given != made)


def _differs_or_empty(case: Case[Operation]) -> str | None:
    return _difference(case, lambda given, made: given != made)


def _difference(
    case: Case[Operation], differs: Callable[[TensorInfo, TensorInfo], bool]
) -> str | None:
    for given, made in zip(case.expected or (), case.outputs, strict=False):
        if differs(given, made):
            return f"{shape_text(made)} {made.data_type.value}, not {shape_text(given)}"
    return None


_output_info = rule("output-info", fills=True).must_have(
    "the output info that was given, where one was given",
    "give no output info, or that which the operation makes of its inputs",
    "Provided outputInfo is incorrect",
)
OUTPUT_INFO: OperationRule[Operation] = _output_info(_differs)
FULL_OUTPUT_INFO: OperationRule[Operation] = _output_info(_differs_or_empty)
"""The same of `SpaceToDepth`, where an info without elements is compared like any other."""


Quantizing = (
    Convolution | DepthwiseConvolution | TransposeConvolution | FullyConnected | Concatenation
    | Addition | Multiplication | ReinterpretQuantization | Requantize | LeakyRelu | Resize
)  # fmt: skip
"""Operations that are told the quantisation of what they give."""

IDENTITY_SCALE = 1 / 128
"""Scale of the weight 128 by which a feature map is requantised."""

OVERALL_SCALE_END = 65536.0
"""What input scale * weight scale / output scale must be under."""

ONE_SCALE = "quantise it with one scale for the whole tensor"
CALIBRATE = "quantise the network again"


def product(first: tuple[float, ...], second: tuple[float, ...]) -> tuple[float, ...]:
    """Multiply scales in float32, element by element or one with all."""
    with np.errstate(all="ignore"):
        return _tuple(np.asarray(first, np.float32) * np.asarray(second, np.float32))


def quotient(first: tuple[float, ...], second: tuple[float, ...]) -> tuple[float, ...]:
    """Divide scales in float32, element by element or all by one."""
    with np.errstate(all="ignore"):
        return _tuple(np.asarray(first, np.float32) / np.asarray(second, np.float32))


def _tuple(scales: npt.NDArray[np.float32]) -> tuple[float, ...]:
    return tuple(scales.tolist())


def input_per_tensor(
    what: str, level: Level = Level.UNSUPPORTED
) -> tuple[OperationRule[Operation], ...]:
    """Make the rules that the first input has one scale for all its channels."""

    def quantization(case: Case[Operation]) -> QuantizationInfo:
        return first(case).quantization

    return _per_tensor("Input", what, level, quantization)


def output_per_tensor(what: str) -> tuple[OperationRule[Quantizing], ...]:
    """Make the rules that the output has one scale for all its channels."""

    def quantization(case: Case[Quantizing]) -> QuantizationInfo:
        return case.operation.output

    return _per_tensor("Output", what, Level.UNSUPPORTED, quantization)


def _per_tensor(
    tensor: str, what: str, level: Level, pick: Callable[[Case[O]], QuantizationInfo]
) -> tuple[OperationRule[O], ...]:
    def along(case: Case[O]) -> str | None:
        axis = pick(case).axis
        return None if axis is None else f"scales along axis {axis}"

    def scales(case: Case[O]) -> str | None:
        count = len(pick(case).scales)
        return None if count == 1 else str(count)

    name = tensor.lower()
    return (
        rule(f"{name}-axis", level).must_have(
            f"an {name} without an axis of quantisation",
            ONE_SCALE,
            f"{what}: Quantization Dim should not be used on {tensor}",
        )(along),
        rule(f"{name}-scales", level).must_have(
            f"one scale of the {name}",
            ONE_SCALE,
            f"{what}: {tensor} quantization scales must have a size of 1",
        )(scales),
    )


def per_channel(
    tensor: str, what: str, axis: int, pick: Pick[Operation]
) -> tuple[OperationRule[Operation], ...]:
    """Make the rules that scales are along the channels, one for each; or without an axis."""

    def other_axis(case: Case[Operation]) -> str | None:
        own_axis = pick(case).quantization.axis
        return None if own_axis in (None, axis) else f"axis {own_axis}"

    def count(case: Case[Operation]) -> Breach | None:
        info = pick(case)
        wanted, scales = info.shape[axis], len(info.quantization.scales)
        if info.quantization.axis is None or wanted == scales:
            return None
        return Breach(f"{scales} scales for {wanted} channels", (wanted, scales))

    name = tensor.lower()
    return (
        rule(f"{name}-axis").must_have(
            f"scales of the {name} along axis {axis}, where they are along one",
            "quantise weights and bias for each output channel, or for the whole tensor",
            f"{what}: Per channel quantization axis must be {axis} for {tensor}",
        )(other_axis),
        rule(f"{name}-scales").must_have(
            f"a scale of the {name} for each channel, where they are along an axis",
            CALIBRATE,
            f"{what}: {tensor} must have quantization scales with same number of elements as the "
            "quantization dim. Expected: %d, got: %d.",
        )(count),
    )


def zero_point_fits(data_type: DataType, quantization: QuantizationInfo) -> bool:
    """Whether a zero point is a number of the type."""
    return data_type.lowest <= quantization.zero_point <= data_type.highest


def _beyond(data_type: DataType, quantization: QuantizationInfo) -> str | None:
    if zero_point_fits(data_type, quantization):
        return None
    return f"{quantization.zero_point} for {data_type.value}"


def zero_point(
    id: str, place: str, pick: Pick[O], level: Level = Level.UNSUPPORTED
) -> OperationRule[O]:
    """Make the rule that a tensor's zero point is a number of its type."""

    def measure(case: Case[O]) -> str | None:
        info = pick(case)
        return _beyond(info.data_type, info.quantization)

    tensor = id.removesuffix("-zero-point").replace("-", " ")
    return rule(id, level).must_have(
        f"a zero point of the {tensor} from 0 to 255 for UINT8, from -128 to 127 for INT8",
        CALIBRATE,
        f"Zero point out of range for {place}",
    )(measure)


def input_zero_point(place: str = "input info") -> OperationRule[Operation]:
    """Make the rule that the first input's zero point is a number of its type."""
    return zero_point("input-zero-point", place, first)


def weights_zero_point(level: Level) -> OperationRule[Operation]:
    """Make the rule that the weights' zero point is a number of their type."""
    return zero_point("weights-zero-point", "weights info", third, level)


def output_zero_point(place: str) -> OperationRule[Quantizing]:
    """Make the rule that the output's zero point is a number of its type, mostly the input's."""

    def info(case: Case[Quantizing]) -> TensorInfo:
        own = case.operation.data_type if isinstance(case.operation, Requantize) else None
        data_type = own or case.input.data_type
        return replace(case.input, data_type=data_type, quantization=case.operation.output)

    return zero_point("output-zero-point", place, info)


def identity_scale(subject: str) -> OperationRule[Requantize | Concatenation]:
    """Make the rule that an input can be requantised by the weight of an identity convolution."""

    def measure(case: Case[Requantize | Concatenation]) -> str | None:
        scales, wanted = case.input.quantization.scales[:1], case.operation.output.scales[:1]
        ratios = quotient(product(scales, (IDENTITY_SCALE,)), wanted)
        if all(0 <= ratio < 1 for ratio in ratios):
            return None
        return f"{wanted[0]:.6g} for an input scale of {scales[0]:.6g}"

    return rule("requantize-scale", Level.ESTIMATE_ONLY).must_have(
        "an output scale over 1/128 of the input's",
        "quantise the network again, so that the two ranges are less apart",
        f"{subject} must be bigger than input scale / 128",
    )(measure)


def bias_scales_of(feature_map: TensorInfo, weights: TensorInfo) -> tuple[float, ...]:
    """Return the scales that a bias must have: input scale * weight scale, in float32."""
    return product(feature_map.quantization.scales, weights.quantization.scales)


def overall_scale(what: str) -> OperationRule[Weighted]:
    """Make the rule that accumulators can be scaled to the output."""

    def measure(case: Case[Weighted]) -> str | None:
        feature_map, _, weights = case.inputs
        scales = quotient(bias_scales_of(feature_map, weights), case.operation.output.scales)
        wrong = [scale for scale in scales if scale < 0 or scale >= OVERALL_SCALE_END]
        return f"{wrong[0]:.6g}" if wrong else None

    return rule("overall-scale", Level.ESTIMATE_ONLY).must_have(
        "input scale * weight scale / output scale from 0 to under 65536",
        CALIBRATE,
        f"{what}: Overall scale (of the input * weights / output) should be in the range "
        "(2^-32, 65536)",
    )(measure)


VALID = Padding()
REGISTER_LARGEST = 7
"""What the hardware's fields of padding hold; release 25.03 uses all of them."""


def same_paddings(shape: Shape, size: tuple[int, int], stride: Stride) -> tuple[Padding, ...]:
    """Return the three paddings that count as SAME, for a window of `size` (height, width).

    Output extents are then ceil(extent / stride). An odd element is on neither side alone: it is
    added to both, to the first, or to the second.
    """
    high, low = _shares(shape[1], size[0], stride.y)
    wide, narrow = _shares(shape[2], size[1], stride.x)
    return (
        Padding(high, high, wide, wide),
        Padding(high, low, wide, narrow),
        Padding(low, high, narrow, wide),
    )


def _shares(extent: int, size: int, stride: int) -> tuple[int, int]:
    """Halve the padding of an axis: the greater half, the lesser half."""
    padded = (-(-extent // stride) - 1) * stride + size
    total = max(padded - extent, 0)
    greater = -(-total // 2)
    return greater, total - greater


def sides(padding: Padding) -> tuple[int, int, int, int]:
    """Return the elements at the four sides."""
    return padding.top, padding.bottom, padding.left, padding.right


def padding_text(padding: Padding) -> str:
    """Write a padding."""
    top, bottom, left, right = sides(padding)
    return f"top {top}, bottom {bottom}, left {left}, right {right}"
