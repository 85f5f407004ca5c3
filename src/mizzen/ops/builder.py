"""Adds operations to a graph whose results' types follow from the operands.

How the types of results follow, and what must hold of operands and attributes, is one place for
both the builder, which raises the first thing that does not hold, and the verifier, which collects
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.graph import Attributes, DType, Graph, Operation, Quantization, TensorType, Value
from mizzen.ops.definition import DEFINITIONS, Definition, NotConstantError, Row, RuleError

CHOSEN = frozenset({"CAST", "CONST"})
"""Operations whose result's element type does not follow."""


def definition_of(kind: str, origin: Origin | None = None) -> Definition:
    """Return the definition of an operation; raises E801 if there is not one."""
    definition = DEFINITIONS.get(kind)
    if definition is None:
        raise fail("E801", f"an operation must be one of TOSA 1.0, and is {kind}", origin=origin)
    return definition


def complete(
    definition: Definition, attributes: Attributes, origin: Origin | None = None
) -> Attributes:
    """Return the attributes with defaults filled in, lists made tuples; raises E804."""
    whole = {**definition.defaults, **attributes} if definition.defaults else dict(attributes)
    for name, value in attributes.items():
        if name not in definition.names:
            known = ", ".join(attribute.name for attribute in definition.attributes) or "none"
            raise _refuse("E804", definition, f"attributes must be {known}, not {name}", origin)
        if type(value) is list:
            whole[name] = tuple(cast("list[object]", value))
    if not whole.keys() >= definition.required:
        missing = ", ".join(sorted(definition.required - whole.keys()))
        raise _refuse("E804", definition, f"{missing} must be given", origin)
    return whole


def infer(
    definition: Definition,
    operands: Sequence[Value],
    attributes: Attributes,
    dtype: DType | None = None,
    origin: Origin | None = None,
) -> tuple[TensorType, ...]:
    """Return the results' types, and set attributes that follow from the operands' types.

    dtype  the first result's element type, where the operands leave a choice (CAST)

    Raises E802 for the number of operands, E803 for element types, E804 for attributes that do not
    fit them, E805 for operands that are not constant, E806 for everything else that must hold.
    """
    _count(definition, operands, origin)
    try:
        if definition.infer is not None:
            return definition.infer(operands, attributes)
        form = row_of(definition, operands, attributes, dtype, origin)
        assert definition.shapes is not None
        _ranks(definition, operands)
        shapes = definition.shapes(operands, attributes)
    except NotConstantError as error:
        raise _refuse("E805", definition, str(error), origin) from None
    except RuleError as error:
        raise _refuse("E806", definition, str(error), origin) from None
    return tuple(
        TensorType(shape, form.types[variable])
        for shape, (_, variable) in zip(shapes, definition.results, strict=True)
    )


def _refuse(code: str, definition: Definition, message: str, origin: Origin | None) -> MizzenError:
    return fail(code, f"{definition.kind}: {message}", origin=origin, rule=definition.reference)


def _count(definition: Definition, operands: Sequence[Value], origin: Origin | None) -> None:
    count, need = len(operands), len(definition.operands)
    if count == need or (definition.variadic and count >= need - (not definition.rows)):
        return
    least = f"at least {need - (not definition.rows)}" if definition.variadic else str(need)
    names = ", ".join(operand.name for operand in definition.operands) or "none"
    message = f"operands must be {least} ({names}), and are {count}"
    raise _refuse("E802", definition, message, origin)


def row_of(
    definition: Definition,
    operands: Sequence[Value],
    attributes: Attributes,
    dtype: DType | None,
    origin: Origin | None,
) -> Row:
    """Return the combination of types that the operands make.

    Attributes that it fixes (``acc_type``) are set in `attributes`. Raises E803, E804.
    """
    key = tuple(operand.type.dtype for operand in operands)
    if definition.variadic and len(set(key)) == 1:
        key = key[:1]
    forms = definition.by_operands.get(key)
    if forms is None:
        came = ", ".join(element.value for element in key)
        raise _refuse("E803", definition, f"has no form for element types {came}", origin)
    if len(forms) == 1 and not forms[0].attributes and dtype is None:
        return forms[0]
    for form in forms:
        if all(
            attributes.get(name, value) == value for name, value in form.attributes.items()
        ) and (dtype is None or form.types[definition.results[0][1]] is dtype):
            break
    else:
        raise _no_row(definition, forms, key, attributes, dtype, origin)
    if definition.kind in CHOSEN and dtype is None:
        raise _refuse("E804", definition, "the element type of the result must be given", origin)
    attributes.update(form.attributes)
    return form


