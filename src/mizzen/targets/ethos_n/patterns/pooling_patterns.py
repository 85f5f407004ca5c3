"""Poolings and means over planes.

A mean that the library has no pooling for is a depthwise convolution with ones, as long as all of
its windows are whole. Two poolings the library has in two steps only. Maxima that are padded at
the top and left: the library pads at the other sides, so the image is moved by a row and a column
first, by a convolution, which pads with zero: zero must be the least number, as after a ReLU. Means
of planes with an even
side: those of 2x2 come first. They are rounded, so the mean is within a step of the exact one, and
a step at most from the exact one rounded.
"""

from __future__ import annotations

import numpy as np

from mizzen.graph import DType, Value
from mizzen.ops.reduction import ReduceSum
from mizzen.ops.tensor import AvgPool2d, DepthwiseConv2d, MaxPool2d, Pool2d
from mizzen.ops.type_conversion import Rescale
from mizzen.patterns import Const, Is, Match, Pattern, Reject, Var, of, op
from mizzen.targets.ethos_n.network import (
    DepthwiseConvolution,
    MeanXy,
    Operand,
    Pooling,
    PoolingType,
    output_infos,
)
from mizzen.targets.ethos_n.patterns.graph_values import (
    Emission,
    Findings,
    close,
    info_of,
    need_fine_mean,
    need_plane,
    number,
    quantization_info,
    rescaling_of,
)
from mizzen.targets.ethos_n.patterns.weighted_patterns import (
    IMAGE,
    PAD,
    Window,
    X,
    add,
    convolved_with_ones,
    needs_extents,
    requantized,
    weights_of,
    window_of,
)
from mizzen.targets.ethos_n.tensors import DataFormat, Padding, Stride

MAXIMUM = op(MaxPool2d, IMAGE)
IN_ZERO, OUT_ZERO = Const("input zero point"), Const("output zero point")
AVERAGE = op(AvgPool2d, IMAGE, IN_ZERO, OUT_ZERO)

PLANE = Var("plane")
ONES = Const("ones", Is("of ones", lambda array: bool((array == 1).all())))
ZEROS = Const("zeros", Is("of zeros", lambda array: not array.any()))
INPUT_ZERO, ONES_ZERO = Const("input zero"), Const("weights zero")
SUMMED = op(DepthwiseConv2d, PLANE, ONES, ZEROS, INPUT_ZERO, ONES_ZERO, once=True)
SUM_SCALED = op(Rescale, SUMMED)

CENTERED = op(Rescale, PLANE, result=of(DType.INT32), once=True)
ONE_AXIS = op(ReduceSum, CENTERED, once=True)
BOTH_AXES = op(ReduceSum, ONE_AXIS, once=True)
REDUCED_SCALED = op(Rescale, BOTH_AXES)


def _pooling(match: Match) -> Pool2d:
    assert isinstance(match.root, Pool2d)
    return match.root


def _is_whole_plane(match: Match) -> Reject | None:
    """The window is the whole plane, and is not padded."""
    kernel, plane = tuple(match[ONES].shape[:2]), match[PLANE].shape[1:3]
    if kernel != plane or any(match[SUMMED].pad) or number(match[ONES_ZERO]) != 0:
        return Reject("the window must be the whole plane", match[SUMMED])
    return None


def _sums_both_axes(match: Match) -> Reject | None:
    """What is summed is height and width."""
    axes = {match[ONE_AXIS]["axis"], match[BOTH_AXES]["axis"]}
    if axes != {1, 2} or match[PLANE].type.rank != 4:
        return Reject(f"axes must be height and width, and are {sorted(axes)}", match[BOTH_AXES])
    return None


def _keeps_steps(match: Match) -> Reject | None:
    """The output is quantised as the input is."""
    before, after = match[PLANE].quantization, match.root.result.quantization
    if before is None or before != after:
        return Reject("the output must be quantised as the input is")
    return None


def maximum(emission: Emission, match: Match) -> None:
    """Add a pooling of maxima."""
    findings = Findings()
    findings.feature_map(match[X], match.root.result)
    findings.settle()
    window = window_of(match, findings, info_of(match[X]).data_type.lowest)
    _pool(emission, match, findings, window, PoolingType.MAX)


def average(emission: Emission, match: Match) -> None:
    """Add a pooling of means; what is padded does not count."""
    findings = Findings()
    window = averaged_window(match, findings)
    findings.settle()
    need_plane(findings, info_of(match[X]), _pooling(match).kernel)
    _pool(emission, match, findings, window, PoolingType.AVG)


