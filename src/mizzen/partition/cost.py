"""What operations compute: multiplications with their additions, and simpler work."""

from __future__ import annotations

from math import prod

from mizzen.graph import Operation
from mizzen.ops.activation import Clamp
from mizzen.ops.control_flow import Custom
from mizzen.ops.data_layout import Concat, Rearranged
from mizzen.ops.data_node import Constant, Identity
from mizzen.ops.tensor import Conv2d, Conv3d, DepthwiseConv2d, Matmul, TransposeConv2d
from mizzen.ops.type_conversion import Cast, Rescale

MOVES = (Constant, Identity, Rearranged, Concat, Rescale, Cast, Clamp, Custom)
"""Operations that compute nothing of their own: they move numbers, or finish another's."""


def macs_of(operation: Operation) -> int:
    """Return the multiply-accumulates of an operation."""
    match operation:
        case Conv2d() | Conv3d():
            return operation.result.type.elements * prod(operation.weight.shape[1:])
        case DepthwiseConv2d():
            return operation.result.type.elements * prod(operation.weight.shape[:2])
        case TransposeConv2d():
            return operation.input.type.elements * prod(operation.weight.shape[:3])
        case Matmul():
            return operation.result.type.elements * operation.A.shape[2]
        case _:
            return 0


def work_of(operation: Operation) -> int:
    """Return the arithmetic of an operation; one for each element that is looked at, or MACs."""
    macs = macs_of(operation)
    if macs or isinstance(operation, MOVES):
        return macs
    return max(value.type.elements for value in (*operation.operands, *operation.results))
