"""Whether a convolution is cheaper with the Winograd algorithm, and the kernel that is computed.

Ref: Ethos-N driver stack 23.02, the Support Library's choice of the algorithm.
"""

from __future__ import annotations

from mizzen.targets.ethos_n.commands_values import Algorithm
from mizzen.targets.ethos_n.schedule.plan import divide_up, round_up
from mizzen.targets.ethos_n.tensors import Shape

WIDE_KERNEL = 3
"""Extent of the parts that wide kernels, and all of Winograd's, are divided into."""
LARGEST_KERNEL = 7
"""A kernel that exceeds this along an axis is wide."""
MULTIPLICATIONS = 16
"""Of Winograd's for an output block: 2 x 2, or 2 x 4 with a kernel of one row or column."""


def best_algorithm(height: int, width: int) -> Algorithm:
    """Return the algorithm of fewer multiplications for a kernel; the direct one if equal."""
    elements = 8 if min(height, width) == 1 else 4
    parts = divide_up(height, WIDE_KERNEL) * divide_up(width, WIDE_KERNEL)
    fewer = MULTIPLICATIONS * parts < elements * height * width
    return Algorithm.WINOGRAD if fewer else Algorithm.DIRECT


def covered_kernel(weights: Shape, algorithm: Algorithm) -> Shape:
    """Return weights' shape with the planes that engines compute: whole parts of wide kernels."""
    height, width, inputs, outputs = weights
    if algorithm is Algorithm.WINOGRAD or max(height, width) > LARGEST_KERNEL:
        height, width = (
            extent if extent == 1 else round_up(extent, WIDE_KERNEL) for extent in (height, width)
        )
    return height, width, inputs, outputs
