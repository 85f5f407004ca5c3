"""Tell biases apart that the compiler would confuse.

Operations with the same weights and scales get the bias of the first of them, since the compiler
takes no notice of biases when it looks for what it has encoded.

Ref: Vela 5.2.0, found by running what it compiled and comparing with TOSA's reference model.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from mizzen.graph import Array, DType, Graph, Operation, Value, integer_range
from mizzen.ops.tensor import Weighted
from mizzen.ops.type_conversion import Rescale


def tell_biases_apart(graph: Graph) -> tuple[Weighted, ...]:
    """Make weights different by their zero points; return operations without room for that."""
    alike: dict[object, list[Weighted]] = defaultdict(list)
    for operation in graph:
        if isinstance(operation, Weighted) and operation.weight.constant is not None:
            alike[_encoded(operation)].append(operation)
    wrong: list[Weighted] = []
    for operations in alike.values():
        first, *others = _by_bias(operations)
        free = _free_zero_points(first[0])
        for same, zero_point in zip(others, free, strict=False):
            _move_zero_point(graph, same, zero_point)
        wrong += [operation for same in others[len(free) :] for operation in same]
    return tuple(wrong)


def _encoded(operation: Weighted) -> object:
    """Return what the compiler knows encoded weights by: their contents and scales."""
    weights, zero_point = operation.weight.constant, operation.weight_zp.constant
    assert weights is not None
    offset = None if zero_point is None else zero_point.tobytes()
    scales = tuple(_scales(user) for user in operation.result.uses)
    return operation.kind, weights.shape, weights.tobytes(), offset, scales


def _scales(user: Operation) -> object:
    """Return the scales of a RESCALE as numbers, since the same has several multipliers."""
    if not isinstance(user, Rescale):
        return None
    multiplier, shift = user.multiplier.constant, user.shift.constant
    if multiplier is None or shift is None:
        return None
    return np.ldexp(multiplier.astype(np.float64), -shift.astype(np.int64)).tobytes()


def _by_bias(operations: list[Weighted]) -> list[list[Weighted]]:
    """Gather the operations that have one bias."""
    found: dict[object, list[Weighted]] = defaultdict(list)
    for operation in operations:
        contents = operation.bias.constant
        found[operation.bias if contents is None else contents.tobytes()].append(operation)
    return list(found.values())


def _free_zero_points(operation: Weighted) -> list[int]:
    """Return the zero points that INT8 weights have room for besides their own, nearest first."""
    if operation.weight.dtype is not DType.INT8:
        return []
    weights, own = _constant(operation.weight), int(_constant(operation.weight_zp)[0])
    low, high = integer_range(DType.INT8)
    least = max(low, own + low - int(weights.min()))
    greatest = min(high, own + high - int(weights.max()))
    others = set(range(least, greatest + 1)) - {own}
    return sorted(others, key=lambda other: (abs(other - own), other))


def _constant(value: Value) -> Array:
    values = value.constant
    assert values is not None
    return values


def _move_zero_point(graph: Graph, operations: list[Weighted], zero_point: int) -> None:
    """Change the zero point of weights, and move them along."""
    first = operations[0]
    weights, own = _constant(first.weight), int(_constant(first.weight_zp)[0])
    moved = (weights.astype(np.int16) + (zero_point - own)).astype(np.int8)
    origin, group = first.origin, first.group
    changed = graph.constant(moved, DType.INT8, origin=origin, group=group)
    offset = graph.constant([zero_point], DType.INT8, origin=origin, group=group)
    for operation in operations:
        graph.set_operand(operation, Weighted.weight.index, changed)
        graph.set_operand(operation, Weighted.weight_zp.index, offset)
