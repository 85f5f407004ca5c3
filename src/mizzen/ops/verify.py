"""Checks a graph against TOSA: its structure, and each operation with its operands.

Everything that does not hold is collected; a graph that passes can be written as a TOSA file and
evaluated. The builder checks the same as it builds, but not what only a whole graph shows.

E801 to E806  as `mizzen.ops.builder` has them
E807          the graph's structure: order, values of other graphs, variables
E808          a value's type is not what the operation gives
E809          a profile or extension that is not allowed is needed

Values of constants: Ref: TOSA 1.0, 2.3.2 to 2.3.10, 2.5.14, 2.6.10, 2.13.2; scale helpers of its
pseudocode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from types import NoneType
from typing import Any, cast

from mizzen.diagnostics import Diagnostic, MizzenError, Origin
from mizzen.graph import (
    INTEGER_BITS,
    Attributes,
    DType,
    Graph,
    Operation,
    TensorType,
    Value,
    integer_range,
)
from mizzen.ops.builder import definition_of, infer, row_of
from mizzen.ops.control_flow import Const, Custom, Variable, VariableRead, VariableWrite
from mizzen.ops.definition import Attribute, Definition, Support
from mizzen.ops.elementwise import Mul
from mizzen.ops.type_conversion import Rescale

HOST_ONLY = frozenset({DType.UINT8, DType.UINT16, DType.INT64, DType.FP64})
"""Types that no operation of TOSA has: only custom operations take and give them."""

UNSIGNED_ZERO_POINTS = (0, -32768)
"""Of 16-bit elements that are taken as unsigned; as int16, where 32768 is -32768."""
SCALE_SHIFTS = range(2, 63)
MUL_SHIFTS = range(64)

Variables = dict[str, TensorType]


def verify(graph: Graph, supports: Collection[Support] | None = None) -> list[Diagnostic]:
    """Return everything in the graph, and in graphs within it, that TOSA does not allow.

    supports  profiles and extensions that may be needed; any, if it is None
    """
    allowed = frozenset(Support) if supports is None else frozenset(supports)
    return list(_graph(graph, allowed, _variables(graph)))


def require_valid(graph: Graph) -> None:
    """Raise the first thing that TOSA does not allow in a graph, if there is one."""
    wrong = next(iter(verify(graph)), None)
    if wrong is not None:
        raise MizzenError(wrong)


def _variables(graph: Graph) -> Variables:
    return {op.name: op.type for op in graph if isinstance(op, Variable)}


def _graph(
    graph: Graph, supports: frozenset[Support], variables: Variables
) -> Iterator[Diagnostic]:
    structure = list(_structure(graph))
    yield from structure
    if structure:
        return
    for value in graph.inputs:
        yield from _type(value, f"input {value.name or '?'}", None)
    for operation in graph:
        yield from _operation(operation, supports, variables)
        for body in operation.attributes.values():
            if isinstance(body, Graph):
                yield from _graph(body, supports, variables)


def _structure(graph: Graph) -> Iterator[Diagnostic]:
    """Say what is wrong with the graph as such: each value in its place, no cycle."""
    known = set(graph.inputs)
    if len(known) != len(graph.inputs):
        yield _wrong("E807", "an input must be one once, and one is there twice", None)
    yield from (
        _wrong("E807", f"an input must come from outside, and {value!r} is a result", None)
        for value in graph.inputs
        if value.producer is not None
    )
    for operation in graph:
        known.update(operation.results)
    for operation in graph:
        foreign = [operand for operand in operation.operands if operand not in known]
        if foreign:
            message = f"{operation.kind}: operands must be values of the graph, not {foreign[0]!r}"
            yield _wrong("E807", message, operation.origin)
    yield from (
        _wrong("E807", f"outputs must be values of the graph, not {value!r}", None)
        for value in graph.outputs
        if value not in known
    )
    try:
        graph.sorted()
    except ValueError as error:
        yield _wrong("E807", f"the graph must have no cycle, but {error}", None)
    yield from _uses(graph)


def _uses(graph: Graph) -> Iterator[Diagnostic]:
    """Compare what values say of their users with what the users take."""
    counted: dict[Value, dict[Operation, int]] = {}
    for operation in graph:
        for operand in operation.operands:
            users = counted.setdefault(operand, {})
            users[operation] = users.get(operation, 0) + 1
    for value in (*graph.inputs, *(result for op in graph for result in op.results)):
        if value.uses != counted.get(value, {}):
            message = f"{value!r} must have the uses that the operations have of it"
            yield _wrong("E807", message, None)


def _operation(
    operation: Operation, supports: frozenset[Support], variables: Variables
) -> Iterator[Diagnostic]:
    origin = operation.origin
    try:
        definition = definition_of(operation.kind, origin)
    except MizzenError as error:
        yield error.diagnostic
        return
    wrong = list(_attributes(definition, operation))
    yield from wrong
    for result in operation.results:
        yield from _type(result, operation.kind, origin)
    if wrong or isinstance(operation, Custom):
        return
    if isinstance(operation, Const) and operation.result.dtype in HOST_ONLY:
        yield from _host_constant(operation)
        return
    try:
        yield from _results(definition, operation)
        yield from _support(definition, operation, supports)
    except MizzenError as error:
        yield error.diagnostic
        return
    yield from _constants(definition, operation)
    yield from _variable(operation, variables)


def _attributes(definition: Definition, operation: Operation) -> Iterator[Diagnostic]:
    """Compare the attributes with the definition's: none missing, none else, of the right type."""
    given = operation.attributes
    for attribute in definition.attributes:
        if attribute.name not in given:
            yield _refused("E804", definition, f"{attribute.name} must be given", operation)
        elif not _fits(attribute, given[attribute.name]):
            message = f"{attribute.name} must be {_wanted(attribute)}, and is "
            yield _refused("E804", definition, message + repr(given[attribute.name]), operation)
    for name in given.keys() - definition.names:
        yield _refused("E804", definition, f"has no attribute {name}", operation)