def average_of_ones(emission: Emission, match: Match) -> None:
    """Add a convolution with ones for a pooling of means without padding."""
    findings = Findings()
    window = averaged_window(match, findings)
    findings.need(
        window.padding == Padding(),
        "padding",
        "padding of a mean must be around a window of 3x3 with stride 1",
        limit="windows without padding",
        help="leave out the padding, or average 3x3 with stride 1, padded by 1",
    )
    findings.settle()
    _ones(emission, match[X], match.root.result, _pooling(match).kernel, window.stride)


def averaged_window(match: Match, findings: Findings) -> Window:
    """Read the window of a mean; one that is alone has no next one to step to."""
    findings.feature_map(match[X], match.root.result)
    zeros = number(match[IN_ZERO]), number(match[OUT_ZERO])
    findings.need(
        zeros[0] == zeros[1],
        "zero-point",
        f"zero points={list(zeros)}, zero points must be equal",
        help="let the pooling's output have its input's quantisation",
    )
    findings.need(
        PAD not in match,
        "counted-padding",
        "padding counts as elements of the mean, padding must not",
        limit="a mean of the elements that are there",
        actual="a PAD before it",
        help="do not count padding (count_include_pad=False)",
    )
    window = window_of(match, findings, zeros[0])
    alone = match.root.result.shape[1:3] == (1, 1)
    return Window(window.padding, Stride()) if alone else window


def _pool(
    emission: Emission, match: Match, findings: Findings, window: Window, type: PoolingType
) -> None:
    findings.settle()
    height, width = _pooling(match).kernel
    operation = Pooling((height, width), window.stride, window.padding, type)
    (given,) = output_infos(operation, (info_of(match[X]),))
    needs_extents(findings, given.shape, match.root.result)
    findings.settle()
    emission.bind(match.root.result, emission.add(operation, emission.operand(match[X])))


def mean_of_sums(emission: Emission, match: Match) -> None:
    """Add a mean over planes, of which the graph has the sum."""
    before = rescaling_of(match[CENTERED])
    _check_mean(match, before.before, before.ratio)
    _mean(emission, match)


def mean_of_ones(emission: Emission, match: Match) -> None:
    """Add a mean over planes, of which the graph has a convolution with ones."""
    _check_mean(match, number(match[INPUT_ZERO]), 1.0)
    _mean(emission, match)


def convolved_mean(emission: Emission, match: Match) -> None:
    """Add a convolution with ones for a mean over planes, of which the graph has the sum."""
    before = rescaling_of(match[CENTERED])
    _check_mean(match, before.before, before.ratio)
    plane = match[PLANE].shape[1:3]
    _ones(emission, match[PLANE], match.root.result, plane, Stride())


def _check_mean(match: Match, zero_point: int, ratio: float) -> None:
    """Refuse a mean whose RESCALEs are not what the tensors' quantisations give."""
    plane, result = match[PLANE], match.root.result
    findings = Findings()
    findings.feature_map(plane, result)
    findings.settle()
    before, after = quantization_info(plane), quantization_info(result)
    rescaling = rescaling_of(match.root)
    count = plane.shape[1] * plane.shape[2]
    wanted = before.scale / (count * after.scale)
    findings.need(
        close(ratio * rescaling.ratios, wanted)
        and (zero_point, rescaling.after) == (before.zero_point, after.zero_point),
        "mean",
        f"multiplier={ratio * rescaling.ratio:g}, multiplier of a mean must = {wanted:g}",
        limit="the multiplier and zero points that make the sum a mean",
        actual=f"{ratio * rescaling.ratio:g}",
        help="use a mean, whose scales follow from its tensors",
    )
    findings.settle()


def _mean(emission: Emission, match: Match) -> None:
    """Add a mean; its output is requantised where it is not quantised as the input is."""
    before, after = quantization_info(match[PLANE]), quantization_info(match.root.result)
    findings = Findings()
    need_fine_mean(findings, before, after)
    findings.settle()
    operand = emission.add(MeanXy(), emission.operand(match[PLANE]))
    if before != after:
        operand = requantized(emission, operand, after)
    emission.bind(match.root.result, operand)


def _ones(
    emission: Emission, source: Value, result: Value, kernel: tuple[int, ...], stride: Stride
) -> None:
    """Add a depthwise convolution with ones that stand for 1 / elements of the window."""
    operand = convolved_with_ones(
        emission,
        emission.operand(source),
        (kernel[0], kernel[1]),
        stride,
        quantization_info(result),
    )
    findings = Findings()
    needs_extents(findings, operand.info.shape, result)
    findings.settle()
    emission.bind(result, operand)


