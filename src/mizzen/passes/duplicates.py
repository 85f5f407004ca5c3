"""Compute what is computed twice only once."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from mizzen.graph import Array, Graph, Operation
from mizzen.ops.control_flow import CondIf, Custom, OfVariable, WhileLoop
from mizzen.ops.data_node import Constant
from mizzen.passes.pipeline import Pass

EXCLUDED = (Custom, CondIf, WhileLoop, OfVariable)
"""Operations of which two that look alike may do two things."""


def _merge_duplicates(graph: Graph) -> bool:
    """Merge operations of one kind with the same operands and attributes, and equal constants."""
    changed = False
    constants: dict[Hashable, list[Constant]] = {}
    others: dict[Hashable, Operation] = {}
    outputs = set(graph.outputs)
    for operation in graph.sorted():
        if isinstance(operation, EXCLUDED) or not outputs.isdisjoint(operation.results):
            continue
        if isinstance(operation, Constant):
            first = _equal_constant(constants, operation)
        else:
            first = others.setdefault(_key(operation), operation)
        if first is not operation:
            _merge(graph, first, operation)
            changed = True
    return changed


def _key(operation: Operation) -> Hashable:
    attributes = operation.attributes
    return (
        operation.kind,
        tuple(map(id, operation.operands)),
        tuple(result.type for result in operation.results),
        tuple(sorted((name, _frozen(value)) for name, value in attributes.items())),
    )


def _frozen(value: object) -> str:
    return value.tobytes().hex() if isinstance(value, np.ndarray) else repr(value)


def _equal_constant(known: dict[Hashable, list[Constant]], operation: Constant) -> Constant:
    """Return the constant known that equals this one; where none does, it is known from now on."""
    values = operation.values
    # Ends and middle tell nearly all constants apart, so that weights are rarely compared whole.
    flat = values.reshape(-1)
    sample = flat[:: max(1, flat.size // 16)].tobytes()
    bucket = known.setdefault((operation.result.type, sample), [])
    for other in bucket:
        if _same_bytes(other.values, values):
            return other
    bucket.append(operation)
    return operation


def _same_bytes(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape and type hold the same, also where they hold NaNs."""
    return a is b or bool(
        np.array_equal(
            np.ascontiguousarray(a).view(np.uint8), np.ascontiguousarray(b).view(np.uint8)
        )
    )


def _merge(graph: Graph, first: Operation, second: Operation) -> None:
    for kept, given in zip(first.results, second.results, strict=True):
        if not kept.name:
            given.name, kept.name = "", given.name
        graph.replace(given, kept)
    graph.erase(second)


MERGE_DUPLICATES = Pass("merge-duplicates", _merge_duplicates)