def _fits(attribute: Attribute[Any], value: object) -> bool:
    if isinstance(value, bool) and attribute.type is not bool:
        return False
    if isinstance(value, tuple):
        elements = cast("tuple[object, ...]", value)
        return (
            attribute.type is tuple
            and all(type(element) is int for element in elements)
            and attribute.length in (None, len(elements))
        )
    return isinstance(value, attribute.type)


def _wanted(attribute: Attribute[Any]) -> str:
    types = attribute.type if isinstance(attribute.type, tuple) else (attribute.type,)
    if types == (tuple,):
        return "a tuple of int" if attribute.length is None else f"{attribute.length} int"
    return " or ".join("None" if kind is NoneType else kind.__name__ for kind in types)


def _type(value: Value, what: str, origin: Origin | None) -> Iterator[Diagnostic]:
    """Check that a value's type is one, and its quantisation one of its type."""
    type = value.type
    if any(size < 1 for size in type.shape) and type.dtype is not DType.SHAPE:
        yield _wrong("E808", f"{what}: sizes must be positive, and are {type.shape}", origin)
    quantization = type.quantization
    if quantization is None:
        return
    scales, zero_points = len(quantization.scales), len(quantization.zero_points)
    axis = quantization.axis
    if axis is not None and not 0 <= axis < type.rank:
        message = f"{what}: the axis of scales must be one of {type.shape}, and is {axis}"
        yield _wrong("E808", message, origin)
        return
    need = 1 if axis is None else type.shape[axis]
    if scales != need or zero_points != need:
        message = f"must have {need} scales and zero points, and has {scales} and {zero_points}"
        yield _wrong("E808", f"{what}: {message}", origin)
    elif any(not scale > 0 for scale in quantization.scales):
        yield _wrong("E808", f"{what}: scales must be positive: {quantization.scales}", origin)


def _host_constant(operation: Operation) -> Iterator[Diagnostic]:
    users = [user.kind for user in operation.result.uses if not isinstance(user, Custom)]
    if users:
        dtype = operation.result.dtype.value
        message = f"CONST of {dtype}: only CUSTOM must take it, and {users[0]} does"
        yield _wrong("E803", message, operation.origin)


def _results(definition: Definition, operation: Operation) -> Iterator[Diagnostic]:
    """Compare the types of the results with what follows from the operands."""
    types = infer(definition, *_given(operation))
    have = [result.type.quantized(None) for result in operation.results]
    need = [type.quantized(None) for type in types]
    if have != need:
        shown = [", ".join(map(str, types)) or "nothing" for types in (need, have)]
        message = f"must give {shown[0]}, and gives {shown[1]}"
        yield _refused("E808", definition, message, operation)


def _given(
    operation: Operation,
) -> tuple[Sequence[Value], Attributes, DType | None, Origin | None]:
    """Return the arguments of the inference of types."""
    dtype = operation.results[0].dtype if len(operation.results) == 1 else None
    return operation.operands, dict(operation.attributes), dtype, operation.origin