STAGED_SIDES = (4, 6, 10, 14, 18)
"""Sides of planes whose means are means of 2x2, and then of a window that a convolution may have.

Ref: Ethos-N driver stack 23.02, IsDepthwiseConvolutionSupported: 2, 3, 5, 7 or 9 a side.
"""

BY_TWO = Stride(2, 2)


def _is_padded_in_front(match: Match) -> Reject | None:
    """Windows are 3x3, every second one, and the first one begins outside."""
    window = window_of(match, Findings(), 0)
    padding = window.padding
    read = (tuple(_pooling(match).kernel), window.stride, padding.top, padding.left)
    if read != ((3, 3), BY_TWO, 1, 1):
        return Reject("windows must be 3x3 by 2, padded by 1 at the start", match.root)
    return None


def _has_stages(match: Match) -> Reject | None:
    """The window is a square plane, and is not padded."""
    height, width = _pooling(match).kernel
    whole = (height, width) == match[X].shape[1:3] and not any(_pooling(match).pad)
    if PAD in match or not whole or height != width or height not in STAGED_SIDES:
        return Reject(f"it must be a plane with one side of {STAGED_SIDES}", match.root)
    return None


def padded_maximum(emission: Emission, match: Match) -> None:
    """Add maxima of 3x3 by 2 that are padded by 1 at the start."""
    findings = Findings()
    findings.feature_map(match[X], match.root.result)
    findings.settle()
    source = info_of(match[X])
    lowest, zero = source.data_type.lowest, source.quantization.zero_point
    window_of(match, findings, lowest)
    findings.need(
        zero == lowest,
        "zero-point",
        f"zero point={zero}, zero point must = {lowest} for max pooling padded at the start",
        limit=f"a zero point of {lowest}",
        actual=str(zero),
        help="put a ReLU before the pooling, or do not pad it",
    )
    findings.settle()
    moved = _moved(emission, emission.operand(match[X]))
    behind = 1 - moved.info.height % 2, 1 - moved.info.width % 2
    pooling = Pooling((3, 3), BY_TWO, Padding(0, behind[0], 0, behind[1]), PoolingType.MAX)
    result = emission.add(pooling, moved)
    needs_extents(findings, result.info.shape, match.root.result)
    findings.settle()
    emission.bind(match.root.result, result)


def _moved(emission: Emission, source: Operand) -> Operand:
    """Add the convolution that gives an image with a row and a column of zeros in front."""
    corner = np.zeros((2, 2, source.info.channels, 1), np.int8)
    corner[0, 0] = 1
    weights = weights_of(
        corner,
        np.ones(1),
        0,
        np.zeros(1, np.int32),
        source.info,
        source.info.quantization,
        format=DataFormat.HWIM,
    )
    around = Padding(1, 1, 1, 1)
    operation = DepthwiseConvolution(around, Stride(), source.info.quantization)
    return add(emission, operation, source, weights)


def staged_average(emission: Emission, match: Match) -> None:
    """Add means of 2x2, and the mean of these."""
    findings = Findings()
    averaged_window(match, findings)
    findings.settle()
    side, source = _pooling(match).kernel[0] // 2, info_of(match[X])
    result = quantization_info(match.root.result)
    first = convolved_with_ones(
        emission, emission.operand(match[X]), (2, 2), BY_TWO, source.quantization
    )
    emission.bind(
        match.root.result, convolved_with_ones(emission, first, (side, side), Stride(), result)
    )


PATTERNS = {
    "max_pool2d": Pattern("ethos-n.nn.max_pool2d", MAXIMUM),
    "qnn_avg_pool2d": Pattern("ethos-n.qnn_avg_pool2d", AVERAGE),
    "qnn_mean": Pattern("ethos-n.qnn_mean", REDUCED_SCALED, (_sums_both_axes, _keeps_steps)),
    "qnn_mean_requantized": Pattern("ethos-n.qnn_mean", REDUCED_SCALED, (_sums_both_axes,)),
    "qnn_mean_of_ones": Pattern("ethos-n.qnn_mean", SUM_SCALED, (_is_whole_plane,)),
    "qnn_avg_pool2d_to_depthwise": Pattern("ethos-n.qnn_avg_pool2d_to_depthwise", AVERAGE),
    "qnn_mean_to_depthwise": Pattern(
        "ethos-n.qnn_mean_to_depthwise", REDUCED_SCALED, (_sums_both_axes,)
    ),
    "max_pool2d_padded": Pattern("ethos-n.nn.max_pool2d_padded", MAXIMUM, (_is_padded_in_front,)),
    "qnn_avg_pool2d_in_stages": Pattern(
        "ethos-n.qnn_avg_pool2d_in_stages", AVERAGE, (_has_stages,)
    ),
}
