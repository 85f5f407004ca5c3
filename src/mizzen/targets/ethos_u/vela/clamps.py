"""CLAMPs that change nothing, with which operations are parted for the compiler."""

from __future__ import annotations

from mizzen.graph import DType, Graph, NanMode, Operation, Value, integer_range

LIMITED = (DType.INT8, DType.INT16)
"""Types that CLAMP has."""


def clamp_uses(graph: Graph, value: Value) -> None:
    """Have everything that takes a value take it through a CLAMP that changes nothing."""
    through = clamped(graph, value, value.producer)
    name, value.name = value.name, ""
    graph.replace(value, through)
    assert through.producer is not None
    graph.set_operand(through.producer, 0, value)
    through.name = name


def clamped(graph: Graph, value: Value, place: Operation | None) -> Value:
    """Return a value through a CLAMP that changes nothing, as part of an operation's place."""
    low, high = integer_range(value.dtype)
    attributes = {"min_val": low, "max_val": high, "nan_mode": NanMode.PROPAGATE}
    origin, group = (place.origin, place.group) if place else (None, None)
    clamp = graph.add("CLAMP", [value], [value.type], attributes, origin=origin, group=group)
    return clamp.result
