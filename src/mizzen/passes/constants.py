"""Compute what depends on nothing but constants."""

from __future__ import annotations

from mizzen.diagnostics import MizzenError
from mizzen.graph import Array, DType, Graph, Operation
from mizzen.ops.control_flow import CondIf, Custom, OfVariable, WhileLoop
from mizzen.ops.data_node import Constant
from mizzen.ops.type_conversion import Rescale
from mizzen.passes.pipeline import Pass
from mizzen.reference import apply

LARGEST = 1 << 20
"""Elements that a folded constant may have beyond those of its operands; TILE makes many of few."""

EXCLUDED = (Constant, Custom, CondIf, WhileLoop, OfVariable)


def _fold_constants(graph: Graph) -> bool:
    """Replace operations all of whose operands are constants by what they give."""
    if not any(map(_is_constant, graph)):
        return False
    changed = False
    outputs = set(graph.outputs)
    for operation in graph.sorted():
        # An output stays what an operation gives: its own tensor.
        if _is_constant(operation) and outputs.isdisjoint(operation.results):
            changed |= _fold(graph, operation)
    if changed:
        graph.erase_dead()
    return changed


def _is_constant(operation: Operation) -> bool:
    if isinstance(operation, EXCLUDED) or not operation.operands or _widens(operation):
        return False
    return all(operand.constant is not None for operand in operation.operands)


def _widens(operation: Operation) -> bool:
    """Whether it makes 32 bits of few.

    An NPU rescales both operands of an elementwise operation on the way, or none: a constant that
    is wide already would cost the other operand's RESCALE an operation of its own.
    """
    return isinstance(operation, Rescale) and operation.result.dtype is DType.INT32


def _fold(graph: Graph, operation: Operation) -> bool:
    operands: list[Array] = [array for v in operation.operands if (array := v.constant) is not None]
    given = sum(value.type.elements for value in operation.results)
    if given > LARGEST + sum(array.size for array in operands):
        return False
    try:
        results = apply(operation, operands)
    except MizzenError:
        return False  # What TOSA leaves open stays to be told with the operation's place.
    for value, array in zip(operation.results, results, strict=True):
        constant = graph.constant(
            array,
            value.dtype,
            quantization=value.quantization,
            origin=operation.origin,
            group=operation.group,
        )
        graph.supersede(value, constant)
    return True


FOLD_CONSTANTS = Pass("fold-constants", _fold_constants)
