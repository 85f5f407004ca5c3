"""Poolings that the library has in two steps only.

Maxima that are padded in front: the library pads behind. The image is moved by a row and a column
first, by a convolution, which pads with zero: so zero must be the least number, as behind a ReLU.

Means of planes with an even side: those of 2x2 come first. They are rounded, so the mean is within
a step of the exact one, and a step at most from the exact one rounded.
"""

from __future__ import annotations

import numpy as np

from mizzen.patterns import Match, Pattern, Reject
from mizzen.targets.ethos_n.network import Operand
from mizzen.targets.ethos_n.operations import DepthwiseConvolution, Pooling, PoolingType
from mizzen.targets.ethos_n.patterns.emission import Emission
from mizzen.targets.ethos_n.patterns.findings import Findings
from mizzen.targets.ethos_n.patterns.pooling import AVERAGE, MAXIMUM, averaged_window
from mizzen.targets.ethos_n.patterns.values import info_of, quantization_info
from mizzen.targets.ethos_n.patterns.weighted import add, convolved_with_ones, weights_of
from mizzen.targets.ethos_n.patterns.windows import PAD, X, needs_extents, window_of
from mizzen.targets.ethos_n.tensors import DataFormat, Padding, Stride

STAGED_SIDES = (4, 6, 10, 14, 18)
"""Sides of planes whose means are means of 2x2, and then of a window that a convolution may have.

Ref: Ethos-N driver stack 23.02, IsDepthwiseConvolutionSupported: 2, 3, 5, 7 or 9 a side.
"""

BY_TWO = Stride(2, 2)


def _is_padded_in_front(match: Match) -> Reject | None:
    """Windows are 3x3, every second one, and the first one begins outside."""
    window = window_of(match, Findings(), 0)
    padding = window.padding
    found = (tuple(match.root["kernel"]), window.stride, padding.top, padding.left)
    if found != ((3, 3), BY_TWO, 1, 1):
        return Reject("windows must be 3x3 by 2, padded by 1 in front", match.root)
    return None


def _has_stages(match: Match) -> Reject | None:
    """The window is a square plane, and is not padded."""
    height, width = match.root["kernel"]
    whole = (height, width) == match[X].shape[1:3] and not any(match.root["pad"])
    if PAD in match or not whole or height != width or height not in STAGED_SIDES:
        return Reject(f"it must be a plane with one side of {STAGED_SIDES}", match.root)
    return None


PATTERNS = {
    "max_pool2d_padded": Pattern("ethos-n.nn.max_pool2d_padded", MAXIMUM, (_is_padded_in_front,)),
    "qnn_avg_pool2d_in_stages": Pattern(
        "ethos-n.qnn_avg_pool2d_in_stages", AVERAGE, (_has_stages,)
    ),
}


def padded_maximum(emission: Emission, match: Match) -> None:
    """Add maxima of 3x3 by 2 that are padded by 1 in front."""
    findings = Findings()
    findings.feature_map(match[X], match.root.result)
    findings.settle()
    source = info_of(match[X])
    lowest, zero = source.data_type.lowest, source.quantization.zero_point
    window_of(match, findings, lowest)
    findings.need(
        zero == lowest,
        "zero-point",
        f"zero point={zero}, zero point must = {lowest} for max pooling padded in front",
        limit=f"a zero point of {lowest}",
        actual=str(zero),
        help="put a ReLU in front of the pooling, or do not pad it",
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
    side, source = match.root["kernel"][0] // 2, info_of(match[X])
    result = quantization_info(match.root.result)
    first = convolved_with_ones(
        emission, emission.operand(match[X]), (2, 2), BY_TWO, source.quantization
    )
    emission.bind(
        match.root.result, convolved_with_ones(emission, first, (side, side), Stride(), result)
    )
