"""Rules of quantisation: axes, numbers of scales, zero points, ranges of scales.

The library computes with scales in float32; so do these rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.legal.operation_rule import Case, O, OperationRule, rule
from mizzen.targets.ethos_n.legal.tensor_rules import Pick, first, third
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
)
from mizzen.targets.ethos_n.tensors import DataType, QuantizationInfo, TensorInfo
from mizzen.targets.rules import Breach, Level

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
        found = pick(case).quantization.axis
        return None if found in (None, axis) else f"axis {found}"

    def count(case: Case[Operation]) -> Breach | None:
        info = pick(case)
        wanted, found = info.shape[axis], len(info.quantization.scales)
        if info.quantization.axis is None or wanted == found:
            return None
        return Breach(f"{found} scales for {wanted} channels", (wanted, found))

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
