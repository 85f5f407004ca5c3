"""Return each user a RESCALE of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mizzen.graph import DType, Graph, Operation


@dataclass(frozen=True, slots=True)
class SplitRescales:
    """Copy RESCALEs to 32 bits so that each has one user.

    An NPU rescales what an elementwise operation takes on the way, for nothing, but only where
    nobody else wants the 32-bit numbers.
    """

    name: ClassVar[str] = "split-rescales"

    def run(self, graph: Graph) -> bool:
        """Rewrite the graph; True if anything changed."""
        shared = [row for row in graph if _is_shared(row)]
        for operation in shared:
            for user in tuple(operation.result.uses)[1:]:
                _give(graph, operation, user)
        return bool(shared)


def _is_shared(operation: Operation) -> bool:
    return (
        operation.kind == "RESCALE"
        and operation.result.dtype is DType.INT32
        and len(operation.result.uses) > 1
    )


def _give(graph: Graph, operation: Operation, user: Operation) -> None:
    copy = graph.add(
        operation.kind,
        operation.operands,
        [operation.result.type],
        dict(operation.attributes),
        origin=operation.origin,
        group=operation.group,
    )
    for index, operand in enumerate(user.operands):
        if operand is operation.result:
            graph.set_operand(user, index, copy.result)
