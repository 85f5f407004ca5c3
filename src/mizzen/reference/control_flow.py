"""What control flow computes. Ref: TOSA 1.0, 2.16."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.graph import Array, Graph, Operation

Run = Callable[[Graph, Sequence[Array]], list[Array]]
"""Evaluates a body on the values that it takes."""


def cond_if(run: Run, operation: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
    """Evaluate one of the branches."""
    condition, *passed = operands
    branch = "then_graph" if condition.item() else "else_graph"
    return tuple(run(operation[branch], passed))


def while_loop(run: Run, operation: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
    """Evaluate the body on its own results for as long as the condition holds."""
    values = list(operands)
    while run(operation["cond_graph"], values)[0].item():
        values = run(operation["body_graph"], values)
    return tuple(values)


KERNELS = {"COND_IF": cond_if, "WHILE_LOOP": while_loop}
