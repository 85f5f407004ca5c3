"""Bring a graph into the form in which the pattern table looks at it.

The library has channels last and constants as constants; PyTorch's programs come with channels
first and TRANSPOSEs around every operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mizzen.graph import Graph, Operation
from mizzen.passes import PASSES, Pipeline

TURNED = ("remove-idle", "fold-constants", "layout", "remove-idle")
PLAIN = ("fold-constants",)


def prepare(graph: Graph) -> dict[int, int]:
    """Rewrite a whole graph, before it is placed, so that it computes the same to the last bit.

    TRANSPOSEs that are left, at the edges of what has channels last, become groups of their own:
    they run on the CPU without taking their operators along. Gives these new groups, and the
    group that each comes from.
    """
    turned = any(row.kind == "TRANSPOSE" for row in graph)
    names = TURNED if turned else PLAIN
    Pipeline(tuple(PASSES[name] for name in names)).run(graph)
    return _apart(graph)


def _apart(graph: Graph) -> dict[int, int]:
    """Take TRANSPOSEs out of their groups, where the groups do not need to wait for themselves."""
    last = max((row.group for row in graph if row.group is not None), default=-1)
    made: dict[int, int] = {}
    for operation in graph.sorted():
        group = operation.group
        if operation.kind != "TRANSPOSE" or group is None:
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
    found = [value.producer for value in operation.operands]
    return [row for row in found if row is not None and row.kind not in ("CONST", "CONST_SHAPE")]


def _users(operation: Operation) -> list[Operation]:
    return [user for value in operation.results for user in value.uses]
