"""Change a graph so that defects of the compiler do not show; what it computes stays the same.

Ref: Vela 5.2.0, found by running what it compiled and comparing with TOSA's reference model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mizzen.graph import DType, Graph, Operation, Value, integer_range
from mizzen.ops import NanMode
from mizzen.targets.ethos_u.generate_biases import tell_biases_apart

LIMITED = (DType.INT8, DType.INT16)
"""Types that CLAMP has."""

MISPLACED = frozenset({"REDUCE_MAX", "TRANSPOSE_CONV2D"})
"""Operations whose result, where it is a part of a larger tensor, the compiler writes at the
start of that tensor, or with that tensor's size."""

SUMS = frozenset({"ADD", "SUB"})
"""Operations of which the same holds unless the compiler makes them one with the RESCALEs of their
operands, which it does where nobody else takes those."""

ELEMENTWISE = frozenset({"ADD", "MAXIMUM", "MINIMUM", "MUL", "SUB"})
"""Operations that rescale their operands on the way."""

CARRIERS = frozenset({"IDENTITY", "RESHAPE", "RESCALE"})
"""Operations that the compiler makes part of what gives their operand."""

PLACES = frozenset({"CONCAT", "PAD", "SCATTER", "TILE"})
"""Operations whose operand becomes a part of a larger tensor."""

MOVES = frozenset({"CONCAT", "PAD", "SLICE", "TILE"})
"""Operations that move parts of tensors."""


REDUCTIONS = frozenset({"REDUCE_MAX", "REDUCE_MIN", "REDUCE_PRODUCT", "REDUCE_SUM"})
"""Of one element they are nothing, and the compiler rescales what they give once too often."""


def avoid_defects(graph: Graph) -> tuple[Operation, ...]:
    """Change what the compiler would get wrong; gives the operations where nothing helps.

    Operations are parted from those that move parts of tensors, where the compiler would make one
    of both and lose the place of the part. A CLAMP that changes nothing does it; the compiler
    computes it on the way, or in a pass of its own. REDUCE_MIN, which is many operations for the
    compiler, is parted from everything.
    """
    for operation in graph:
        if operation.kind in REDUCTIONS and operation.operands[0].shape == operation.result.shape:
            _pass_on(graph, operation)
            continue
        if operation.kind == "REDUCE_MIN" and operation.result.dtype in LIMITED:
            _clamp(graph, operation.result)
        if _is_misplaced(operation) and _is_part(operation.result):
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


def _is_misplaced(operation: Operation) -> bool:
    """Whether the compiler makes several operations of it, or one that takes the whole tensor."""
    if operation.kind == "DEPTHWISE_CONV2D":
        *_, multiplier = operation.operands[1].shape
        return multiplier > 1
    if operation.kind in SUMS:
        return not all(map(_is_rescaled_on_the_way, operation.operands))
    return operation.kind in MISPLACED


def _loses_place(operation: Operation) -> bool:
    """Whether the compiler reads the operand where it is not, if it is made of parts."""
    if operation.kind == "RESCALE":
        wide = operation.result.dtype is DType.INT32
        return (
            wide and operation.operands[0].dtype in LIMITED and not _is_on_the_way(operation)
        )
    return _is_misplaced(operation)


def _is_on_the_way(operation: Operation) -> bool:
    """Whether the compiler makes a RESCALE part of what takes it.

    That is an elementwise operation whose operands are all rescaled for it alone, from one type.
    """
    users = tuple(operation.result.uses)
    if len(users) != 1 or users[0].kind not in ELEMENTWISE:
        return False
    operands = users[0].operands[:2]
    if not all(map(_is_rescaled_on_the_way, operands)):
        return False
    types = {operand.producer.operands[0].dtype for operand in operands if operand.producer}
    return len(types) == 1 and not _is_scaled_alike(operands)


def _is_rescaled_on_the_way(value: Value) -> bool:
    producer = value.producer
    return producer is not None and producer.kind == "RESCALE" and len(value.uses) == 1


def _is_scaled_alike(values: Sequence[Value]) -> bool:
    """Whether values are all scaled by the same large number, which is done ahead of a sum."""
    scales = {_scale(value.producer) for value in values if value.producer is not None}
    return len(scales) == 1 and 1.0 not in scales


def _scale(rescale: Operation) -> float:
    multiplier, shift = (value.constant for value in rescale.operands[1:3])
    if multiplier is None or shift is None:
        return 0.0
    return float(np.ldexp(float(multiplier[0]), -int(shift[0])))


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


def _pass_on(graph: Graph, operation: Operation) -> None:
    """Take an operation out that gives what it takes."""
    value = operation.operands[0]
    if operation.result in graph.outputs:
        identity = graph.add("IDENTITY", [value], [value.type], origin=operation.origin)
        identity.group, value = operation.group, identity.result
        value.name, operation.result.name = operation.result.name, ""
    graph.replace(operation.result, value)
    graph.erase(operation)


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
