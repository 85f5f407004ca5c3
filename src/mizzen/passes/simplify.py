"""Remove operations that give what they take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mizzen.graph import DType, Graph, Operation, integer_range

SAME_SHAPE = (
    "PAD", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PRODUCT", "REDUCE_SUM",
    "RESHAPE", "SLICE", "TILE",
)  # fmt: skip
"""Operations that give what they take if the shape stays as it is."""


@dataclass(frozen=True, slots=True)
class RemoveIdle:
    """Remove operations whose result is their operand: reshapes to the same shape and the like."""

    name: ClassVar[str] = "remove-idle"

    def run(self, graph: Graph) -> bool:
        """Rewrite the graph; True if anything changed."""
        changed = False
        for operation in graph:
            rule = RULES.get(operation.kind)
            if rule is not None and rule(operation) and not _must_stay(graph, operation):
                result, operand = operation.result, operation.operands[0]
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
    operand = operation.operands[0]
    return operand.producer is None or operand.constant is not None or operand in graph.outputs


def _keeps_shape(operation: Operation) -> bool:
    return operation.result.shape == operation.operands[0].shape


def _keeps_order(operation: Operation) -> bool:
    return tuple(operation["perms"]) == tuple(range(len(operation["perms"])))


def _reverses_nothing(operation: Operation) -> bool:
    axis: int = operation["axis"]
    return operation.result.shape[axis] == 1


def _clamps_nothing(operation: Operation) -> bool:
    dtype = operation.result.dtype
    if not dtype.is_integer:
        return False
    low, high = integer_range(dtype)
    return bool(operation["min_val"] <= low and operation["max_val"] >= high)


def _casts_nothing(operation: Operation) -> bool:
    return operation.result.dtype is operation.operands[0].dtype


def _rescales_nothing(operation: Operation) -> bool:
    """Whether all integers of the type come out as they went in.

    ``(x - zero) * multiplier >> shift`` with multiplier ``1 << shift`` is exact, and with equal
    zero points what comes out is in the type's range.
    """
    same_type = operation.result.dtype is operation.operands[0].dtype
    signs = operation["input_unsigned"] or operation["output_unsigned"]
    if not same_type or signs or operation.result.dtype is DType.INT32:
        return False
    constants = [operand.constant for operand in operation.operands[1:]]
    if any(constant is None for constant in constants):
        return False
    multiplier, shift, before, after = (c.tolist() for c in constants if c is not None)
    exact = all(m == 1 << s for m, s in zip(multiplier, shift, strict=True))
    return exact and before == after


def _is_alone(operation: Operation) -> bool:
    return len(operation.operands) == 1


def _always(operation: Operation) -> bool:
    del operation
    return True


RULES: dict[str, Callable[[Operation], bool]] = {
    **dict.fromkeys(SAME_SHAPE, _keeps_shape),
    "TRANSPOSE": _keeps_order,
    "REVERSE": _reverses_nothing,
    "CLAMP": _clamps_nothing,
    "CAST": _casts_nothing,
    "RESCALE": _rescales_nothing,
    "CONCAT": _is_alone,
    "IDENTITY": _always,
}
