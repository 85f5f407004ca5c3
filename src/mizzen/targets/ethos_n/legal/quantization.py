"""Rules of quantisation: axes, numbers of scales, zero points, ranges of scales.

The library computes with scales in float32; so do these rules.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mizzen.targets.ethos_n.legal.rule import Breach, Case, Level, O, Rule
from mizzen.targets.ethos_n.legal.tensors import Pick, first, third
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


def input_per_tensor(what: str, level: Level = Level.UNSUPPORTED) -> tuple[Rule[Operation], ...]:
    """Make the rules that the first input has one scale for all its channels."""

    def quantization(case: Case[Operation]) -> QuantizationInfo:
        return first(case).quantization

    return _per_tensor("Input", what, level, quantization)


def output_per_tensor(what: str) -> tuple[Rule[Quantizing], ...]:
    """Make the rules that the output has one scale for all its channels."""

    def quantization(case: Case[Quantizing]) -> QuantizationInfo:
        return case.operation.output

    return _per_tensor("Output", what, Level.UNSUPPORTED, quantization)


def _per_tensor(
    tensor: str, what: str, level: Level, pick: Callable[[Case[O]], QuantizationInfo]
) -> tuple[Rule[O], ...]:
    def along(case: Case[O]) -> Breach | None:
        axis = pick(case).axis
        return None if axis is None else Breach(f"scales along axis {axis}")

    def scales(case: Case[O]) -> Breach | None:
        count = len(pick(case).scales)
        return None if count == 1 else Breach(str(count))

    name = tensor.lower()
    return (
        Rule(
            f"{name}-axis",
            level,
            f"an {name} without an axis of quantisation",
            f"{what}: Quantization Dim should not be used on {tensor}",
            along,
            ONE_SCALE,
        ),
        Rule(
            f"{name}-scales",
            level,
            f"one scale of the {name}",
            f"{what}: {tensor} quantization scales must have a size of 1",
            scales,
            ONE_SCALE,
        ),
    )


def per_channel(
    tensor: str, what: str, axis: int, pick: Pick[Operation]
) -> tuple[Rule[Operation], ...]:
    """Make the rules that scales are along the channels, one for each; or without an axis."""

    def other_axis(case: Case[Operation]) -> Breach | None:
        found = pick(case).quantization.axis
        return None if found in (None, axis) else Breach(f"axis {found}")

    def count(case: Case[Operation]) -> Breach | None:
        info = pick(case)
        wanted, found = info.shape[axis], len(info.quantization.scales)
        if info.quantization.axis is None or wanted == found:
            return None
        return Breach(f"{found} scales for {wanted} channels", (wanted, found))

    name = tensor.lower()
    return (
        Rule(
            f"{name}-axis",
            Level.UNSUPPORTED,
            f"scales of the {name} along axis {axis}, where they are along one",
            f"{what}: Per channel quantization axis must be {axis} for {tensor}",
            other_axis,
            "quantise weights and bias for each output channel, or for the whole tensor",
        ),
        Rule(
            f"{name}-scales",
            Level.UNSUPPORTED,
            f"a scale of the {name} for each channel, where they are along an axis",
            f"{what}: {tensor} must have quantization scales with same number of elements as the "
            "quantization dim. Expected: %d, got: %d.",
            count,
            CALIBRATE,
        ),
    )


def zero_point_fits(data_type: DataType, quantization: QuantizationInfo) -> bool:
    """Whether a zero point is a number of the type."""
    return data_type.lowest <= quantization.zero_point <= data_type.highest


def _beyond(data_type: DataType, quantization: QuantizationInfo) -> Breach | None:
    if zero_point_fits(data_type, quantization):
        return None
    return Breach(f"{quantization.zero_point} for {data_type.value}")


def zero_point(
    id: str,
    place: str,
    pick: Pick[O],
    level: Level = Level.UNSUPPORTED,
) -> Rule[O]:
    """Make the rule that a tensor's zero point is a number of its type."""

    def measure(case: Case[O]) -> Breach | None:
        info = pick(case)
        return _beyond(info.data_type, info.quantization)

    return _zero_point_rule(id, place, level, measure)


def input_zero_point(place: str = "input info") -> Rule[Operation]:
    """Make the rule that the first input's zero point is a number of its type."""
    return zero_point("input-zero-point", place, first)


def weights_zero_point(level: Level) -> Rule[Operation]:
    """Make the rule that the weights' zero point is a number of their type."""
    return zero_point("weights-zero-point", "weights info", third, level)


def output_zero_point(place: str) -> Rule[Quantizing]:
    """Make the rule that the output's zero point is a number of the input's type."""

    def measure(case: Case[Quantizing]) -> Breach | None:
        return _beyond(case.input.data_type, case.operation.output)

    return _zero_point_rule("output-zero-point", place, Level.UNSUPPORTED, measure)


def requantized_zero_point(place: str) -> Rule[Requantize]:
    """Make the rule that the output's zero point is a number of the output's type."""

    def measure(case: Case[Requantize]) -> Breach | None:
        return _beyond(case.operation.data_type or case.input.data_type, case.operation.output)

    return _zero_point_rule("output-zero-point", place, Level.UNSUPPORTED, measure)


def _zero_point_rule(
    id: str, place: str, level: Level, measure: Callable[[Case[O]], Breach | None]
) -> Rule[O]:
    tensor = id.removesuffix("-zero-point").replace("-", " ")
    return Rule(
        id,
        level,
        f"a zero point of the {tensor} from 0 to 255 for UINT8, from -128 to 127 for INT8",
        f"Zero point out of range for {place}",
        measure,
        CALIBRATE,
    )


def identity_scale(subject: str) -> Rule[Requantize | Concatenation]:
    """Make the rule that an input can be requantised by the weight of an identity convolution."""

    def measure(case: Case[Requantize | Concatenation]) -> Breach | None:
        scales, wanted = case.input.quantization.scales[:1], case.operation.output.scales[:1]
        ratios = quotient(product(scales, (IDENTITY_SCALE,)), wanted)
        if all(0 <= ratio < 1 for ratio in ratios):
            return None
        return Breach(f"{wanted[0]:.6g} for an input scale of {scales[0]:.6g}")

    return Rule(
        "requantize-scale",
        Level.ESTIMATE_ONLY,
        "an output scale over 1/128 of the input's",
        f"{subject} must be bigger than input scale / 128",
        measure,
        "quantise the network again, so that the two ranges are less apart",
    )


def bias_scales_of(feature_map: TensorInfo, weights: TensorInfo) -> tuple[float, ...]:
    """Return the scales that a bias must have: input scale * weight scale, in float32."""
    return product(feature_map.quantization.scales, weights.quantization.scales)


def overall_scale(what: str) -> Rule[Weighted]:
    """Make the rule that accumulators can be scaled to the output."""

    def measure(case: Case[Weighted]) -> Breach | None:
        feature_map, _, weights = case.inputs
        scales = quotient(bias_scales_of(feature_map, weights), case.operation.output.scales)
        wrong = [scale for scale in scales if scale < 0 or scale >= OVERALL_SCALE_END]
        return Breach(f"{wrong[0]:.6g}") if wrong else None

    return Rule(
        "overall-scale",
        Level.ESTIMATE_ONLY,
        "input scale * weight scale / output scale from 0 to under 65536",
        f"{what}: Overall scale (of the input * weights / output) should be in the range "
        "(2^-32, 65536)",
        measure,
        CALIBRATE,
    )
