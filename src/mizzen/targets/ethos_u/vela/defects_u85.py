"""Defects of the compiler on Ethos-U85 that a CLAMP which changes nothing keeps from showing.

Ref: Vela 5.2.0, found by running what it compiled and comparing with TOSA's reference model.
"""

from __future__ import annotations

from mizzen.graph import Graph, Operation
from mizzen.targets.ethos_u.vela.clamps import LIMITED, clamped

FUNCTIONS = frozenset({"CLAMP", "TABLE"})
"""Operations that the compiler makes part of what gives their operand."""

TURNS = frozenset({"REVERSE", "TRANSPOSE"})
"""Operations that the NPU does while it writes a result."""

CARRIERS = frozenset({"IDENTITY", "RESCALE", "RESHAPE"})
"""Operations that need not be operations of the NPU."""

SELECTIONS = frozenset({"MAX_POOL2D", "SELECT"})
"""Operations whose result keeps the limits of its type when it is rescaled to another."""


def part_functions(graph: Graph) -> None:
    """Change what the compiler would get wrong on Ethos-U85; what it computes stays the same.

    A function, then another order of elements, then a function again: the compiler makes one
    operation of all, which has one of the functions only. What selects elements and is rescaled to
    a wider type: it makes one operation of both, which saturates at the narrow type's limits.
    """
    for operation in graph:
        if operation.kind in FUNCTIONS:
            _part_function(graph, operation)
        elif operation.kind == "RESCALE" and _is_selected(operation):
            _take_apart(graph, operation)


def _take_apart(graph: Graph, operation: Operation) -> None:
    graph.set_operand(operation, 0, clamped(graph, operation.operands[0], operation))


def _part_function(graph: Graph, operation: Operation) -> None:
    """Part two functions from what turns the one's result for the other.

    With a CLAMP on one side only, the compiler loses limits, or crashes.
    """
    first_turn, producer = None, operation.operands[0].producer
    while producer is not None and producer.kind in TURNS | CARRIERS:
        first_turn = producer if producer.kind in TURNS else first_turn
        producer = producer.operands[0].producer
    if first_turn is None or producer is None or producer.kind not in FUNCTIONS:
        return
    if first_turn.operands[0].dtype in LIMITED:
        _take_apart(graph, first_turn)
    _take_apart(graph, operation)


def _is_selected(rescale: Operation) -> bool:
    """Whether what is rescaled to another type is selected from the elements of tensors."""
    value = rescale.operands[0]
    if value.dtype not in LIMITED or value.dtype is rescale.result.dtype:
        return False
    producer = value.producer
    while producer is not None and producer.kind in TURNS | {"IDENTITY", "RESHAPE"}:
        producer = producer.operands[0].producer
    return producer is not None and producer.kind in SELECTIONS
