"""What operations on variables compute. Ref: TOSA 1.0, 2.17."""

from __future__ import annotations

from collections.abc import Sequence

from mizzen.diagnostics import fail
from mizzen.graph import Array, Operation

Variables = dict[str, Array]
"""Name to the elements that the variable has now."""


def declare(
    variables: Variables, operation: Operation, operands: Sequence[Array]
) -> tuple[Array, ...]:
    """Return the variable its initial value, if it has one and none came from outside."""
    if operation["initial"] is not None:
        variables.setdefault(operation["name"], operation["initial"])
    return ()


def read(
    variables: Variables, operation: Operation, operands: Sequence[Array]
) -> tuple[Array, ...]:
    """Return what was written last; raises E823 if nothing was."""
    name = operation["name"]
    if name not in variables:
        raise fail(
            "E823",
            f"VARIABLE_READ: a variable must be written before it is read, and {name} was not",
            origin=operation.origin,
            rule="TOSA 1.0, 2.17.3 VARIABLE_READ",
            help="give it an initial value, or a value in `variables`",
        )
    return (variables[name],)


def write(
    variables: Variables, operation: Operation, operands: Sequence[Array]
) -> tuple[Array, ...]:
    """Keep the value."""
    (variables[operation["name"]],) = operands
    return ()


KERNELS = {"VARIABLE": declare, "VARIABLE_READ": read, "VARIABLE_WRITE": write}
