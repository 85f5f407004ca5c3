"""What custom operators compute: only who made them knows. Ref: TOSA 1.0, 2.15."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.diagnostics import MizzenError, fail
from mizzen.graph import Array, Operation

Custom = Callable[[Operation, Sequence[Array]], Sequence[Array]]
"""Gives the results of a CUSTOM operation, one array for each."""


def unknown(operation: Operation) -> MizzenError:
    """Make the error for an operation that nobody said the meaning of."""
    name = operation.attributes.get("operator_name", operation.kind)
    return fail(
        "E821",
        f"{operation.kind}: the reference must know the operator, and does not know {name}",
        origin=operation.origin,
        help="evaluate the parts of the graph around it, or say in `custom` what it computes",
    )
