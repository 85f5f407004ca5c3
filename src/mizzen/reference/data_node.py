"""What the data nodes and shape operators compute. Ref: TOSA 1.0, 2.14, 2.18."""

from __future__ import annotations

from mizzen.graph import Array, Operation
from mizzen.ops import data_node as tosa
from mizzen.reference.kernel import Kernels


def const(operation: tosa.Constant) -> Array:
    """Return the values."""
    return operation.values


def identity(operation: Operation, values: Array) -> Array:
    """Return the operand."""
    return values


KERNELS: Kernels = {
    tosa.Const: const,
    tosa.ConstShape: const,
    tosa.Identity: identity,
}
