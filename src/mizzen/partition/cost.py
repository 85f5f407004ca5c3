"""What operations compute: multiplications with their additions, and simpler work."""

from __future__ import annotations

from math import prod

from mizzen.graph import Operation

MOVES = frozenset(
    {
        "CONST",
        "CONST_SHAPE",
        "RESHAPE",
        "TRANSPOSE",
        "CONCAT",
        "SLICE",
        "PAD",
        "TILE",
        "REVERSE",
        "IDENTITY",
        "RESCALE",
        "CAST",
        "CLAMP",
        "CUSTOM",
    }
)
"""Operations that compute nothing of their own: they move numbers, or finish another's."""


def macs_of(operation: Operation) -> int:
    """Return the multiply-accumulates of an operation."""
    match operation.kind:
        case "CONV2D" | "CONV3D" | "FULLY_CONNECTED":
            return operation.result.type.elements * prod(operation.operands[1].shape[1:])
        case "DEPTHWISE_CONV2D":
            height, width = operation.operands[1].shape[:2]
            return operation.result.type.elements * height * width
        case "TRANSPOSE_CONV2D":
            weight = operation.operands[1].shape
            return operation.operands[0].type.elements * weight[0] * weight[1] * weight[2]
        case "MATMUL":
            return operation.result.type.elements * operation.operands[0].shape[2]
        case _:
            return 0


def work_of(operation: Operation) -> int:
    """Return the arithmetic of an operation; one for each element that is looked at, or MACs."""
    macs = macs_of(operation)
    if macs or operation.kind in MOVES:
        return macs
    return max(value.type.elements for value in (*operation.operands, *operation.results))
