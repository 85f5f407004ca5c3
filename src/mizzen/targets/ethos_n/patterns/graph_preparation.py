"""Bring a graph into the form in which the pattern table looks at it.

The library has channels last and constants as constants; PyTorch's programs come with channels
first and TRANSPOSEs around every operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mizzen.graph import DType, Graph, Operation
from mizzen.ops.control_flow import Constant
from mizzen.ops.data_layout import Reshape, Transpose
from mizzen.ops.type_conversion import Rescale
from mizzen.passes import FOLD_CONSTANTS, REMOVE_IDLE, Pipeline
from mizzen.passes.layout import Edges, layout

VIEWS = (Reshape, Transpose)
WITH_CHANNELS_LAST = Pipeline((REMOVE_IDLE, FOLD_CONSTANTS, layout(Edges.FREE), REMOVE_IDLE))


def prepare(graph: Graph) -> dict[int, int]:
    """Rewrite a whole graph, before it is placed, so that it computes the same to the last bit.

    TRANSPOSEs and RESHAPEs that are left at the edges of groups become groups of their own: they
    run on the CPU without taking their operators along. Returns these new groups, and the group
    that each comes from.
    """
    WITH_CHANNELS_LAST.run(graph)
    _reshape_bytes(graph)
    return _apart(graph)


def _reshape_bytes(graph: Graph) -> None:
    """Put RESHAPEs before RESCALEs that widen their operand.

    In between they keep sums, for instance, from being seen as one: only bytes are feature maps.
    """
    for operation in graph.sorted():
        if not isinstance(operation, Reshape):
            continue
        widening, shape = operation.input1.producer, operation.result.shape
        if widening is None or not _widens(widening):
            continue
        source, *rest = widening.operands
        operands = (source, operation.shape)
        first = graph.add_beside(operation, "RESHAPE", operands, source.type.with_shape(shape))
        type = widening.result.type.with_shape(shape)
        behind = graph.add_beside(widening, "RESCALE", (first, *rest), type, widening.attributes)
        graph.replace(operation.result, behind)
        graph.erase(operation)
    graph.erase_dead()


def _widens(operation: Operation) -> bool:
    """Whether an operation makes wider integers of bytes, whatever their shape."""
    return (
        isinstance(operation, Rescale)
        and not operation.per_channel
        and operation.input.dtype is DType.INT8
        and operation.result.dtype is DType.INT32
    )


def _apart(graph: Graph) -> dict[int, int]:
    """Take views out of their groups, where the groups do not need to wait for themselves."""
    last = max((each.group for each in graph if each.group is not None), default=-1)
    made: dict[int, int] = {}
    for operation in graph.sorted():
        group = operation.group
        if not isinstance(operation, VIEWS) or group is None:
            continue
        before = _reaches(operation, group, _producers)
        after = _reaches(operation, group, _users)
        if before != after:
            last += 1
            operation.group = last
            made[last] = group
    return made


def _reaches(
    start: Operation, group: int, next: Callable[[Operation], Iterable[Operation]]
) -> bool:
    """Whether something of a group is reached from an operation."""
    seen: set[Operation] = set()
    waiting = list(next(start))
    while waiting:
        operation = waiting.pop()
        if operation.group == group:
            return True
        if operation not in seen:
            seen.add(operation)
            waiting += next(operation)
    return False


def _producers(operation: Operation) -> list[Operation]:
    producers = [value.producer for value in operation.operands]
    return [
        producer
        for producer in producers
        if producer is not None and not isinstance(producer, Constant)
    ]


def _users(operation: Operation) -> list[Operation]:
    return [user for value in operation.results for user in value.uses]
