"""Remove operations that give what they take."""

from __future__ import annotations

from mizzen.graph import DType, Graph, Operation, integer_range
from mizzen.ops.activation import Clamp
from mizzen.ops.data_layout import Concat, Pad, Reshape, Reverse, Slice, Tile, Transpose
from mizzen.ops.data_node import Identity
from mizzen.ops.reduction import Reduction
from mizzen.ops.type_conversion import Cast, Rescale
from mizzen.passes.pipeline import Pass


def _remove_idle(graph: Graph) -> bool:
    """Remove operations whose result is their operand: reshapes to the same shape and the like."""
    changed = False
    for operation in graph:
        if _is_idle(operation) and not _must_stay(graph, operation):
            result, operand = operation.result, operation.operand
            if not operand.name:
                result.name, operand.name = "", result.name
            graph.replace(result, operand)
            changed = True
    if changed:
        graph.erase_dead()
    return changed


def _must_stay(graph: Graph, operation: Operation) -> bool:
    """Whether an output would be an input, a constant or another output: each is its own tensor."""
    if operation.result not in graph.outputs:
        return False
    operand = operation.operand
    return operand.producer is None or operand.constant is not None or operand in graph.outputs


def _is_idle(operation: Operation) -> bool:
    """Whether an operation gives what it takes."""
    match operation:
        case Reduction():
            return operation.result.shape == operation.input.shape
        case Pad() | Reshape() | Slice() | Tile():
            return operation.result.shape == operation.input1.shape
        case Transpose():
            return operation.perms == tuple(range(len(operation.perms)))
        case Reverse():
            return operation.result.shape[operation.axis] == 1
        case Clamp():
            return _clamps_nothing(operation)
        case Cast():
            return operation.result.dtype is operation.input.dtype
        case Rescale():
            return _rescales_nothing(operation)
        case Concat():
            return len(operation.input1) == 1
        case _:
            return isinstance(operation, Identity)


def _clamps_nothing(operation: Clamp) -> bool:
    dtype = operation.result.dtype
    if not dtype.is_integer:
        return False
    low, high = integer_range(dtype)
    return operation.min_val <= low and operation.max_val >= high


def _rescales_nothing(operation: Rescale) -> bool:
    """Whether all integers of the type come out as they went in.

    ``(x - zero) * multiplier >> shift`` with multiplier ``1 << shift`` is exact, and with equal
    zero points what comes out is in the type's range.
    """
    same_type = operation.result.dtype is operation.input.dtype
    signs = operation.input_unsigned or operation.output_unsigned
    if not same_type or signs or operation.result.dtype is DType.INT32:
        return False
    constants = [operand.constant for operand in operation.operands[1:]]
    if any(constant is None for constant in constants):
        return False
    multiplier, shift, before, after = (c.tolist() for c in constants if c is not None)
    exact = all(m == 1 << s for m, s in zip(multiplier, shift, strict=True))
    return exact and before == after


REMOVE_IDLE = Pass("remove-idle", _remove_idle)
