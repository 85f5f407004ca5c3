"""Change a graph so that defects of the compiler do not show; what it computes stays the same.

Ref: Vela 5.2.0, found by running what it compiled and comparing with TOSA's reference model.
"""

from __future__ import annotations

from mizzen.graph import DType, Graph, Operation, Value, integer_range
from mizzen.ops import NanMode
from mizzen.targets.ethos_u.generate_biases import tell_biases_apart

LIMITED = (DType.INT8, DType.INT16)
"""Types that CLAMP has."""

MISPLACED = frozenset({"ADD", "REDUCE_MAX", "SUB", "TRANSPOSE_CONV2D"})
"""Operations whose result, where it is a part of a larger tensor, the compiler writes at the
start of that tensor, or with that tensor's size."""

CARRIERS = frozenset({"IDENTITY", "RESHAPE", "RESCALE"})
"""Operations that the compiler makes part of what gives their operand."""

PLACES = frozenset({"CONCAT", "PAD", "SCATTER", "TILE"})
"""Operations whose operand becomes a part of a larger tensor."""

MOVES = frozenset({"CONCAT", "PAD", "SLICE", "TILE"})
"""Operations that move parts of tensors."""


def avoid_defects(graph: Graph) -> tuple[Operation, ...]:
    """Change what the compiler would get wrong; gives the operations where nothing helps.

    Operations are parted from those that move parts of tensors, where the compiler would make one
    of both and lose the place of the part. A CLAMP that changes nothing does it; the compiler
    computes it on the way, or in a pass of its own.
    """
    for operation in graph:
        if operation.kind in MISPLACED and _is_part(operation.result):
            _part(graph, operation)
        if _loses_place(operation) and _is_moved(operation.operands[0]):
            _clamp(graph, operation.operands[0])
    return tell_biases_apart(graph)


def _is_part(value: Value) -> bool:
    """Whether the value becomes a part of a larger tensor as it is."""
    return any(
        user.kind in PLACES or (user.kind in CARRIERS and _is_part(user.result))
        for user in value.uses
    )


def _loses_place(operation: Operation) -> bool:
    """Whether the compiler reads the operand where it is not, if it is made of parts."""
    if operation.kind == "RESCALE":
        wide = operation.result.dtype is DType.INT32
        return wide and operation.operands[0].dtype in LIMITED
    return operation.kind in MISPLACED


def _is_moved(value: Value) -> bool:
    """Whether the value is made of parts, or a part, of other tensors."""
    producer = value.producer
    if producer is None:
        return False
    if producer.kind in ("IDENTITY", "RESHAPE"):
        return _is_moved(producer.operands[0])
    return producer.kind in MOVES


def _part(graph: Graph, operation: Operation) -> None:
    """Put a CLAMP behind the operation, or behind the rescale of what it accumulates."""
    value = operation.result
    if value.dtype in LIMITED:
        _clamp(graph, value)
        return
    for user in tuple(value.uses):
        if user.kind == "RESCALE" and _is_part(user.result):
            _part(graph, user)


def _clamp(graph: Graph, value: Value) -> None:
    """Have everything that takes a value take it through a CLAMP that changes nothing."""
    low, high = integer_range(value.dtype)
    producer = value.producer
    clamp = graph.add(
        "CLAMP",
        [value],
        [value.type],
        {"min_val": low, "max_val": high, "nan_mode": NanMode.PROPAGATE},
        origin=producer.origin if producer else None,
        group=producer.group if producer else None,
    )
    name, value.name = value.name, ""
    graph.replace(value, clamp.result)
    graph.set_operand(clamp, 0, value)
    clamp.result.name = name
