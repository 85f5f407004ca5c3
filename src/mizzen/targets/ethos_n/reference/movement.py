"""What only moves numbers, and gives them another shape or another meaning."""

from __future__ import annotations

import numpy as np

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.network import (
    DepthToSpace,
    Node,
    ReinterpretQuantization,
    Reshape,
    StandalonePadding,
    Transpose,
)
from mizzen.targets.ethos_n.reference.mce import Numbers


def moved(node: Node, numbers: Numbers) -> Numbers:
    """Return what an operation makes of numbers [N, H, W, C] by moving them.

    E981 for any other operation.
    """
    match node.operation:
        case ReinterpretQuantization():
            return numbers
        case Reshape(shape):
            return numbers.reshape(len(numbers), *shape[1:])
        case Transpose(permutation):
            return numbers.transpose(permutation)
        case DepthToSpace(block):
            return _blocks_to_planes(numbers, block)
        case StandalonePadding(padding):
            around = ((0, 0), (padding.top, padding.bottom), (padding.left, padding.right), (0, 0))
            zero_point = node.inputs[0].info.quantization.zero_point
            return np.pad(numbers, around, constant_values=zero_point)
        case _:
            raise fail(
                "E981",
                f"{node.kind} must be an operation that release 23.02 can run; it is none",
                origin=node.origin,
            )


def _blocks_to_planes(numbers: Numbers, block: int) -> Numbers:
    """Make planes of channels: the element at (y, x) of a block is in channels (y * block + x)."""
    count, height, width, channels = numbers.shape
    split = numbers.reshape(count, height, width, block, block, channels // block**2)
    planes = split.transpose(0, 1, 3, 2, 4, 5)
    return planes.reshape(count, height * block, width * block, -1)
