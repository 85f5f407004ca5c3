"""Let each user have a RESCALE of its own."""

from __future__ import annotations

from mizzen.graph import DType, Graph, Operation
from mizzen.ops.type_conversion import Rescale
from mizzen.passes.pipeline import Pass


def _split_rescales(graph: Graph) -> bool:
    """Copy RESCALEs to 32 bits so that each has one user.

    An NPU rescales what an elementwise operation takes on the way, for nothing, but only where
    nobody else wants the 32-bit numbers.
    """
    shared = [row for row in graph if _is_shared(row)]
    for operation in shared:
        for user in tuple(operation.result.uses)[1:]:
            _give(graph, operation, user)
    return bool(shared)


def _is_shared(operation: Operation) -> bool:
    return (
        isinstance(operation, Rescale)
        and operation.result.dtype is DType.INT32
        and len(operation.result.uses) > 1
    )


def _give(graph: Graph, operation: Operation, user: Operation) -> None:
    attributes, type = dict(operation.attributes), operation.result.type
    copy = graph.add_beside(operation, operation.kind, operation.operands, type, attributes)
    for index, operand in enumerate(user.operands):
        if operand is operation.result:
            graph.set_operand(user, index, copy)


SPLIT_RESCALES = Pass("split-rescales", _split_rescales)
