"""The enumerations of command stream 3.1, as the stream numbers them.

Ref: Ethos-N driver stack 23.02, command stream 3.1.
"""

from __future__ import annotations

from enum import IntEnum


class DataTypeCode(IntEnum):
    """The type of a feature map's elements."""

    U8 = 0
    S8 = 1


class Format(IntEnum):
    """How a tensor lies in DRAM."""

    NHWCB_COMPRESSED = 0
    NHWCB = 1
    NHWC = 2
    NCHW = 3
    WEIGHT_STREAM = 4
    FCAF_DEEP = 5
    FCAF_WIDE = 6


class Location(IntEnum):
    """Where a pass finds or leaves a tensor."""

    DRAM = 0
    SRAM = 1


class Strategy(IntEnum):
    """How a pass cuts its tensors into stripes."""

    STRATEGY_0 = 0
    STRATEGY_1 = 1
    STRATEGY_3 = 2
    STRATEGY_4 = 3
    STRATEGY_6 = 4
    STRATEGY_7 = 5
    STRATEGY_X = 6


class Upsample(IntEnum):
    """What the compute engine puts between the elements of its input."""

    OFF = 0
    BILINEAR = 1
    NEAREST_NEIGHBOUR = 2
    TRANSPOSE = 3


class UpsampleEdge(IntEnum):
    """Whether the last row or column of an upsampled plane is made."""

    GENERATE = 0
    DROP = 1


class MceOperation(IntEnum):
    """What the compute engine computes."""

    CONVOLUTION = 0
    DEPTHWISE_CONVOLUTION = 1
    FULLY_CONNECTED = 2


class Algorithm(IntEnum):
    """How the compute engine convolves."""

    DIRECT = 0
    WINOGRAD = 1


class PleOperation(IntEnum):
    """The kernel of the programmable layer engine."""

    ADDITION = 0
    ADDITION_RESCALE = 1
    AVGPOOL_3X3_1_1_UDMA = 2
    FAULT = 3
    INTERLEAVE_2X2_2_2 = 4
    MAXPOOL_2X2_2_2 = 5
    MAXPOOL_3X3_2_2_EVEN = 6
    MAXPOOL_3X3_2_2_ODD = 7
    MEAN_XY_7X7 = 8
    MEAN_XY_8X8 = 9
    PASSTHROUGH = 10
    SIGMOID = 11
    TRANSPOSE_XY = 12
    LEAKY_RELU = 13
    DOWNSAMPLE_2X2 = 14
