"""Numbers one by one: sums and products, with a tensor or a constant, and functions of a number.

Front-ends scale both operands to one unit in 32 bits by RESCALEs, add or multiply, and RESCALE
the result. A constant operand makes an affine function of it all, number * factor + offset, for
which the NPU has cheaper forms. A product with one number is the same numbers read with another
scale, if the output has that one; else, and with a number for each channel, a depthwise convolution
of 1x1. Sums likewise: another zero point, or a convolution with ones and the constant as bias.

A TABLE is known by its entries: whatever made it, it is a function if every entry is within one of
the number that the function's value rounds to.

Ref: Apache TVM v0.14.0, Ethos-N: ConvertEquivalents. It takes numbers for the same that differ by
up to 0.004 in scale or by one zero point; here every number must round to what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from mizzen.graph import Array, DType, Operation, Value
from mizzen.ops.elementwise import Add, Clamp, Mul, Sub, Table
from mizzen.ops.type_conversion import Rescale
from mizzen.patterns import Const, Match, Pattern, Reject, Through, Var, chain, of, op
from mizzen.targets.ethos_n.network import (
    Addition,
    DepthwiseConvolution,
    LeakyRelu,
    ReinterpretQuantization,
    Relu,
    Sigmoid,
    Tanh,
)
from mizzen.targets.ethos_n.network import Operation as NetworkOperation
from mizzen.targets.ethos_n.patterns.graph_values import (
    Emission,
    Findings,
    Rescaling,
    UnfitError,
    channels_last,
    close,
    contents,
    info_of,
    need_exponents,
    need_no_wrapping,
    one_rescaling_of,
    quantization_info,
    rescaling_of,
    unfit,
)
from mizzen.targets.ethos_n.patterns.weighted_patterns import add, requantized, weights_of
from mizzen.targets.ethos_n.tensors import DataFormat, DataType, Padding, QuantizationInfo, Stride

SMALL = of(DType.INT8, DType.UINT8, DType.INT16)

X, Y = Var("x", SMALL), Var("y", SMALL)
LEFT = chain(op(Rescale, X, result=of(DType.INT32), once=True))
RIGHT = chain(op(Rescale, Y, result=of(DType.INT32), once=True))
SUM = op(Add, LEFT, RIGHT, once=True)
SUM_SCALED = op(Rescale, SUM)

C = Const("constant")
TENSOR = chain(op(Rescale, X, result=of(DType.INT32), once=True))
CONSTANT = chain(op(Rescale, C, result=of(DType.INT32)))
SHIFTED = op((Add, Sub), TENSOR, CONSTANT, once=True)
SHIFTED_SCALED = op(Rescale, SHIFTED)

FACTOR = chain(op(Rescale, C, result=of(DType.INT32)))
MULTIPLIED = chain(op(Rescale, X, result=of(DType.INT32), once=True))
PRODUCT = op(Mul, MULTIPLIED, FACTOR, once=True)
PRODUCT_SCALED = op(Rescale, PRODUCT)


def _two_tensors(match: Match) -> Reject | None:
    """Neither operand is a constant."""
    if match[X].constant is not None or match[Y].constant is not None:
        return Reject("neither operand may be a constant", match[SUM])
    return None


def addition(emission: Emission, match: Match) -> None:
    """Add a sum of two tensors."""
    result = match.root.result
    findings = Findings()
    findings.feature_map(match[X], match[Y], result)
    findings.settle()
    output = quantization_info(result)
    rescaling = one_rescaling_of(match.root)
    for value, steps in ((match[X], LEFT), (match[Y], RIGHT)):
        line = line_of(match, value, steps)
        wanted = line.quantization.scale / output.scale
        findings.need(
            close(line.ratio * rescaling.ratio, wanted)
            and line.zero_point == line.quantization.zero_point
            and rescaling.after == output.zero_point,
            "sum",
            f"multiplier={line.ratio * rescaling.ratio:g}, multiplier must = {wanted:g}",
            limit="the multipliers and zero points that the tensors' quantisations give",
        )
        need_no_wrapping(findings, info_of(value), output)
    findings.settle()
    first, second = emission.operand(match[X]), emission.operand(match[Y])
    emission.bind(result, emission.add(Addition(output), first, second))


@dataclass(frozen=True, slots=True)
class Line:
    """What RESCALEs in a row make of a feature map: (x - zero_point) * ratio."""

    zero_point: int
    ratio: float
    quantization: QuantizationInfo


def line_of(match: Match, value: Value, steps: Through) -> Line:
    """Read the RESCALEs between a feature map and the sum or product."""
    rescalings = _rescalings(match, steps)
    if not rescalings:
        raise unfit("operands", "an operand must be scaled to 32 bits before")
    return Line(rescalings[0].before, _ratio(rescalings), quantization_info(value))


def units_of(match: Match, steps: Through) -> tuple[Array, int, float]:
    """Return a constant operand's numbers, their zero point, and by what RESCALEs multiply them."""
    data = contents(match[C])
    rescalings = _rescalings(match, steps)
    return data, rescalings[0].before if rescalings else 0, _ratio(rescalings)


