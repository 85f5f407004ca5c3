"""Make a graph of its own of a region."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from mizzen.graph import Graph, Operation, Value
from mizzen.ops.control_flow import Constant, OfVariable, Variable


@dataclass(frozen=True, eq=False)
class Extracted:
    """A region's graph; `inputs` and `outputs` are the values of the whole graph that its inputs
    and outputs are, in the same order."""

    graph: Graph
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


def in_order(graph: Graph, groups: Collection[int] | None = None) -> list[int]:
    """Return groups, all or some, in an order in which each takes what those before it gave.

    What a group needs comes before its last operation.
    """
    ordered: dict[int, None] = {}
    for operation in graph.sorted():
        group = operation.group
        if group is not None and (groups is None or group in groups):
            ordered.pop(group, None)
            ordered[group] = None
    return list(ordered)


def extract(graph: Graph, groups: Iterable[int], name: str | None = None) -> Extracted:
    """Copy the operations of some groups, and the constants they use, into a graph of their own.

    Variables that they read or write are declared there too.

    It gives what the whole graph gives, and what others take from it.
    """
    inside = set(groups)
    given = set(graph.outputs)
    operations = [operation for operation in graph.sorted() if operation.group in inside]
    return _extracted(
        graph,
        operations,
        name or graph.name,
        lambda value: value in given or any(user.group not in inside for user in value.uses),
    )


def extract_operations(graph: Graph, operations: Iterable[Operation]) -> Extracted:
    """Copy operations, in order of execution, and their constants into a graph of their own.

    It gives what the whole graph gives, and what others or no operations take from it.
    """
    inside, given = set(operations), set(graph.outputs)
    return _extracted(
        graph,
        [operation for operation in graph.sorted() if operation in inside],
        graph.name,
        lambda value: value in given or not value.uses or not inside.issuperset(value.uses),
    )


def _extracted(
    graph: Graph, operations: Iterable[Operation], name: str, is_output: Callable[[Value], bool]
) -> Extracted:
    part = Graph(name)
    copies: dict[Value, Value] = {}
    variables = {row.name: row for row in graph if isinstance(row, Variable)}
    inputs: list[Value] = []
    outputs: list[Value] = []
    for operation in operations:
        if isinstance(operation, Constant):
            continue
        if isinstance(operation, OfVariable) and (declared := variables.pop(operation.name, None)):
            _copy(part, declared, copies)
        if isinstance(operation, Variable):
            continue
        for value in operation.operands:
            if value not in copies:
                copies[value] = _provided(part, value, inputs)
        _copy(part, operation, copies)
        outputs += filter(is_output, operation.results)
    part.set_outputs(copies[value] for value in outputs)
    return Extracted(part, tuple(inputs), tuple(outputs))


def _provided(part: Graph, value: Value, inputs: list[Value]) -> Value:
    """Make an operand from outside available: a copy of a constant, or an input."""
    producer = value.producer
    if isinstance(producer, Constant):
        copy = part.add(producer.kind, (), (value.type,), dict(producer.attributes)).result
        copy.name = value.name
        return copy
    inputs.append(value)
    return part.add_input(value.type, value.name)


def _copy(part: Graph, operation: Operation, copies: dict[Value, Value]) -> None:
    made = part.add(
        operation.kind,
        [copies[value] for value in operation.operands],
        [value.type for value in operation.results],
        dict(operation.attributes),
        origin=operation.origin,
        group=operation.group,
    )
    for old, new in zip(operation.results, made.results, strict=True):
        new.name = old.name
        copies[old] = new
