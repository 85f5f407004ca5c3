"""Return a tensor another shape, on behalf of the operation for whose sake it is done."""

from __future__ import annotations

from mizzen.graph import DType, Graph, Operation, Value


def reshaped(graph: Graph, user: Operation, value: Value, shape: tuple[int, ...]) -> Value:
    """Add a RESHAPE with the origin and the group of `user`, unless the value has the shape."""
    if value.shape == shape:
        return value
    return graph.add(
        "RESHAPE",
        (value, graph.constant(shape, DType.SHAPE)),
        [value.type.with_shape(shape)],
        origin=user.origin,
        group=user.group,
    ).result