def _rescalings(match: Match, steps: Through) -> list[Rescaling]:
    """Read the RESCALEs of a chain, the first one first."""
    if steps not in match:
        return []
    operations: tuple[Operation, ...] = match[steps]
    rescalings = [one_rescaling_of(operation) for operation in reversed(operations)]
    if any(rescaling.after for rescaling in rescalings) or any(
        rescaling.before for rescaling in rescalings[1:]
    ):
        raise unfit("zero-point", "sums in 32 bits must have no zero point")
    return rescalings


def _ratio(rescalings: list[Rescaling]) -> float:
    return float(np.prod([rescaling.ratio for rescaling in rescalings])) if rescalings else 1.0


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
    """Return the function of a sum or product with one number."""
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


OPERAND = Var("x")
ENTRIES = Const("entries")
TABLE = op(Table, OPERAND, ENTRIES, result=of(DType.INT8))
CLAMP = op(Clamp, OPERAND)
NARROW = Var("x", of(DType.INT8, DType.UINT8))
REQUANTIZED = op(Rescale, NARROW, result=of(DType.INT8, DType.UINT8))

EVERY = np.arange(-128, 128)
"""The numbers that a table has entries for, in its order."""

ANY_SLOPE = 0.01
"""The library's own default."""

Function = Callable[[Array], Array]


def sigmoid(reals: Array) -> Array:
    """1 / (1 + exp(-x)); beyond +-700, where float64 ends, nothing changes."""
    return 1.0 / (1.0 + np.exp(-np.clip(reals, -700.0, 700.0)))


def _is_table_of(function: Function, name: str) -> Callable[[Match], Reject | None]:
    def guard(match: Match) -> Reject | None:
        try:
            reals, output = _tabulated(match)
        except UnfitError as error:
            return Reject(str(error))
        if not _agrees(match, function(reals), output):
            return Reject(f"the table must be of {name}")
        return None

    guard.__doc__ = f"The table is of {name}."
    return guard


def _is_leaky(match: Match) -> Reject | None:
    """The table is of x, or alpha * x where x < 0."""
    try:
        reals, output = _tabulated(match)
        slope = _slope(match, reals, output)
    except UnfitError as error:
        return Reject(str(error))
    if not _agrees(match, np.where(reals < 0, slope * reals, reals), output):
        return Reject("the table must be of a leaky ReLU")
    return None


def _tabulated(match: Match) -> tuple[Array, QuantizationInfo]:
    """Return the reals that a table's entries are for, and how they are quantised."""
    source = quantization_info(match[OPERAND])
    reals = (EVERY - source.zero_point) * np.float64(source.scale)
    return reals, quantization_info(match.root.result)


def _agrees(match: Match, reals: Array, output: QuantizationInfo) -> bool:
    """Whether a table's entries are within one of what reals round to."""
    wanted = np.clip(np.rint(reals / output.scale) + output.zero_point, -128, 127)
    entries = contents(match[ENTRIES]).reshape(-1).astype(np.float64)
    return bool(np.abs(entries - wanted).max() <= 1)


def _slope(match: Match, reals: Array, output: QuantizationInfo) -> float:
    """Return the slope of a table's entries for negative reals, where they are not at a bound.

    Where there are none, any slope is right, so that bounds alone, ReLU, are a leaky ReLU too.
    """
    entries = contents(match[ENTRIES]).reshape(-1).astype(np.float64)
    used = (reals < 0) & (entries > -128) & (entries < 127)
    if not used.any():
        return ANY_SLOPE
    given = (entries[used] - output.zero_point) * output.scale
    return float((given * reals[used]).sum() / (reals[used] ** 2).sum())


