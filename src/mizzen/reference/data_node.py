"""What the data nodes compute. Ref: TOSA 1.0, 2.14."""

from __future__ import annotations

from mizzen.graph import Array, Operation
from mizzen.reference.kernel import Kernel


def const(operation: Operation) -> Array:
    """Return the values."""
    return operation["values"]


def identity(operation: Operation, values: Array) -> Array:
    """Return the operand."""
    return values


KERNELS: dict[str, Kernel] = {
    "CONST": const,
    "IDENTITY": identity,
}
