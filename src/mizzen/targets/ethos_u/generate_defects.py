"""Change a graph so that defects of the compiler do not show; what it computes stays the same.

Ref: Vela 5.2.0, found by running what it compiled and comparing with TOSA's reference model.
"""

from __future__ import annotations

from mizzen.graph import DType, Graph, Operation, Value, integer_range
from mizzen.ops import NanMode

LIMITED = (DType.INT8, DType.INT16)
"""Types that CLAMP has."""

MISPLACED = frozenset({"TRANSPOSE_CONV2D", "REDUCE_MAX"})
"""Operations whose result, where it is a part of a larger tensor, the compiler writes at the
start of that tensor, or with that tensor's size."""

CARRIERS = frozenset({"IDENTITY", "RESHAPE", "RESCALE"})
"""Operations that the compiler makes part of what gives their operand."""

PLACES = frozenset({"CONCAT", "PAD", "SCATTER", "TILE"})
"""Operations whose operand becomes a part of a larger tensor."""


def avoid_defects(graph: Graph) -> None:
    """Part operations from the CONCAT or PAD that the compiler would have them write into.

    A CLAMP that changes nothing does it; the compiler computes it on the way, or in a pass of its
    own over the data.
    """
    for operation in graph:
        if operation.kind in MISPLACED and _is_part(operation.result):
            _clamp(graph, operation)


def _is_part(value: Value) -> bool:
    """Whether the value becomes a part of a larger tensor as it is."""
    return any(
        user.kind in PLACES or (user.kind in CARRIERS and _is_part(user.result))
        for user in value.uses
    )


def _clamp(graph: Graph, operation: Operation) -> None:
    """Put a CLAMP behind the operation, or behind the rescale of what it accumulates."""
    value = operation.result
    if value.dtype not in LIMITED:
        for user in tuple(value.uses):
            if user.kind == "RESCALE" and _is_part(user.result):
                _clamp(graph, user)
        return
    low, high = integer_range(value.dtype)
    clamp = graph.add(
        "CLAMP",
        [value],
        [value.type],
        {"min_val": low, "max_val": high, "nan_mode": NanMode.PROPAGATE},
        origin=operation.origin,
        group=operation.group,
    )
    name, value.name = value.name, ""
    graph.replace(value, clamp.result)
    graph.set_operand(clamp, 0, value)
    clamp.result.name = name
