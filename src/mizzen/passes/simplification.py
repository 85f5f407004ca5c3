"""Passes that take away what need not be computed as it stands.

They compute what depends on nothing but constants, compute once what is computed twice, and remove
operations that give what they take.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from mizzen.diagnostics import MizzenError
from mizzen.graph import Array, DType, Graph, Operation, integer_range
from mizzen.ops.control_flow import CondIf, Constant, Custom, Identity, OfVariable, WhileLoop
from mizzen.ops.data_layout import Concat, Pad, Reshape, Reverse, Slice, Tile, Transpose
from mizzen.ops.elementwise import Clamp
from mizzen.ops.reduction import Reduction
from mizzen.ops.type_conversion import Cast, Rescale
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


UNMERGED = (Custom, CondIf, WhileLoop, OfVariable)
"""Operations of which two that look alike may do two things."""


def _merge_duplicates(graph: Graph) -> bool:
    """Merge operations of one kind with the same operands and attributes, and equal constants."""
    changed = False
    constants: dict[Hashable, list[Constant]] = {}
    others: dict[Hashable, Operation] = {}
    outputs = set(graph.outputs)
    for operation in graph.sorted():
        if isinstance(operation, UNMERGED) or not outputs.isdisjoint(operation.results):
            continue
        if isinstance(operation, Constant):
            first = _equal_constant(constants, operation)
        else:
            first = others.setdefault(_key(operation), operation)
        if first is not operation:
            _merge(graph, first, operation)
            changed = True
    return changed


def _key(operation: Operation) -> Hashable:
    attributes = operation.attributes
    return (
        operation.kind,
        tuple(map(id, operation.operands)),
        tuple(result.type for result in operation.results),
        tuple(sorted((name, _frozen(value)) for name, value in attributes.items())),
    )


def _frozen(value: object) -> str:
    return value.tobytes().hex() if isinstance(value, np.ndarray) else repr(value)


def _equal_constant(known: dict[Hashable, list[Constant]], operation: Constant) -> Constant:
    """Return the constant known that equals this one; where none does, it is known from now on."""
    values = operation.values
    # Ends and middle tell nearly all constants apart, so that weights are rarely compared whole.
    flat = values.reshape(-1)
    sample = flat[:: max(1, flat.size // 16)].tobytes()
    bucket = known.setdefault((operation.result.type, sample), [])
    for other in bucket:
        if _same_bytes(other.values, values):
            return other
    bucket.append(operation)
    return operation


def _same_bytes(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape and type hold the same, also where they hold NaNs."""
    return a is b or bool(
        np.array_equal(
            np.ascontiguousarray(a).view(np.uint8), np.ascontiguousarray(b).view(np.uint8)
        )
    )


def _merge(graph: Graph, first: Operation, second: Operation) -> None:
    for kept, given in zip(first.results, second.results, strict=True):
        if not kept.name:
            given.name, kept.name = "", given.name
        graph.replace(given, kept)
    graph.erase(second)


MERGE_DUPLICATES = Pass("merge-duplicates", _merge_duplicates)


def _remove_idle(graph: Graph) -> bool:
    """Remove operations whose result is their operand: reshapes to the same shape and the like."""
    changed = False
    for operation in graph:
        if _is_idle(operation) and not _must_stay(graph, operation):
            result, operand = operation.result, operation.operand
            if not operand.name:
                result.name, operand.name = "", result.name
            graph.replace(result, operand)
            changed = True
    if changed:
        graph.erase_dead()
    return changed


def _must_stay(graph: Graph, operation: Operation) -> bool:
    """Whether an output would be an input, a constant or another output: each is its own tensor."""
    if operation.result not in graph.outputs:
        return False
    operand = operation.operand
    return operand.producer is None or operand.constant is not None or operand in graph.outputs


def _is_idle(operation: Operation) -> bool:
    """Whether an operation gives what it takes."""
    match operation:
        case Reduction():
            return operation.result.shape == operation.input.shape
        case Pad() | Reshape() | Slice() | Tile():
            return operation.result.shape == operation.input1.shape
        case Transpose():
            return operation.perms == tuple(range(len(operation.perms)))
        case Reverse():
            return operation.result.shape[operation.axis] == 1
        case Clamp():
            return _clamps_nothing(operation)
        case Cast():
            return operation.result.dtype is operation.input.dtype
        case Rescale():
            return _rescales_nothing(operation)
        case Concat():
            return len(operation.input1) == 1
        case _:
            return isinstance(operation, Identity)


def _clamps_nothing(operation: Clamp) -> bool:
    dtype = operation.result.dtype
    if not dtype.is_integer:
        return False
    low, high = integer_range(dtype)
    return operation.min_val <= low and operation.max_val >= high


def _rescales_nothing(operation: Rescale) -> bool:
    """Whether all integers of the type come out as they went in.

    ``(x - zero) * multiplier >> shift`` with multiplier ``1 << shift`` is exact, and with equal
    zero points what comes out is in the type's range.
    """
    same_type = operation.result.dtype is operation.input.dtype
    signs = operation.input_unsigned or operation.output_unsigned
    if not same_type or signs or operation.result.dtype is DType.INT32:
        return False
    constants = [operand.constant for operand in operation.operands[1:]]
    if any(constant is None for constant in constants):
        return False
    multiplier, shift, before, after = (c.tolist() for c in constants if c is not None)
    exact = all(m == 1 << s for m, s in zip(multiplier, shift, strict=True))
    return exact and before == after


REMOVE_IDLE = Pass("remove-idle", _remove_idle)
