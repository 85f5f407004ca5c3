"""Cases of pooling, and of what must fit in the 458,752 bytes of SRAM of a 1TOPS variant.

The limits of sizes are worked out by hand beside each.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.network import Pooling, PoolingType, Query, Transpose
from mizzen.targets.ethos_n.tensors import Padding, Shape, Stride, TensorInfo

from .cases import (
    NEW,
    OLD,
    Broken,
    E,
    Kept,
    U,
    ask,
    input_faults,
    scale_faults,
    tensor,
    zero_point_fault,
)

NONE, AFTER, AROUND = Padding(), Padding(0, 1, 0, 1), Padding(1, 1, 1, 1)
MAX, AVG = PoolingType.MAX, PoolingType.AVG


def pool(
    type: PoolingType,
    size: tuple[int, int],
    stride: int,
    padding: Padding,
    plane: tuple[int, int],
    channels: int = 16,
) -> Query:
    return ask(Pooling(size, Stride(stride, stride), padding, type), tensor(1, *plane, channels))


def average(plane: tuple[int, int], channels: int) -> Query:
    return pool(AVG, (3, 3), 1, AROUND, plane, channels)


NO_AVERAGE = "Unsupported configuration in AVG pooling"
NO_MAX = "Unsupported configuration in Max pooling"
UNSTRIDED = (
    "Unsupported pooling size and padding for max pooling with stride 1 - must be VALID with size "
    "<= 9 or SAME with size <= 17"
)
STRIDES = "Unsupported stride for max pooling - must be 1,1 or 2,2"
SMALL = "Input size must not be smaller than the pooling size"
PAIR = pool(MAX, (2, 2), 2, NONE, (16, 16)).operation
POOLING = [
    *input_faults(PAIR, "Input to pooling layer"),
    *scale_faults(PAIR, "Pooling"),
    zero_point_fault(PAIR),
    *(
        Broken("window", pool(MAX, size, stride, NONE, (16, 16)), U, "Invalid pooling size/stride")
        for size, stride in (((0, 2), 2), ((2, 0), 2), ((2, 2), 0))
    ),
    *(
        Broken("average-window", query, E, NO_AVERAGE)
        for query in (
            pool(AVG, (6, 6), 1, NONE, (6, 6)),
            pool(AVG, (7, 8), 1, NONE, (7, 8)),
            pool(AVG, (7, 7), 1, NONE, (8, 8)),
            pool(AVG, (3, 3), 2, AROUND, (16, 16)),
            pool(AVG, (3, 3), 1, NONE, (16, 16)),
            pool(AVG, (2, 2), 2, NONE, (16, 16)),
        )
    ),
    # A bank has 57,344 bytes, of which kernels take 4096: 26,624 for the input's plane, half of
    # that where two stripes are there at once.
    *(
        Broken(
            "average-sram",
            query,
            E,
            "AVG pooling 3x3_1_1: maximum input width x height cannot fit into SRAM",
        )
        for query in (average((8, 3329), 8), average((8, 1665), 9))
    ),
    *(
        Broken("max-window", pool(MAX, (4, 4), 2, padding, (16, 16)), E, text, profiles)
        for padding in (NONE, AFTER)
        for text, profiles in ((NO_MAX, OLD), (f"{NO_MAX} with stride 2", NEW))
    ),
    Broken("max-window", pool(MAX, (3, 3), 1, NONE, (16, 16)), E, NO_MAX, OLD),
    Broken("max-stride", pool(MAX, (3, 3), 3, NONE, (16, 16)), E, STRIDES, NEW),
    *(
        Broken(
            "max-parity",
            pool(MAX, (size, size), 2, padding, plane),
            E,
            f"Max pooling {size}x{size}_2_2 {text}: input sizes must be {parity}",
        )
        for size, padding, text, parity, right in (
            (2, NONE, "with no padding", "even", 16),
            (2, AFTER, "with padding", "odd", 15),
            (3, NONE, "with no padding", "odd", 15),
            (3, AFTER, "with padding", "even", 16),
        )
        for plane in ((right + 1, right), (right, right + 1))
    ),
    Broken(
        "max-width",
        pool(MAX, (3, 3), 2, NONE, (15, 419)),
        E,
        "Max pooling 3x3_2_2: maximum input width (417) exceeded",
    ),
    *(
        Broken("max-unstrided", pool(MAX, size, 1, padding, (32, 32)), E, UNSTRIDED, NEW)
        for size, padding in (
            ((10, 3), NONE),
            ((3, 10), NONE),
            ((3, 3), AFTER),
            ((18, 1), Padding(9, 8, 0, 0)),
        )
    ),
    # (458,752 - 4096) / 2 bytes hold 1776 rows of a brick group's width and channels.
    *(
        Broken(
            "max-sram",
            pool(MAX, size, 1, NONE, plane),
            E,
            "Input tensor for max pooling with stride 1 is too large - width and height are "
            "limited to 1776",
            NEW,
        )
        for size, plane in (((2, 1), (1777, 16)), ((1, 2), (16, 1777)))
    ),
    Broken("max-plane", pool(MAX, (3, 3), 2, NONE, (1, 15)), E, SMALL),
    Broken("max-plane", pool(MAX, (3, 5), 1, NONE, (16, 4)), E, SMALL, NEW),
]


def swap(permutation: Shape, info: TensorInfo) -> Query:
    return ask(Transpose(permutation), info)


BY_COPY, EITHER = (0, 2, 3, 1), (0, 3, 1, 2)
IN_SRAM, AS_NCHW = (0, 2, 1, 3), ((0, 1, 3, 2), (0, 3, 2, 1))
FULL, OVER = tensor(1, 8, 8, 7168), tensor(1, 9, 8, 7168)
# Twice 8 x 1656 x 16 bytes, 32,768 of kernels, 1024 of weights: 457,728. A brick more is too much.
PAIRED, OVER_PAIRED = tensor(1, 8, 1656, 16), tensor(1, 8, 1657, 16)
TURNED, OVER_TURNED = tensor(1, 16, 8, 1656), tensor(1, 16, 8, 1657)
LARGE = "The tensors are too large"
TRANSPOSES = [
    Broken("sram", swap(BY_COPY, OVER), U, LARGE),
    Broken("sram", swap(IN_SRAM, OVER_PAIRED), U, LARGE),
    Broken("sram", swap(EITHER, OVER_PAIRED), U, LARGE, OLD),
    Broken("sram", swap(EITHER, OVER), U, LARGE, NEW),
    *(Broken("sram", swap(axes, OVER_TURNED), U, LARGE) for axes in AS_NCHW),
    # What fits is no more than estimated by 23.02.
    *(
        Broken("estimate", swap(axes, info), E, "", OLD)
        for axes, info in ((BY_COPY, FULL), (IN_SRAM, PAIRED), (EITHER, PAIRED))
    ),
]
BROKEN = [*POOLING, *TRANSPOSES]

KEPT = [
    Kept(pool(MAX, (1, 1), 2, NONE, (16, 15))),
    Kept(pool(MAX, (2, 2), 2, NONE, (16, 14))),
    Kept(pool(MAX, (2, 2), 2, AFTER, (15, 13))),
    Kept(pool(MAX, (3, 3), 2, NONE, (15, 417))),
    Kept(pool(MAX, (3, 3), 2, AFTER, (16, 416))),
    Kept(pool(MAX, (9, 9), 1, NONE, (9, 9)), NEW),
    Kept(pool(MAX, (17, 17), 1, Padding(8, 8, 8, 8), (32, 32)), NEW),
    Kept(pool(MAX, (2, 2), 1, Padding(1, 0, 1, 0), (16, 16)), NEW),
    Kept(pool(MAX, (2, 1), 1, NONE, (1776, 1777)), NEW),
    Kept(pool(AVG, (7, 7), 3, NONE, (7, 7))),
    Kept(pool(AVG, (8, 8), 1, NONE, (8, 8))),
    Kept(average((8, 3328), 8)),
    Kept(average((8, 1664), 9)),
    Kept(swap(BY_COPY, FULL), NEW),
    Kept(swap(EITHER, FULL), NEW),
    Kept(swap(IN_SRAM, PAIRED), NEW),
    Kept(swap((0, 1, 2, 3), tensor(1, 512, 512, 16)), NEW),
    *(Kept(swap(axes, TURNED), NEW) for axes in AS_NCHW),
]
