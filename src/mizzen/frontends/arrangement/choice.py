"""Extremes along axes, and comparisons: choices among numbers, which stay what they are.

Ref: TOSA 1.0, 2.7 comparison operators, 2.9 reduction operators.
"""

from __future__ import annotations

from collections.abc import Iterable

from mizzen.frontends.arrangement.movement import same_rank
from mizzen.graph import Value
from mizzen.ops import Builder


def reduced(b: Builder, kind: str, value: Value, axes: Iterable[int]) -> Value:
    """Reduce dimensions to 1, one after the other."""
    for axis in axes:
        value = b(kind, value, axis=axis, quantization=value.quantization)
    return value


def compared(b: Builder, operator: str, x: Value, y: Value) -> Value:
    """Compare numbers of one type: ``eq``, ``ne``, ``ge``, ``gt``, ``le`` or ``lt``."""
    x, y = same_rank(b, x, y)
    match operator:
        case "eq":
            return b("EQUAL", x, y)
        case "ne":
            return b("LOGICAL_NOT", b("EQUAL", x, y))
        case "ge":
            return b("GREATER_EQUAL", x, y)
        case "gt":
            return b("GREATER", x, y)
        case "le":
            return b("GREATER_EQUAL", y, x)
        case _:
            return b("GREATER", y, x)