def _no_row(
    definition: Definition,
    forms: tuple[Row, ...],
    key: tuple[DType, ...],
    attributes: Attributes,
    dtype: DType | None,
    origin: Origin | None,
) -> MizzenError:
    came = ", ".join(element.value for element in key)
    choices = sorted({form.types[definition.results[0][1]].value for form in forms})
    if dtype is not None and dtype.value not in choices:
        message = f"of {came} must give {' or '.join(choices)}, not {dtype.value}"
        return _refuse("E803", definition, message, origin)
    names = sorted(forms[0].attributes)
    wanted = " or ".join(
        ", ".join(_shown(form.attributes[name]) for name in names) for form in forms
    )
    given = ", ".join(_shown(attributes.get(name)) for name in names)
    message = f"{', '.join(names)} must be {wanted} for {came}, and is {given}"
    return _refuse("E804", definition, message, origin)


def _shown(value: object) -> str:
    return str(getattr(value, "value", value))


def _ranks(definition: Definition, operands: Sequence[Value]) -> None:
    """Check the number of dimensions of every operand."""
    for value, operand in zip(operands, definition.operands, strict=False):
        least, greatest = operand.rank
        rank = len(value.type.shape)
        if rank < least or (greatest is not None and rank > greatest):
            bound = str(least) if least == greatest else f"at least {least}"
            raise RuleError(f"{operand.name} must have rank {bound}, and is {value.type.shape}")


Key = tuple[DType, tuple[int, ...], bytes, Quantization | None]

SHARED_ELEMENTS = 16
"""Constants of at most as many elements are one operation wherever they are equal."""

_shared: WeakKeyDictionary[Graph, dict[Key, Value]] = WeakKeyDictionary()


def reshaped(graph: Graph, place: Operation, value: Value, shape: tuple[int, ...]) -> Value:
    """Add a RESHAPE with the origin and group of an operation, unless the value has the shape."""
    if value.shape == shape:
        return value
    operands = (value, graph.constant(shape, DType.SHAPE))
    return graph.add_beside(place, "RESHAPE", operands, value.type.with_shape(shape))


class Builder:
    """Adds operations of one origin and group to a graph.

    ``b("ADD", x, y)`` gives the result's value; what must hold and does not is raised as E80x.
    """

    __slots__ = ("_constants", "graph", "group", "origin")

    def __init__(
        self, graph: Graph, origin: Origin | None = None, group: int | None = None
    ) -> None:
        self.graph = graph
        self.origin = origin
        self.group = group
        self._constants = _shared.setdefault(graph, {})

    def at(self, origin: Origin | None, group: int | None) -> Builder:
        """Return a builder for another place in the model, on the same graph."""
        return Builder(self.graph, origin, group)

    def __call__(
        self,
        kind: str,
        *operands: Value,
        quantization: Quantization | None = None,
        dtype: DType | None = None,
        **attributes: Any,
    ) -> Value:
        """Add an operation with one result and return it.

        quantization  of the result; none follows from the operands
        dtype         the result's element type where the operands leave a choice (CAST, MATMUL of
                      f16)
        """
        definition = definition_of(kind, self.origin)
        whole = complete(definition, attributes, self.origin)
        types = infer(definition, operands, whole, dtype, self.origin)
        if quantization is not None:
            types = (types[0].quantized(quantization),)
        operation = self.graph.add(
            kind, operands, types, whole, origin=self.origin, group=self.group
        )
        return operation.result

    def many(
        self, kind: str, *operands: Value, dtype: DType | None = None, **attributes: Any
    ) -> tuple[Value, ...]:
        """Add an operation with any number of results and return them."""
        definition = definition_of(kind, self.origin)
        whole = complete(definition, attributes, self.origin)
        types = infer(definition, operands, whole, dtype, self.origin)
        operation = self.graph.add(
            kind, operands, types, whole, origin=self.origin, group=self.group
        )
        return operation.results

    def custom(
        self,
        operator_name: str,
        operands: Sequence[Value],
        types: Sequence[TensorType],
        **attributes: Any,
    ) -> tuple[Value, ...]:
        """Add a custom operation with results of the given types and return them."""
        definition = definition_of("CUSTOM")
        attributes["operator_name"] = operator_name
        whole = complete(definition, attributes, self.origin)
        operation = self.graph.add(
            "CUSTOM", operands, types, whole, origin=self.origin, group=self.group
        )
        return operation.results

    def constant(
        self, values: npt.ArrayLike, dtype: DType, quantization: Quantization | None = None
    ) -> Value:
        """Return a constant. Small ones that are equal are one; those are in no group."""
        array = np.asarray(values, dtype.numpy)
        if array.size > SHARED_ELEMENTS:
            return self.graph.constant(
                array, dtype, quantization=quantization, origin=self.origin, group=self.group
            )
        key = (dtype, array.shape, array.tobytes(), quantization)
        value = self._constants.get(key)
        producer = None if value is None else value.producer
        if value is None or producer is None or producer not in self.graph:
            array = array.copy()
            array.flags.writeable = False
            value = self.graph.constant(array, dtype, quantization=quantization)
            self._constants[key] = value
        return value

    def shape(self, values: Sequence[int]) -> Value:
        """Return a shape as a constant."""
        return self.constant(values, DType.SHAPE)
