"""Change a graph so that defects of the compiler do not show; what it computes stays the same.

Ref: Vela 5.2.0, found by running what it compiled and comparing with TOSA's reference model.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from mizzen.graph import Array, DType, Graph, Operation, Value, integer_range
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


WEIGHTED = frozenset({"CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D"})
"""Operations that the compiler encodes weights, biases and scales of."""

_INPUT, _WEIGHTS, _BIAS, _INPUT_ZERO_POINT, _WEIGHTS_ZERO_POINT = range(5)


def avoid_defects(graph: Graph) -> tuple[Operation, ...]:
    """Change what the compiler would get wrong; gives the operations where nothing helps.

    Operations are parted from the CONCAT or PAD that they would be made to write into. A CLAMP
    that changes nothing does it; the compiler computes it on the way, or in a pass of its own.

    Operations with the same weights and scales get the bias of the first of them, since the
    compiler takes no notice of biases when it looks for what it has encoded. Weights are made
    different, where they have room for another zero point.
    """
    for operation in graph:
        if operation.kind in MISPLACED and _is_part(operation.result):
            _clamp(graph, operation)
    return _tell_biases_apart(graph)


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


def _tell_biases_apart(graph: Graph) -> tuple[Operation, ...]:
    alike: dict[object, list[Operation]] = defaultdict(list)
    for operation in graph:
        if operation.kind in WEIGHTED and operation.operands[_WEIGHTS].constant is not None:
            alike[_encoded(operation)].append(operation)
    wrong: list[Operation] = []
    for operations in alike.values():
        first, *others = _by_bias(operations)
        free = _free_zero_points(first[0])
        for same, zero_point in zip(others, free, strict=False):
            _move_zero_point(graph, same, zero_point)
        wrong += [operation for same in others[len(free) :] for operation in same]
    return tuple(wrong)


def _encoded(operation: Operation) -> object:
    """Give what the compiler knows encoded weights by: their contents and scales."""
    weights, zero_point = (
        operation.operands[index].constant for index in (_WEIGHTS, _WEIGHTS_ZERO_POINT)
    )
    assert weights is not None
    offset = None if zero_point is None else zero_point.tobytes()
    scales = tuple(_scales(user) for user in operation.result.uses)
    return operation.kind, weights.shape, weights.tobytes(), offset, scales


def _scales(user: Operation) -> object:
    """Give the scales of a RESCALE as numbers, since the same has several multipliers."""
    if user.kind != "RESCALE":
        return None
    multiplier, shift = (value.constant for value in user.operands[1:3])
    if multiplier is None or shift is None:
        return None
    return np.ldexp(multiplier.astype(np.float64), -shift.astype(np.int64)).tobytes()


def _by_bias(operations: list[Operation]) -> list[list[Operation]]:
    """Gather the operations that have one bias."""
    found: dict[object, list[Operation]] = defaultdict(list)
    for operation in operations:
        bias = operation.operands[_BIAS]
        contents = bias.constant
        found[bias if contents is None else contents.tobytes()].append(operation)
    return list(found.values())


def _free_zero_points(operation: Operation) -> list[int]:
    """Give the zero points that INT8 weights have room for besides their own, nearest first."""
    if operation.operands[_WEIGHTS].dtype is not DType.INT8:
        return []
    weights, own = _constant(operation, _WEIGHTS), int(_constant(operation, _WEIGHTS_ZERO_POINT)[0])
    low, high = integer_range(DType.INT8)
    least = max(low, own + low - int(weights.min()))
    greatest = min(high, own + high - int(weights.max()))
    others = set(range(least, greatest + 1)) - {own}
    return sorted(others, key=lambda other: (abs(other - own), other))


def _constant(operation: Operation, index: int) -> Array:
    values = operation.operands[index].constant
    assert values is not None
    return values


def _move_zero_point(graph: Graph, operations: list[Operation], zero_point: int) -> None:
    """Give weights another zero point, and move them along."""
    first = operations[0]
    weights, own = _constant(first, _WEIGHTS), int(_constant(first, _WEIGHTS_ZERO_POINT)[0])
    moved = (weights.astype(np.int16) + (zero_point - own)).astype(np.int8)
    origin, group = first.origin, first.group
    changed = graph.constant(moved, DType.INT8, origin=origin, group=group)
    offset = graph.constant([zero_point], DType.INT8, origin=origin, group=group)
    for operation in operations:
        graph.set_operand(operation, _WEIGHTS, changed)
        graph.set_operand(operation, _WEIGHTS_ZERO_POINT, offset)
