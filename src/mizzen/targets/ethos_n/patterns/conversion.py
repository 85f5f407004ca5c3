"""A tensor times or plus a constant, in forms that the NPU has.

A product with one number is the same numbers read with another scale, if the output has that one;
else, and with a number for each channel, a depthwise convolution of 1x1. Sums likewise: another
zero point, or a convolution with ones and the constant as bias.

Ref: Apache TVM v0.14.0, Ethos-N: ConvertEquivalents. It takes numbers for the same that differ by
up to 0.004 in scale or by one zero point; here every number must round to what it is.
"""

from __future__ import annotations

from math import prod

import numpy as np

from mizzen.graph import Array, Value
from mizzen.patterns import Match, Pattern, Reject
from mizzen.targets.ethos_n.operations import DepthwiseConvolution, ReinterpretQuantization
from mizzen.targets.ethos_n.patterns.arithmetic import (
    CONSTANT,
    FACTOR,
    MULTIPLIED,
    PRODUCT,
    PRODUCT_SCALED,
    SHIFTED,
    SHIFTED_SCALED,
    TENSOR,
    C,
    X,
    line_of,
    units_of,
)
from mizzen.targets.ethos_n.patterns.emission import Emission
from mizzen.targets.ethos_n.patterns.findings import Findings, UnfitError, unfit
from mizzen.targets.ethos_n.patterns.values import (
    channels_last,
    close,
    info_of,
    one_rescaling_of,
    quantization_info,
)
from mizzen.targets.ethos_n.patterns.weighted import add, weights_of
from mizzen.targets.ethos_n.tensors import DataFormat, DataType, Padding, Stride

HALF_STEP = 0.5
"""A number that is off by less rounds to what it should be."""

LEAST_SCALE = 1 / 255
"""The finest scale that TVM gives the kernel of ones."""

SPAN = 255
"""What the numbers of an 8-bit type can differ by."""


def _is_one_number(match: Match) -> Reject | None:
    """The constant is one number."""
    size = match[C].type.elements
    if size != 1:
        return Reject(f"the constant must be one number, and is {size}")
    return None


def _is_identity(match: Match) -> Reject | None:
    """Every number stays what it is."""
    try:
        line = _affine(match)
    except UnfitError as error:
        return Reject(str(error))
    numbers = np.arange(line.low, line.high + 1)
    off = np.abs(line.of(numbers) - numbers).max()
    if off > HALF_STEP:
        return Reject(f"numbers must stay what they are, and change by up to {off:.3g}")
    return None


PATTERNS = {
    "qnn_mul_to_reinterpret_quantize": Pattern(
        "ethos-n.qnn_mul_to_reinterpret_quantize", PRODUCT_SCALED, (_is_one_number, _is_identity)
    ),
    "qnn_mul_to_depthwise": Pattern("ethos-n.qnn_mul_to_depthwise", PRODUCT_SCALED),
    "qnn_add_to_reinterpret_quantize": Pattern(
        "ethos-n.qnn_add_to_reinterpret_quantize", SHIFTED_SCALED, (_is_one_number, _is_identity)
    ),
    "qnn_add_to_depthwise": Pattern("ethos-n.qnn_add_to_depthwise", SHIFTED_SCALED),
}


class _Affine:
    """Numbers of the output as a function of those of the input, before they are rounded."""

    def __init__(self, factor: float, zero_point: int, offset: float, source: Value) -> None:
        self.factor, self.zero_point, self.offset = factor, zero_point, offset
        data_type = info_of(source).data_type
        self.low, self.high = data_type.lowest, data_type.highest

    def of(self, numbers: Array) -> Array:
        """Return the numbers of the output."""
        return (numbers - self.zero_point) * self.factor + self.offset


def _affine(match: Match) -> _Affine:
    """Return what a sum or product with one number does."""
    result = one_rescaling_of(match.root)
    if PRODUCT in match:
        line = line_of(match, match[X], MULTIPLIED)
        data, zero_point, ratio = units_of(match, FACTOR)
        factor = (int(data.reshape(-1)[0]) - zero_point) * ratio
        return _Affine(line.ratio * factor * result.ratio, line.zero_point, result.after, match[X])
    line = line_of(match, match[X], TENSOR)
    shift = float(_addends(match).reshape(-1)[0])
    return _Affine(
        line.ratio * result.ratio, line.zero_point, shift * result.ratio + result.after, match[X]
    )


def _addends(match: Match) -> Array:
    """Return the constant of a sum in its unit, before the RESCALE; its negative if subtracted."""
    data, zero_point, ratio = units_of(match, CONSTANT)
    sign = -1.0 if match[SHIFTED].kind == "SUB" else 1.0
    return sign * (data.astype(np.float64) - zero_point) * ratio


def reinterpreted(emission: Emission, match: Match) -> None:
    """Add the same numbers, read with the output's quantisation."""
    result = match.root.result
    _check(match[X], result)
    operation = ReinterpretQuantization(quantization_info(result))
    emission.bind(result, emission.add(operation, emission.as_it_is(match[X])))


