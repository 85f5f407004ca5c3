"""Tell biases apart that the compiler would confuse.

Operations with the same weights and scales get the bias of the first of them, since the compiler
takes no notice of biases when it looks for what it has encoded.

Ref: Vela 5.2.0, found by running what it compiled and comparing with TOSA's reference model.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from mizzen.graph import Array, DType, Graph, Operation, integer_range

WEIGHTED = frozenset({"CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D"})
"""Operations that the compiler encodes weights, biases and scales of."""

_INPUT, _WEIGHTS, _BIAS, _INPUT_ZERO_POINT, _WEIGHTS_ZERO_POINT = range(5)


def tell_biases_apart(graph: Graph) -> tuple[Operation, ...]:
    """Make weights different by their zero points; gives operations whose weights have no room."""
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
    """Return what the compiler knows encoded weights by: their contents and scales."""
    weights, zero_point = (
        operation.operands[index].constant for index in (_WEIGHTS, _WEIGHTS_ZERO_POINT)
    )
    assert weights is not None
    offset = None if zero_point is None else zero_point.tobytes()
    scales = tuple(_scales(user) for user in operation.result.uses)
    return operation.kind, weights.shape, weights.tobytes(), offset, scales


def _scales(user: Operation) -> object:
    """Return the scales of a RESCALE as numbers, since the same has several multipliers."""
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
    """Return the zero points that INT8 weights have room for besides their own, nearest first."""
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
    """Return weights another zero point, and move them along."""
    first = operations[0]
    weights, own = _constant(first, _WEIGHTS), int(_constant(first, _WEIGHTS_ZERO_POINT)[0])
    moved = (weights.astype(np.int16) + (zero_point - own)).astype(np.int8)
    origin, group = first.origin, first.group
    changed = graph.constant(moved, DType.INT8, origin=origin, group=group)
    offset = graph.constant([zero_point], DType.INT8, origin=origin, group=group)
    for operation in operations:
        graph.set_operand(operation, _WEIGHTS, changed)
        graph.set_operand(operation, _WEIGHTS_ZERO_POINT, offset)
