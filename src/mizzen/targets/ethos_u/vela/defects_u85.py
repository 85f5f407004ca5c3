"""Defects of the compiler on Ethos-U85 that a CLAMP which changes nothing keeps from showing.

Ref: Vela 5.2.0, found by running what it compiled and comparing with TOSA's reference model.
"""

from __future__ import annotations

from mizzen.graph import Graph, Operation
from mizzen.ops.activation import Clamp
from mizzen.ops.data_layout import Reshape, Reverse, Transpose
from mizzen.ops.data_node import Identity
from mizzen.ops.elementwise import Select, Table
from mizzen.ops.tensor import MaxPool2d
from mizzen.ops.type_conversion import Rescale
from mizzen.targets.ethos_u.vela.clamps import LIMITED, clamped

FUNCTIONS = (Clamp, Table)
"""Operations that the compiler makes part of what gives their operand."""

TURNS = (Reverse, Transpose)
"""Operations that the NPU does while it writes a result."""

CARRIERS = (Identity, Rescale, Reshape)
"""Operations that need not be operations of the NPU."""

SELECTIONS = (MaxPool2d, Select)
"""Operations whose result keeps the limits of its type when it is rescaled to another."""


def part_functions(graph: Graph) -> None:
    """Change what the compiler would get wrong on Ethos-U85; what it computes stays the same.

    A function, then another order of elements, then a function again: the compiler makes one
    operation of all, which has one of the functions only. What selects elements and is rescaled to
    a wider type: it makes one operation of both, which saturates at the narrow type's limits.
    """
    for operation in graph:
        if isinstance(operation, FUNCTIONS):
            _part_function(graph, operation)
        elif isinstance(operation, Rescale) and _is_selected(operation):
            _take_apart(graph, operation)


def _take_apart(graph: Graph, operation: Operation) -> None:
    graph.set_operand(operation, 0, clamped(graph, operation.operand, operation))


def _part_function(graph: Graph, operation: Operation) -> None:
    """Part two functions from what turns the one's result for the other.

    With a CLAMP on one side only, the compiler loses limits, or crashes.
    """
    first_turn, producer = None, operation.operand.producer
    while producer is not None and isinstance(producer, (*TURNS, *CARRIERS)):
        first_turn = producer if isinstance(producer, TURNS) else first_turn
        producer = producer.operand.producer
    if first_turn is None or producer is None or not isinstance(producer, FUNCTIONS):
        return
    if first_turn.operand.dtype in LIMITED:
        _take_apart(graph, first_turn)
    _take_apart(graph, operation)


def _is_selected(rescale: Rescale) -> bool:
    """Whether what is rescaled to another type is selected from the elements of tensors."""
    value = rescale.input
    if value.dtype not in LIMITED or value.dtype is rescale.result.dtype:
        return False
    producer = value.producer
    while producer is not None and isinstance(producer, (*TURNS, Identity, Reshape)):
        producer = producer.operand.producer
    return producer is not None and isinstance(producer, SELECTIONS)