def _support(
    definition: Definition, operation: Operation, supports: frozenset[Support]
) -> Iterator[Diagnostic]:
    """Say if no profile or extension that is allowed has the operation for its types."""
    if definition.rows:
        form = row_of(definition, *_given(operation))
        needed = form.supports
    else:
        needed = definition.supports
    if needed and supports.isdisjoint(needed):
        names = " or ".join(support.value for support in needed)
        types = ", ".join(value.dtype.value for value in (*operation.operands, *operation.results))
        message = f"needs {names} for {types}, which is not allowed"
        yield _refused("E809", definition, message, operation)


def _constants(definition: Definition, operation: Operation) -> Iterator[Diagnostic]:
    """Check that operands are constant where they must be, and the values that they have."""
    if isinstance(operation, Const) and operation.result.dtype in INTEGER_BITS:
        low, high = integer_range(operation.result.dtype)
        values = operation.values
        if values.size and (values.min() < low or values.max() > high):
            message = f"values must be {operation.result.dtype.value}, from {low} to {high}"
            yield _refused("E806", definition, message, operation)
    for value, operand in zip(operation.operands, definition.operands, strict=False):
        if operand.constant and value.constant is None:
            yield _refused("E805", definition, f"{operand.name} must be a constant", operation)
            return
    for message in _values_of_constants(definition, operation):
        yield _refused("E806", definition, message, operation)


def _values_of_constants(definition: Definition, operation: Operation) -> Iterator[str]:
    """Say what does not hold of the constant operands: what must, and what came."""
    for value, operand in zip(operation.operands, definition.operands, strict=False):
        if operand.name.endswith("_zp"):
            yield from _zero_point(operation, value, operand.name)
    if isinstance(operation, Mul):
        yield from _mul(operation)
    elif isinstance(operation, Rescale):
        yield from _rescale(operation)


def _zero_point(operation: Operation, operand: Value, name: str) -> Iterator[str]:
    if operand.dtype is DType.INT8:
        return
    zero_point = _values(operand)[0]
    unsigned = operation.attributes.get(name.replace("_zp", "_unsigned"), False)
    if unsigned and operand.dtype is DType.INT16:
        if zero_point not in UNSIGNED_ZERO_POINTS:
            yield f"{name} of unsigned i16 must be 0 or 32768, and is {int(zero_point) & 0xFFFF}"
    elif zero_point != 0:
        yield f"{name} must be 0 for {operand.dtype.value}, and is {zero_point}"


def _mul(operation: Mul) -> Iterator[str]:
    shift = _values(operation.shift)[0]
    dtype = operation.input1.dtype
    if shift not in MUL_SHIFTS:
        yield f"shift must be from 0 to 63, and is {shift}"
    elif shift and dtype is not DType.INT32:
        yield f"shift must be 0 for {dtype.value}, and is {shift}"


def _rescale(operation: Rescale) -> Iterator[str]:
    multipliers, shifts = _values(operation.multiplier), _values(operation.shift)
    if min(multipliers) < 0:
        yield f"multipliers must not be negative, and one is {min(multipliers)}"
    wrong = [shift for shift in shifts if shift not in SCALE_SHIFTS]
    if wrong:
        yield f"shifts must be from 2 to 62, and one is {wrong[0]}"


def _values(operand: Value) -> list[int]:
    array = operand.constant
    assert array is not None
    return array.tolist()


def _variable(operation: Operation, variables: Variables) -> Iterator[Diagnostic]:
    """Check that a variable that is read or written is declared, with the same type."""
    if not isinstance(operation, (VariableRead, VariableWrite)):
        return
    name = operation.name
    declared = variables.get(name)
    if declared is None:
        message = f"{operation.kind}: a variable must be declared, and {name} is not"
        yield _wrong("E807", message, operation.origin)
        return
    value = operation.result if isinstance(operation, VariableRead) else operation.input1
    have, need = value.type.quantized(None), declared.quantized(None)
    if have != need:
        message = f"variable {name} must be {need}, and is {have}"
        yield _wrong("E808", f"{operation.kind}: {message}", operation.origin)


def _wrong(code: str, message: str, origin: Origin | None) -> Diagnostic:
    return Diagnostic(code, message, origin=origin)


def _refused(code: str, definition: Definition, message: str, operation: Operation) -> Diagnostic:
    return Diagnostic(
        code,
        f"{definition.kind}: {message}",
        origin=operation.origin,
        rule=definition.reference,
    )
