"""What a graph is at a stage of its way to the NPU, as named conditions.

A pass says which conditions it needs and which it keeps; `holds` finds the first operation that
breaks one. Each condition looks at one operation, so that a report can point at it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from mizzen.diagnostics import Diagnostic
from mizzen.graph import DType, Graph, Operation
from mizzen.ops.catalog import DEFINITIONS

MAX_RANK = 6
"""Greatest number of dimensions. Ref: TOSA 1.0, 1.7 Levels, 8K."""
CONTROL_FLOW = ("COND_IF", "WHILE_LOOP")
VARIABLES = ("VARIABLE", "VARIABLE_READ", "VARIABLE_WRITE")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: its name, what must hold, and what an operation has that breaks it or None."""

    name: str
    must: str
    breaks: Callable[[Operation], str | None]


def holds(graph: Graph, conditions: Collection[Condition]) -> list[Diagnostic]:
    """Return what breaks the conditions, as E809, in the order of the operations."""
    return [
        Diagnostic(
            "E809",
            f"{operation.kind}: {condition.must}, and {came}",
            origin=operation.origin,
            rule=f"stage condition {condition.name}",
        )
        for operation in graph
        for condition in conditions
        if (came := condition.breaks(operation)) is not None
    ]


def _custom(operation: Operation) -> str | None:
    return f"is {operation['operator_name']}" if operation.kind == "CUSTOM" else None


def _control_flow(operation: Operation) -> str | None:
    return "has graphs within" if operation.kind in CONTROL_FLOW else None


def _variables(operation: Operation) -> str | None:
    return f"has {operation['name']}" if operation.kind in VARIABLES else None


def _float(operation: Operation) -> str | None:
    for dtype in _types(operation):
        if dtype.is_float:
            return f"has {dtype.value}"
    return None


def _types(operation: Operation) -> Iterator[DType]:
    yield from (value.dtype for value in operation.operands)
    yield from (value.dtype for value in operation.results)


def _rank(operation: Operation) -> str | None:
    for value in (*operation.operands, *operation.results):
        if value.type.rank > MAX_RANK and value.dtype is not DType.SHAPE:
            return f"has {value.type.rank}"
    return None


def _not_constant(operation: Operation) -> str | None:
    definition = DEFINITIONS[operation.kind]
    for value, operand in zip(operation.operands, definition.operands, strict=False):
        if operand.constant and value.constant is None:
            return f"{operand.name} is none"
    return None


NO_CUSTOM = Condition("no-custom", "must be TOSA's own operation", _custom)
NO_CONTROL_FLOW = Condition("no-control-flow", "must not be control flow", _control_flow)
NO_VARIABLES = Condition("no-variables", "must not keep state", _variables)
INTEGER_ONLY = Condition("integer-only", "must have integers only", _float)
BOUNDED_RANK = Condition("bounded-rank", f"must have at most {MAX_RANK} dimensions", _rank)
CONSTANT_PARAMETERS = Condition("constant-parameters", "parameters must be constant", _not_constant)

FOR_NPU = (
    NO_CUSTOM,
    NO_CONTROL_FLOW,
    NO_VARIABLES,
    INTEGER_ONLY,
    BOUNDED_RANK,
    CONSTANT_PARAMETERS,
)
"""What a region that is given to an NPU's compiler keeps to."""