def multiplied(emission: Emission, match: Match) -> None:
    """Add a depthwise convolution with the constant as its kernel."""
    result = match.root.result
    _check(match[X], result)
    shape = channels_last(result.shape)
    line = line_of(match, match[X], MULTIPLIED)
    data, zero_point, ratio = units_of(match, FACTOR)
    source = info_of(match[X], channels_last(match[X].shape))
    output, rescaling = quantization_info(result), one_rescaling_of(match.root)
    _zero_points(
        line.zero_point, source.quantization.zero_point, rescaling.after, output.zero_point
    )
    kernel, zero_point = _narrow(_by_channel(data, shape), zero_point)
    scale = line.ratio * ratio * rescaling.ratio * output.scale / source.quantization.scale
    weights = weights_of(
        kernel.reshape(1, 1, -1, 1),
        np.array([scale]),
        zero_point,
        np.zeros(1, np.int32),
        source,
        output,
        format=DataFormat.HWIM,
    )
    operand = emission.operand(match[X], source.shape)
    operation = DepthwiseConvolution(Padding(), Stride(), output)
    emission.bind(result, add(emission, operation, operand, weights))


def added(emission: Emission, match: Match) -> None:
    """Add a depthwise convolution with ones and the constant as its bias.

    Ones are the number r of scale 1/r, r as large as an 8-bit number can be and the scale of sums,
    input scale / r, allows: halfway between the finest scale and output scale / input scale.
    """
    result = match.root.result
    _check(match[X], result)
    source = info_of(match[X], channels_last(match[X].shape))
    output, rescaling = quantization_info(result), one_rescaling_of(match.root)
    line = line_of(match, match[X], TENSOR)
    _zero_points(
        line.zero_point, source.quantization.zero_point, rescaling.after, output.zero_point
    )
    if not close(line.ratio * rescaling.ratio, source.quantization.scale / output.scale):
        raise unfit("sum", "multipliers of a sum must be those of its tensors")
    addends = _by_channel(_addends(match), channels_last(result.shape))
    one, scale = _ones(source.quantization.scale, output.scale)
    reals = addends * rescaling.ratio * output.scale
    bias = np.rint(reals / (source.quantization.scale * scale))
    limits = np.iinfo(np.int32)
    weights = weights_of(
        np.full((1, 1, source.channels, 1), one),
        np.array([scale]),
        0,
        np.clip(bias, limits.min, limits.max).astype(np.int32),
        source,
        output,
        data_type=DataType.U8,
        format=DataFormat.HWIM,
    )
    operand = emission.operand(match[X], source.shape)
    operation = DepthwiseConvolution(Padding(), Stride(), output)
    emission.bind(result, add(emission, operation, operand, weights))


def _ones(source: float, output: float) -> tuple[int, float]:
    """Return the number that stands for one, and its scale."""
    coarsest = min(output / source, 1.0)
    number = min(round(1 / ((coarsest + LEAST_SCALE) / 2)), SPAN)
    return number, 1 / number


def _by_channel(data: Array, shape: tuple[int, int, int, int]) -> Array:
    """Return a constant's elements, one for each channel; UnfitError if it has others."""
    channels = shape[3]
    size = int(data.size)
    along = data.shape[-1:] == (channels,) and size == channels
    if not along and size != 1:
        raise unfit(
            "constant-elements",
            f"constant shape={list(data.shape)}, constant must be one number or {channels}, one "
            "for each channel",
            limit=f"1 or {channels} elements along the channels",
            actual=f"{size} elements" if prod(data.shape) else "none",
            help="let the constant be one number, or one for each channel",
        )
    return np.broadcast_to(data.reshape(-1), (channels,))


def _narrow(data: Array, zero_point: int) -> tuple[Array, int]:
    """Return integers and their zero point in a range of 8 bits with sign."""
    wide = data.astype(np.int64) - zero_point
    low, high = min(int(wide.min()), 0), max(int(wide.max()), 0)
    if high - low > SPAN:
        raise unfit(
            "constant-range",
            f"constant range={low} to {high}, constant must have {SPAN + 1} numbers at most",
            limit="numbers of 8 bits",
            actual=f"{low} to {high}",
            help="quantise the constant to 8 bits",
        )
    zero = min(max(zero_point, -128 - low), 127 - high)
    return wide + zero, zero


def _zero_points(source: int, wanted: int, result: int, wanted_result: int) -> None:
    if (source, result) != (wanted, wanted_result):
        raise unfit("zero-point", "zero points of RESCALEs must be those of the tensors")


def _check(source: Value, result: Value) -> None:
    findings = Findings()
    findings.feature_map(source, result)
    findings.need(
        source.shape == result.shape,
        "broadcast",
        f"input shape={list(source.shape)}, input shape must = {list(result.shape)}",
        limit="a constant that is no larger than the tensor",
        actual=str(list(source.shape)),
        help="repeat the tensor before",
    )
    findings.settle()