def logistic(emission: Emission, match: Match) -> None:
    """Add a sigmoid; it gives 1/256 steps from the lowest number, which are requantised if need
    be."""
    _function(emission, match, Sigmoid())


def hyperbolic_tangent(emission: Emission, match: Match) -> None:
    """Add a hyperbolic tangent; it gives 1/128 steps, which are requantised if need be."""
    _function(emission, match, Tanh())


def _function(emission: Emission, match: Match, operation: NetworkOperation) -> None:
    result = match.root.result
    _checked(match[OPERAND], result)
    findings = Findings()
    need_exponents(findings, info_of(match[OPERAND]))
    findings.settle()
    operand = emission.add(operation, emission.as_it_is(match[OPERAND]))
    wanted = quantization_info(result)
    if operand.info.quantization != wanted:
        operand = requantized(emission, operand, wanted)
    emission.bind(result, operand)


def leaky(emission: Emission, match: Match) -> None:
    """Add a leaky ReLU; its slope is that of the table's entries."""
    reals, output = _tabulated(match)
    slope = float(np.float32(_slope(match, reals, output)))
    findings = Findings()
    findings.feature_map(match[OPERAND], match.root.result)
    findings.need(
        0.0 < slope < 1.0,
        "alpha",
        f"leaky relu alpha must be less than 1 and greater than 0, but was {slope:g}",
        limit="a slope between 0 and 1",
        actual=f"{slope:g}",
        help="a slope of 0 is ReLU",
    )
    findings.settle()
    need_no_wrapping(findings, info_of(match[OPERAND]), output)
    findings.settle()
    operand = emission.add(LeakyRelu(slope, output), emission.as_it_is(match[OPERAND]))
    emission.bind(match.root.result, operand)


def clip(emission: Emission, match: Match) -> None:
    """Add bounds, in quantised numbers."""
    result = match.root.result
    _checked(match[OPERAND], result)
    low, high = int(match[CLAMP].min_val), int(match[CLAMP].max_val)
    emission.bind(result, emission.add(Relu(low, high), emission.as_it_is(match[OPERAND])))


def requantize(emission: Emission, match: Match) -> None:
    """Add the same reals in another quantisation."""
    result = match.root.result
    _checked(match[NARROW], result)
    before, after = quantization_info(match[NARROW]), quantization_info(result)
    rescaling = rescaling_of(match.root)
    findings = Findings()
    findings.need(
        close(rescaling.ratios, before.scale / after.scale)
        and (rescaling.before, rescaling.after) == (before.zero_point, after.zero_point),
        "requantization",
        f"multiplier={rescaling.ratio:g}, multiplier must = {before.scale / after.scale:g}",
        limit="the multiplier and zero points that the tensors' quantisations give",
        actual=f"{rescaling.ratio:g}",
        help="RESCALE for what is no requantisation stays on the CPU",
    )
    findings.settle()
    source = emission.as_it_is(match[NARROW])
    emission.bind(result, requantized(emission, source, after))


def _checked(*values: Value) -> None:
    findings = Findings()
    findings.feature_map(*values)
    findings.settle()


PATTERNS = {
    "qnn_add": Pattern("ethos-n.qnn_add", SUM_SCALED, (_two_tensors,)),
    "qnn_mul_to_reinterpret_quantize": Pattern(
        "ethos-n.qnn_mul_to_reinterpret_quantize", PRODUCT_SCALED, (_is_one_number, _is_identity)
    ),
    "qnn_mul_to_depthwise": Pattern("ethos-n.qnn_mul_to_depthwise", PRODUCT_SCALED),
    "qnn_add_to_reinterpret_quantize": Pattern(
        "ethos-n.qnn_add_to_reinterpret_quantize", SHIFTED_SCALED, (_is_one_number, _is_identity)
    ),
    "qnn_add_to_depthwise": Pattern("ethos-n.qnn_add_to_depthwise", SHIFTED_SCALED),
    "qnn_sigmoid": Pattern("ethos-n.qnn_sigmoid", TABLE, (_is_table_of(sigmoid, "sigmoid"),)),
    "qnn_tanh": Pattern("ethos-n.qnn_tanh", TABLE, (_is_table_of(np.tanh, "tanh"),)),
    "qnn_leaky_relu": Pattern("ethos-n.qnn_leaky_relu", TABLE, (_is_leaky,)),
    "clip": Pattern("ethos-n.clip", CLAMP),
    "qnn_requantize": Pattern("ethos-n.qnn_requantize", REQUANTIZED),
}
