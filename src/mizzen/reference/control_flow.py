"""What data nodes, custom operators, control flow and variables compute.

Ref: TOSA 1.0, 2.14 to 2.18.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.diagnostics import MizzenError, fail
from mizzen.graph import Array, Graph, Operation
from mizzen.ops import control_flow as tosa
from mizzen.ops.control_flow import CondIf, Custom, Variable, VariableRead, VariableWrite, WhileLoop
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


CustomKernel = Callable[[Custom, Sequence[Array]], Sequence[Array]]
"""Returns the results of a CUSTOM operation, one array for each: only who made it knows them."""
Run = Callable[[Graph, Sequence[Array]], list[Array]]
"""Evaluates a body on the values that it takes."""
Variables = dict[str, Array]
"""Name to the elements that the variable has now."""


def unknown(operation: Operation) -> MizzenError:
    """Make the error for an operation whose meaning is not known."""
    name = operation.attributes.get("operator_name", operation.kind)
    return fail(
        "E821",
        f"{operation.kind}: the reference must know the operator, and does not know {name}",
        origin=operation.origin,
        help="evaluate the parts of the graph around it, or say in `custom` what it computes",
    )


def cond_if(run: Run, operation: CondIf, operands: Sequence[Array]) -> list[Array]:
    """Evaluate one of the branches."""
    condition, *passed = operands
    return run(operation.then_graph if condition.item() else operation.else_graph, passed)


def while_loop(run: Run, operation: WhileLoop, operands: Sequence[Array]) -> list[Array]:
    """Evaluate the body on its own results for as long as the condition holds."""
    values = list(operands)
    while run(operation.cond_graph, values)[0].item():
        values = run(operation.body_graph, values)
    return values


def declare(variables: Variables, operation: Variable) -> tuple[Array, ...]:
    """Set the variable to its initial value, if it has one and none came from outside."""
    if operation.initial is not None:
        variables.setdefault(operation.name, operation.initial)
    return ()


def read(variables: Variables, operation: VariableRead) -> tuple[Array, ...]:
    """Return the value that was written last; raises E823 if nothing was."""
    name = operation.name
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
    variables: Variables, operation: VariableWrite, operands: Sequence[Array]
) -> tuple[Array, ...]:
    """Keep the value."""
    (variables[operation.name],) = operands
    return ()
